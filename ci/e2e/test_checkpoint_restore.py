#!/usr/bin/env python3
"""penstock checkpoint restore from outside: which checkpoint is taken, what is wrong with the others, and what it writes."""

import os
import shutil
import signal

from messages import message
import penstock_cli
from checkpoint_case import CheckpointTest, NOTHING, PAYLOAD, flip


class Restoring(CheckpointTest):
    def test_a_lost_fast_tier(self):
        self.save(1)
        shutil.rmtree(self.dir / "fast")
        done = self.run_cli("checkpoint", "restore", "fast", "slow", "--to", "out")
        self.assertIn(message("fast-tier-ignored"), done.stderr)
        self.assertEqual((self.dir / "out" / "rank-0.bin").stat().st_size, 6 << 20)
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})
        self.fails(1, "drain", "fast", "slow", words=["fast"])
        self.fails(NOTHING, "restore", "fast", words=["fast"])

    def test_a_wrong_copy_gives_way_to_the_other_tiers(self):
        self.save(1)
        flip(self.file("fast", 1))
        restored = self.restore("--to", "out")
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 1).read_bytes())
        self.assertEqual(len(restored["rejected"]), 1)
        self.assertEqual(restored["lost_steps"], 0)

    def test_a_wrong_checkpoint_gives_way_to_an_older_one(self):
        self.save(10, fast=None)
        self.save(25, fast=None)
        for damage in (flip, lambda path: os.truncate(path, 100), lambda path: path.unlink()):
            shutil.copytree(self.dir / "slow", self.dir / "hurt")
            damage(self.file("hurt", 25))
            restored = self.restore(stores=("hurt",))
            self.assertEqual((restored["lost_steps"], len(restored["rejected"])), (15, 1))
            self.assertTrue(restored["proven"])
            shutil.rmtree(self.dir / "hurt")
        flip(self.file("slow", 25, name="MANIFEST"))
        self.assertEqual(self.restore(stores=("slow",))["lost_steps"], 15)
        self.file("slow", 10, name="MANIFEST").write_bytes(b"")
        done = self.run_cli("checkpoint", "restore", "slow", "--to", "out", expect=NOTHING)
        self.assertIn(message("count-found-wrong", n=2), done.stderr)
        self.assertEqual(done.stdout.count("rejected"), 2)
        self.assertFalse((self.dir / "out").exists())

    def test_a_certain_step(self):
        for step in (1, 2):
            self.save(step, fast=None)
        self.restore("--step", 1, "--to", "out", stores=("slow",))
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 1).read_bytes())
        self.fails(NOTHING, "restore", "slow", "--step", 3, words=[message("no-checkpoint-of-step", n=3), "1, 2"])
        flip(self.file("slow", 2))
        done = self.run_cli("checkpoint", "restore", "slow", "--step", 2, expect=NOTHING)
        for word in ("step 2 of run 'default' is damaged", "rank-0.bin", "other steps: 1"):
            self.assertIn(word, done.stderr)

    def test_a_store_that_cannot_be_read_is_no_fresh_start(self):
        self.save(1)
        (self.dir / "slow" / "STORE.json").write_text("{}")
        self.fails(NOTHING, "restore", "fast", "slow", words=["STORE.json"])
        self.fails(1, "ls", "fast", "slow", words=["STORE.json"])
        self.assertEqual(self.restore(stores=("fast",))["bytes"], 6 << 20)
        self.fails(NOTHING, "restore", "fast,fail=read:eio@1", words=["fast"])

    def test_a_store_that_lost_what_says_that_it_is_one(self):
        self.save(1)
        facts = self.dir / "slow" / "STORE.json"
        text = facts.read_text()
        facts.unlink()
        for stores in (("slow",), ("fast", "slow")):
            for subcommand in ("ls", "verify", "status", "gc"):
                self.fails(1, subcommand, *stores, words=[message("store-file-missing"), message("restore-store-file")])
            self.fails(NOTHING, "restore", *stores, words=[message("store-file-missing")])
        self.fails(1, "save", "slow", *PAYLOAD, words=[message("store-file-missing")])
        facts.write_text(text)
        self.assertTrue(self.restore(stores=("slow",))["proven"])

    def test_runs(self):
        for run in ("one", "two"):
            self.save(1, "--run", run, fast=None)
        for subcommand in ("restore", "save"):
            self.fails(2, subcommand, "slow", *(PAYLOAD if subcommand == "save" else ()), words=["--run", "one, two"])
        restored, = self.subcommand("restore", "slow", "--run", "two")
        self.assertEqual(restored["run"], "two")
        self.fails(NOTHING, "restore", "slow", "--run", "three", words=["one, two"])
        for subcommand in ("ls", "verify", "gc", "status"):
            self.fails(1, subcommand, "slow", "--run", "three", words=["one, two"])
        self.fails(2, "ls", "slow", "--run", "../etc", words=["../etc"])
        self.assertEqual(len(self.subcommand("ls", "slow")), 2)
        self.assertEqual(len(self.subcommand("ls", "slow", "--run", "one")), 1)

    def test_it_does_not_touch_what_others_put_there(self):
        self.save(1, fast=None)
        (self.dir / "out").mkdir()
        (self.dir / "out" / "rank-0.bin").write_text("mine")
        self.fails(1, "restore", "slow", "--to", "out", words=[message("rank-file-name"), "--replace"])
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_text(), "mine")
        self.restore("--to", "out", "--replace", stores=("slow",))
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 1).read_bytes())

    def test_a_restore_that_failed_is_none(self):
        """restart.json names a complete checkpoint, and no file is incomplete."""
        self.save(1, fast=None)
        self.restore("--to", "out", stores=("slow",))
        self.run_cli("checkpoint", "restore", "slow", "--to", "out,fail=write:enospc@#1", "--replace", expect=1)
        self.assertFalse((self.dir / "out" / "restart.json").exists())
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 1).read_bytes())

    def test_signals(self):
        self.save(1, fast=None)
        for how in (signal.SIGINT, signal.SIGTERM):
            process = self.started("restore", "slow,read_limit=100kB/s", "--to", f"out{int(how)}")
            self.until(lambda: any(message("rank-file-name") in name for name in self.open_files(process)), "never read")
            process.send_signal(how)
            process.communicate(timeout=penstock_cli.PATIENCE_S)
            self.assertEqual(process.returncode, 128 + how)
            self.assertFalse((self.dir / f"out{int(how)}" / "rank-0.bin").exists())


if __name__ == "__main__":
    penstock_cli.main()
