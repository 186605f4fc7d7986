#!/usr/bin/env python3
"""penstock checkpoint from outside: what ls, verify and status say of stores, what gc takes away, and wrong words."""

import json
import os
import shutil
import signal
import time

from messages import message
import penstock_cli
from checkpoint_case import CheckpointTest, NEVER, NOTHING, PAYLOAD, flip
from manifest_file import crc32c


class Looking(CheckpointTest):
    def test_ls_derives_states_from_what_is_there(self):
        self.save(1, "--keep-fast", 0)
        self.save(2)
        self.drain_stuck(3)
        self.assertEqual(self.states(), {("default", 1, 0): "durable", ("default", 2, 0): "both", ("default", 3, 0): "fast_committed"})
        self.assertEqual(self.states("slow", "fast"), self.states())
        line = self.subcommand("ls", "fast", "slow")[-1]
        self.assertEqual((line["bytes"], line["ranks"], line["files"], line["epoch"]), (6 << 20, 1, 1, 0))
        self.assertLess(line["age_s"], 600)
        self.assertIn(message("ls-fast-committed"), self.run_cli("checkpoint", "ls", "fast", "slow").stdout)

    def test_nothing_there(self):
        self.save(1, "--run", "gone", fast=None)
        shutil.rmtree(self.dir / "slow" / "ckpt" / "gone")
        self.assertEqual(self.subcommand("ls", "slow"), [])
        self.assertEqual(self.run_cli("checkpoint", "ls", "slow").stdout, "no checkpoints\n")
        self.assertEqual(self.subcommand("verify", "slow")[-1]["copies"], 0)
        self.fails(NOTHING, "restore", "slow", words=[message("no-checkpoint")])
        self.fails(1, "ls", "nowhere", words=["nowhere"])

    def test_verify_reads_all_and_names_what_is_wrong(self):
        for step in (1, 2):
            self.save(step, "--keep-fast", 2)
        lines = self.subcommand("verify", "fast", "slow")
        self.assertEqual([line["problem"] for line in lines[:-1]], [""] * 4)
        self.assertTrue(all(line["proven"] for line in lines[:-1]))
        self.assertEqual((lines[-1]["copies"], lines[-1]["wrong"], lines[-1]["bytes"], lines[-1]["verdict"]), (4, 0, 4 * 6 << 20, "ok"))
        flip(self.file("slow", 1))
        os.truncate(self.file("fast", 2), 1_000_000)
        lines = self.subcommand("verify", "fast", "slow", expect=1)
        wrong = {(line["tier"], line["step"]) for line in lines[:-1] if line["problem"]}
        self.assertEqual(wrong, {("slow", 1), ("fast", 2)})
        done = self.run_cli("checkpoint", "verify", "fast", "slow", expect=1)
        self.assertIn(message("rank-file-name"), done.stdout)
        self.assertIn("2 of 4", done.stdout)

    def test_verify_proves_payloads_against_the_seed(self):
        """All checksums are right, and the bytes are not what that seed makes: as a broken saver would leave them."""
        for step in (1, 2):
            self.save(step, fast=None)
        path = self.file("slow", 1, name="MANIFEST")
        text, word, trailer = path.read_bytes().rpartition(b"crc32c ")
        self.assertEqual(int(trailer, 16), crc32c(text))
        other = text.replace(b'"payload_seed": 5', b'"payload_seed": 6')
        self.assertNotEqual(other, text)
        path.write_bytes(other + word + f"{crc32c(other):08x}".encode() + trailer[8:])
        lines = self.subcommand("verify", "slow", expect=1)
        self.assertEqual([bool(line["problem"]) for line in lines[:-1]], [True, False])
        self.assertIn(message("manifest-right-checksum-but"), lines[0]["problem"])
        self.fails(1, "restore", "slow", "--step", 1, "--to", "out", words=[message("checksums-right-but-format-wrong")])
        self.assertFalse((self.dir / "out" / "rank-0.bin").exists())

    def test_status(self):
        self.save(1, "--keep-fast", 1)
        self.drain_stuck(2)
        by_role = {line["role"]: line for line in self.subcommand("status", "slow", "fast")}
        self.assertEqual((by_role["fast"]["checkpoints"], by_role["fast"]["backlog_bytes"]), (2, 6 << 20))
        self.assertEqual((by_role["slow"]["checkpoints"], by_role["slow"]["backlog_bytes"]), (1, None))
        self.assertEqual(by_role["slow"]["bytes"], 6 << 20)
        self.assertEqual([by_role[role]["locks"] for role in ("fast", "slow")], [[], []])
        self.assertNotEqual(by_role["fast"]["uuid"], by_role["slow"]["uuid"])
        self.assertGreater(by_role["slow"]["room_bytes"], 0)


