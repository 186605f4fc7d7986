#!/usr/bin/env python3
"""penstock checkpoint save from outside: payloads and folders, how safe they are when it returns, and what happens without free space."""

import json
import os
import random
import shutil
import tempfile

from messages import message
import penstock_cli
from checkpoint_case import CheckpointTest, FULL, NOT_DURABLE, PAYLOAD, SLOWLY


class Saving(CheckpointTest):
    def test_a_payload_comes_back_and_is_proven(self):
        saved = self.save(120)
        self.assertEqual((saved["run"], saved["step"], saved["generation"]), ("default", 120, 0))
        self.assertEqual((saved["reached"], saved["verdict"], saved["skipped"], saved["bytes"]), ("durable", "ok", False, 6 << 20))
        self.assertLessEqual(saved["fast_s"], saved["durable_s"])
        self.assertGreater(saved["drain_s"], 0)
        self.assertEqual(self.file("fast", 120).read_bytes(), self.file("slow", 120).read_bytes())
        restored = self.restore("--to", "out")
        self.assertEqual((restored["run"], restored["proven"], restored["bytes"], restored["lost_steps"]), ("default", True, 6 << 20, 0))
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 120).read_bytes())
        self.assertEqual(json.loads((self.dir / "out" / "restart.json").read_text()), restored)
        self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()), ["rank-0.bin", "restart.json"])
        looked, = self.subcommand("restore", "slow")
        self.assertEqual((looked["to"], looked["proven"]), (None, True))

    def test_bytes_are_the_seeds_and_the_steps(self):
        bytes_of = {}
        for run, seed, step in (("a", 1, 1), ("b", 1, 1), ("c", 2, 1), ("d", 1, 2)):
            self.save(step, "--run", run, fast=None, what=("--payload", "64KiB", "--seed", seed))
            bytes_of[run] = self.file("slow", step, run=run).read_bytes()
        self.assertEqual(bytes_of["a"], bytes_of["b"])
        self.assertNotEqual(bytes_of["a"], bytes_of["c"])
        self.assertNotEqual(bytes_of["a"], bytes_of["d"])

    def test_files_of_a_folder_come_back(self):
        numbers = random.Random(3)
        files = {f"weights-{i}.bin": numbers.randbytes(size) for i, size in enumerate((0, 1, 4096, 5_000_000))}
        (self.dir / "state").mkdir()
        for name, data in files.items():
            (self.dir / "state" / name).write_bytes(data)
        self.save(7, what=("--from", "state"))
        restored = self.restore("--to", "out")
        self.assertFalse(restored["proven"], "nobody knows a seed of them")
        self.fails(2, "save", "slow", "--from", "out", words=["restart.json", message("restart-file-in-the-way")])
        (self.dir / "out" / "restart.json").unlink()
        self.assert_same_tree("state", "out")
        for name in ("MANIFEST", "part-1", ".hidden", "new\nline"):
            (self.dir / "state" / name).write_text("x")
            self.fails(2, "save", "slow", "--from", "state", words=[message("bad-checkpoint-file-name")])
            (self.dir / "state" / name).unlink()
        (self.dir / "state" / "deep").mkdir()
        self.fails(2, "save", "slow", "--from", "state", words=["deep", message("from-takes-files-only")])
        (self.dir / "empty").mkdir()
        self.fails(2, "save", "slow", "--from", "empty", words=["0 files"])
        self.fails(1, "save", "slow", "--from", "nowhere", words=["nowhere"])

    def test_straight_to_the_slow_tier(self):
        saved = self.save(1, fast=None)
        self.assertEqual((saved["reached"], saved["fast_s"], saved["fast"]), ("durable", None, None))
        self.assertEqual(self.states("slow"), {("default", 1, 0): "durable"})

    def test_the_same_step_again_is_another_generation(self):
        self.save(5)
        again = self.save(5, what=("--payload", "1MiB"))
        self.assertEqual((again["step"], again["generation"]), (5, 1))
        self.assertEqual(self.restore()["bytes"], 1 << 20)

    def test_the_table(self):
        done = self.run_cli("checkpoint", "save", "slow", "--burst-buffer", "fast", *PAYLOAD, "--step", 3)
        for word in ("checkpoint", "3.0", "durable", "6.0 MiB", "to fast", "to durable", "MiB/s"):
            self.assertIn(word, done.stdout)
        self.assertIn("MB/s", self.run_cli("checkpoint", "save", "slow", "fast", *PAYLOAD, "--units", "si").stdout)
        done = self.run_cli("checkpoint", "restore", "fast", "slow", "--to", "out")
        self.assertIn(message("restored-bytes-verified"), done.stdout)
        self.assertIn("default", self.run_cli("checkpoint", "ls", "fast", "slow").stdout)
        self.assertIn("fast", self.run_cli("checkpoint", "status", "fast", "slow").stdout)

    def test_what_is_volatile_says_so(self):
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("no /dev/shm")
        memory = tempfile.mkdtemp(prefix="penstock-test-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, memory, ignore_errors=True)
        done = self.run_cli("checkpoint", "save", "slow", "--burst-buffer", memory, *PAYLOAD)
        self.assertIn("volatile", done.stdout)
        self.assertIn("(volatile)", self.run_cli("checkpoint", "ls", memory, "slow").stdout)
        self.assertEqual([line["durability"] for line in self.subcommand("status", memory)], ["volatile"])
        self.assertIn("volatile", self.run_cli("checkpoint", "status", memory).stdout)

    def test_acknowledgements_are_logged(self):
        self.save(1, "--ack-log", "acks")
        self.save(2, "--ack-log", "acks")
        self.save(3, "--ack-log", "acks", fast=None)
        self.assertEqual((self.dir / "acks").read_text().split("\n"), ["1 fast", "1 durable", "2 fast", "2 durable", "3 durable", ""])
        self.fails(1, "save", "slow", *PAYLOAD, "--ack-log", "no/such/folder/acks", words=[message("ack-log-not-written")])

    def test_not_durable_in_time_is_exit_3(self):
        line = self.drain_stuck(1, "--ack-log", "acks")
        self.assertEqual((line["reached"], line["verdict"], line["durable_s"]), ("fast", "timed_out", None))
        self.assertEqual((self.dir / "acks").read_text(), "1 fast\n")
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        done = self.run_cli("checkpoint", "save", FULL, "fast", *PAYLOAD, "--step", 2, "--timeout", "100ms", expect=NOT_DURABLE)
        self.assertIn("penstock checkpoint drain", done.stderr)
        self.assertIn(message("no-room-for-checkpoint"), done.stderr)

    def test_a_drain_that_cannot_succeed_ends_the_wait(self):
        for step, words in enumerate((("--on-full-timeout", "100ms"), ("--on-full-timeout", "100ms", "--timeout", "1h"))):
            for slow in (FULL, "slow,fail=write/rank-0:enospc@#1"):
                with self.subTest(words, slow=slow):
                    done = self.run_cli("checkpoint", "save", slow, "--burst-buffer", "fast", *PAYLOAD, "--step", step, *words, "--json", expect=NOT_DURABLE)
                    line = json.loads(done.stdout)
                    self.assertEqual((line["reached"], line["verdict"]), ("fast", "timed_out"))
                    first_failure, end = (text for text in done.stderr.splitlines() if message("no-room-for-checkpoint") in text or "No space" in text)
                    self.assertIn(message("drain-tried-again", n=0), first_failure)  # the oldest one
                    self.assertIn("--on-full-timeout", end)
                    self.assertIn("penstock checkpoint drain fast", end)

    def test_waiting_for_the_fast_tier_alone(self):
        line = self.save(1, "--wait", "fast", slow=FULL)
        self.assertEqual((line["reached"], line["verdict"]), ("fast", "ok"))
        self.assertEqual(self.restore()["bytes"], 6 << 20)

    def test_what_the_fast_tier_has_no_room_for(self):
        small = "fast,capacity=4MiB"
        self.assertEqual(self.save(1, fast=small)["reached"], "durable")
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})
        self.fails(1, "save", "slow", "--burst-buffer", small, *PAYLOAD, "--oversize", "fail", "--step", 2, words=["fast"])
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})

    def test_what_is_left_out_when_the_fast_tier_is_full(self):
        small = "fast,capacity=10MiB"
        self.drain_stuck(1)
        skipped = self.save(2, "--on-full", "skip", fast=small, slow=FULL)
        self.assertEqual((skipped["skipped"], skipped["verdict"], skipped["reached"]), (True, "skipped", "nothing"))
        self.fails(1, "save", FULL, "--burst-buffer", small, *PAYLOAD, "--step", 3, "--on-full-timeout", "50ms", words=["fast"])
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        through = self.save(4, "--on-full", "writethrough", "--wait", "fast", fast=small, slow=f"slow,{SLOWLY}")
        self.assertEqual(through["reached"], "durable")
        blocked = self.save(5, fast=small)
        self.assertEqual(blocked["reached"], "durable")
        self.assertIn(("default", 5, 0), self.states("fast"))

    def test_an_input_output_failure_is_exit_1(self):
        self.save(1)
        done = self.fails(1, "save", "slow,fail=sync:eio@1", *PAYLOAD, "--step", 2)
        self.assertIn("slow", done.stderr)
        self.assertEqual(self.states("slow"), {("default", 1, 0): "durable"})

    def test_old_ones_go(self):
        for step in range(1, 6):
            self.save(step, "--keep", 3)
        self.assertEqual(sorted(step for _, step, _ in self.states("slow")), [3, 4, 5])
        self.assertEqual(list(self.states("fast")), [("default", 5, 0)])

    def kept_records(self, folder="penstock-results"):
        return penstock_cli.stored(*sorted((self.dir / folder).glob("*.jsonl")))

    def test_it_leaves_a_record(self):
        saved = self.save(120, "--results", "kept", "--label", "disk=new")
        record, = self.kept_records("kept")
        self.assertEqual((record["command"], record["verdict"], record["seed"], record["label"]), ("checkpoint", "ok", 5, {"disk": "new"}))
        self.assertEqual(sorted(record["tiers"]), ["burst_buffer", "checkpoint"])
        for name, member in (("checkpoint_bytes", "bytes"), ("checkpoint_block_s", "block_s"), ("checkpoint_fast_s", "fast_s"),
                             ("checkpoint_durable_s", "durable_s"), ("drain_bytes_per_s", "drain_bytes_per_s")):
            self.assertEqual(record["metrics"][name]["samples"], [saved[member]], name)
        self.assertGreaterEqual(record["metrics"]["wall_s"]["value"], saved["durable_s"])
        self.assertEqual([record["metrics"][name]["value"] for name in ("checkpoints", "checkpoint_skips", "checkpoints_drained")], [1, 0, 1])
        parameters = record["parameters"]
        self.assertEqual([parameters[name] for name in ("payload", "payload_bytes", "wait", "step", "on_full")],
                         ["6MiB", 6 << 20, "durable", 120, "block"])
        self.assertIn("payload", record["work"])
        self.assertNotIn("step", record["work"], "saves of other steps are the same work")
        self.assertFalse((self.dir / "penstock-results").exists())

    def test_a_save_does_not_depend_on_the_default_folder(self):
        (self.dir / "penstock-results").write_text("a file is in the way")
        self.assertEqual(self.save(1)["reached"], "durable")
        self.fails(1, "save", "slow", *PAYLOAD, "--results", "penstock-results")
        self.assertEqual([step for _, step, _ in self.states("slow")], [1])

    def test_report_shows_saves_and_compare_matches_them(self):
        for step in (1, 2):
            self.save(step, "--results", f"r{step}")
        self.save(3, "--results", "r1", fast=None)
        self.run_cli("report", "r1", "-o", "r.html")
        page = (self.dir / "r.html").read_text(encoding="utf-8")
        self.assertIn("6MiB through fast", page)
        self.assertIn("6MiB straight to slow", page)
        self.assertNotIn("Also measured", page)
        done = self.run_cli("compare", "r1", "r2", "--json", expect=None)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        outcomes = {row["cell"]: row["outcome"] for row in rows if row["kind"] == "row" and row["metric"] in ("", "checkpoint_durable_s")}
        self.assertEqual(sorted(outcome == "missing" for outcome in outcomes.values()), [False, True], outcomes)

    def test_what_went_wrong_is_a_record_too(self):
        self.drain_stuck(1, "--results", "late")
        record, = self.kept_records("late")
        self.assertEqual((record["verdict"], record["metrics"]["checkpoint_fast_s"]["samples"] != []), ("timed_out", True))
        self.assertNotIn("checkpoint_durable_s", record["metrics"])
        self.save(2, "--on-full", "skip", "--results", "left-out", fast="fast,capacity=10MiB", slow=FULL)
        record, = self.kept_records("left-out")
        self.assertEqual((record["verdict"], record["metrics"]["checkpoint_skips"]["value"]), ("degraded", 1))
        self.fails(1, "save", "other,fail=sync:eio@1", *PAYLOAD, "--results", "failed")
        record, = self.kept_records("failed")
        self.assertEqual(record["verdict"], "failed")
        self.assertIn("other", record["reason"])
        self.fails(2, "save", "fast", *PAYLOAD, "--results", "refused")
        self.assertFalse((self.dir / "refused").exists(), "a save that was refused was not measured")


if __name__ == "__main__":
    penstock_cli.main()