class Clearing(CheckpointTest):
    def test_old_ones_go_when_asked(self):
        for step in range(1, 5):
            self.save(step, "--keep", 10, "--keep-fast", 10)
        line, = self.subcommand("gc", "fast", "slow")
        self.assertEqual((line["swept"], line["pruned"], line["evicted"], line["locked"]), (0, 0, 0, ""))
        line, = self.subcommand("gc", "fast", "slow", "--keep-fast", 2)
        self.assertEqual(line["evicted"], 2)
        self.assertEqual(sorted(self.states("fast")), [("default", 3, 0), ("default", 4, 0)])
        line, = self.subcommand("gc", "fast", "slow", "--keep", 2)
        self.assertEqual(line["pruned"], 2)
        self.assertEqual(sorted(self.states("slow")), [("default", 3, 0), ("default", 4, 0)])

    def test_wrong_ones_do_not_count(self):
        for step in (1, 2, 3):
            self.save(step, "--keep", 10, fast=None)
        flip(self.file("slow", 3))
        line, = self.subcommand("gc", "slow", "--keep", 1)
        self.assertEqual(line["pruned"], 1)
        self.assertTrue(self.file("slow", 2).exists(), "the newest that is whole stays")
        self.assertEqual(self.restore(stores=("slow",))["lost_steps"], 1)

    def test_what_is_not_durable_stays(self):
        for step in (1, 2, 3):
            self.drain_stuck(step)
        self.run_cli("checkpoint", "gc", "fast", "slow", "--keep", 1, "--keep-fast", 0)
        self.assertEqual(len(self.states("fast")), 3)


    def test_what_another_slow_store_has_is_not_durable_for_the_run(self):
        self.drain_stuck(1)
        self.save(1, slow="other", fast=None)
        self.assertEqual(self.states("fast", "other"), {("default", 1, 0): "both"}, "the same bytes")
        line, = self.subcommand("gc", "fast", "other", "--keep-fast", 0)
        self.assertEqual(line["evicted"], 0)
        self.run_cli("checkpoint", "drain", "fast", "slow")
        self.assertEqual(self.states("fast", "slow"), {("default", 1, 0): "durable"})

    def test_what_a_killed_measurement_left_goes_when_it_is_old(self):
        self.save(1, fast=None)
        folder = self.dir / "slow" / "penstock-ceiling"
        process = self.started("bench", f"slow,{NEVER}", "--payload", "6MiB", "--steps", 2, "--every", 1)
        self.until(lambda: folder.exists() or process.poll() is not None, "never measured")
        process.kill()
        process.wait()
        (folder / "rank-7.bin").write_bytes(b"of another rank")
        self.assertNotIn("ceiling", self.run_cli("checkpoint", "gc", "slow").stderr)
        self.assertTrue(folder.exists(), "somebody may be measuring")
        for path in (*folder.iterdir(), folder):
            os.utime(path, (time.time() - 7200,) * 2)
        self.assertIn(message("ceiling-leftovers-removed", name="slow"), self.run_cli("checkpoint", "gc", "slow").stderr)
        self.assertFalse(folder.exists())
        self.assertEqual(self.subcommand("verify", "slow")[-1]["wrong"], 0)


class DuringATraining(CheckpointTest):
    """verify takes no lock: what it reads may be pruned and evicted meanwhile."""

    def test_what_is_taken_away_meanwhile_is_not_wrong(self):
        for step in (1, 2, 3):
            self.save(step, "--keep", 5, fast=None)
        process = self.started("verify", "slow,fail=read/rank-0:hang=3s@#1", "--json")
        self.until(lambda: any("000000000001.0/rank-0.bin" in name for name in self.open_files(process)), "never read")
        process.send_signal(signal.SIGSTOP)
        line, = self.subcommand("gc", "slow", "--keep", 1)
        self.assertEqual(line["pruned"], 2)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 0, out + err)
        *copies, summary = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(line["step"], line["gone"], line["problem"]) for line in copies], [(1, False, ""), (2, True, ""), (3, False, "")],
                         "of the first it had its file open")
        self.assertEqual((summary["copies"], summary["gone"], summary["wrong"], summary["verdict"]), (2, 1, 0, "ok"))

    def test_a_training_that_saves_and_prunes_is_left_alone(self):
        self.run_cli("checkpoint", "save", "slow", "--burst-buffer", "fast", "--payload", "1MiB", "--run", "mine")  # else bench removes its stores
        process = self.started("bench", "slow", "--burst-buffer", "fast", "--payload", "1MiB", "--steps", 400, "--every", 1, "--step-time", "2ms",
                               "--repeat", 1, "--keep", 1, "--keep-fast", 0, "--arms", "burst-buffer", "--seed", 5)
        stores = [self.dir / "slow", self.dir / "fast"]
        self.until(lambda: all(penstock_cli.present(store, "ckpt/*/*/MANIFEST") for store in stores) or process.poll() is not None, "never saved")
        looks = 0
        while process.poll() is None:
            self.assertEqual(self.subcommand("verify", *stores)[-1]["wrong"], 0)
            self.subcommand("ls", *stores)
            looks += 1
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertGreater(looks, 0)


class Usage(CheckpointTest):
    def test_wrong_arguments(self):
        for args, words in (((), ["SUBCOMMAND"]), (("save",), ["STORE"]), (("sav", "slow"), ["sav", "save"]),
                            (("ls", "slow", "--payload", "1MiB"), ["--payload", "save"]), (("drain", "a", "b", "--to", "c"), ["restore"]),
                            (("ls", "slow", "--seed", 1), ["--seed", "save"]), (("ls", "slow", "--results", "x"), ["--results", "save"]),
                            (("save", "slow"), ["--payload", "--from"]), (("save", "slow", *PAYLOAD, "--from", "x"), ["either"]),
                            (("save", "slow", "--payload", "nosuch"), ["nosuch", "alexnet"]), (("save", "slow", *PAYLOAD, "--step", "x"), ["step"]),
                            (("save", "slow", *PAYLOAD, "--run", ".x"), [".x"]), (("save", "a", "b", *PAYLOAD), ["--burst-buffer"]),
                            (("save", "a", "b", "c", *PAYLOAD), ["save needs"]), (("save", "a", "b", "--burst-buffer", "c", *PAYLOAD), ["one STORE"]),
                            (("save", "a", *PAYLOAD, "--keep", 0), ["keep"]), (("save", "a", *PAYLOAD, "--step", -1), ["step"]),
                            (("save", "a", *PAYLOAD, "--keep-fast", -1), ["keep-fast"]), (("save", "a", *PAYLOAD, "--timeout", "-1s"), ["timeout"]),
                            (("save", "a", "--payload", "0"), ["payload"]), (("save", "a", "--payload", "alexnet-adam/0"), ["payload"]),
                            (("save", "a", *PAYLOAD, "--headroom", "-1"), ["headroom"]), (("restore", "a", "--step", -1), ["step"]),
                            (("gc", "a", "--keep", 0), ["keep"]), (("gc", "a", "--keep-fast", -1), ["keep-fast"]),
                            (("save", "a", *PAYLOAD, "--on-full", "x"), ["writethrough"]),
                            (("save", "nosuch:/x", *PAYLOAD), ["nosuch"])):
            self.fails(2, *args, words=words)
        self.assertEqual(list(self.dir.iterdir()), [])
        self.save(1)
        self.save(1, slow="slow2", fast=None)
        self.fails(2, "save", "slow", "slow2", *PAYLOAD, words=["both slow"])
        self.fails(2, "save", "fast", *PAYLOAD, words=["fast"])
        (self.dir / "alias").symlink_to(self.dir / "slow")
        self.fails(2, "ls", "slow", "alias", words=[message("stores-are-the-same")])

    def test_a_folder_of_other_things_is_no_store(self):
        (self.dir / "data").mkdir()
        (self.dir / "data" / "mine.txt").write_text("x")
        self.fails(2, "save", "data", *PAYLOAD, words=["data"])
        self.assertEqual([path.name for path in (self.dir / "data").iterdir()], ["mine.txt"])

    def test_flags_from_a_file_are_for_the_subcommands_that_take_them(self):
        (self.dir / "flags.yaml").write_text("payload: 1MiB\nrun: mine\n")
        self.save(1, "--config", "flags.yaml", fast=None, what=())
        self.assertEqual([line["run"] for line in self.subcommand("ls", "slow", "--config", "flags.yaml")], ["mine"])


if __name__ == "__main__":
    penstock_cli.main()
