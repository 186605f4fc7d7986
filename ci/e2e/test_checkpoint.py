"""checkpoint from outside: every verb, every exit code, and what a kill, a lost tier and a flipped bit leave behind."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import penstock_cli
from manifest_file import crc32c
from test_ranks import RanksTest, open_mpi

SLOWLY = "write_limit=4MB/s"    # the first 4 MiB of a payload of 6 MiB take a second
NEVER = "write_limit=100kB/s"   # longer than any test looks on
FULL = "slow,capacity=1MiB"     # nothing ever drains to it
PAYLOAD = ("--payload", "6MiB", "--seed", 5)
NOT_DURABLE, NOTHING, LOCKED = 3, 4, 5


def flip(path, at=-1):
    data = bytearray(path.read_bytes())
    data[at if at >= 0 else len(data) // 2] ^= 0x10
    path.write_bytes(data)


class CheckpointTest(RanksTest):
    """Stores called fast and slow in the test's folder, and short words for the verbs."""

    def verb(self, verb, *args, **kwargs):
        """Runs it with --json and returns its lines."""
        return self.records("checkpoint", verb, *args, **kwargs)

    def save(self, step, *args, slow="slow", fast="fast", what=PAYLOAD, **kwargs):
        buffer = ("--burst-buffer", fast) if fast else ()
        line, = self.verb("save", slow, *buffer, *what, "--step", step, *args, **kwargs)
        return line

    def fails(self, code, *args, words=()):
        """Ends with that code, says the words on stderr, and nothing on stdout."""
        done = self.run_cli("checkpoint", *args, expect=code)
        self.assertEqual(done.stdout, "", "diagnostics belong on stderr")
        for word in words:
            self.assertIn(str(word), done.stderr)
        return done

    def restore(self, *args, stores=("fast", "slow"), **kwargs):
        line, = self.verb("restore", *stores, *args, **kwargs)
        return line

    def states(self, *stores):
        return {(line["run"], line["step"], line["generation"]): line["state"] for line in self.verb("ls", *(stores or ("fast", "slow")))}

    def file(self, store, step, generation=0, run="default", name="rank-0.bin"):
        return self.dir / store / "ckpt" / run / f"{step:012d}.{generation}" / name

    def drain_stuck(self, step, *args):
        """Leaves a checkpoint on the fast tier alone: the slow one has no room for it."""
        return self.save(step, "--timeout", "50ms", *args, slow=FULL, expect=NOT_DURABLE)

    def until(self, holds, what):
        end = time.monotonic() + penstock_cli.PATIENCE_S
        while not holds():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def started(self, *args):
        process = self.start("checkpoint", *args)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        return process

    def open_files(self, process):
        self.assertIsNone(process.poll(), "ended too early")
        for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                yield os.readlink(link)
            except OSError:
                pass  # closed meanwhile

    def in_the_making(self, store):
        folder = self.dir / store / "tmp"
        return folder.exists() and any(folder.iterdir())


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
        looked, = self.verb("restore", "slow")
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
        self.fails(2, "save", "slow", "--from", "out", words=["restart.json", "remove it"])
        (self.dir / "out" / "restart.json").unlink()
        self.assert_same_tree("state", "out")
        for name in ("MANIFEST", "part-1", ".hidden", "new\nline"):
            (self.dir / "state" / name).write_text("x")
            self.fails(2, "save", "slow", "--from", "state", words=["no name of a file in a checkpoint"])
            (self.dir / "state" / name).unlink()
        (self.dir / "state" / "deep").mkdir()
        self.fails(2, "save", "slow", "--from", "state", words=["deep", "files alone"])
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
        self.assertIn("every byte proven against the seed", done.stdout)
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
        self.assertEqual([line["durability"] for line in self.verb("status", memory)], ["volatile"])
        self.assertIn("volatile", self.run_cli("checkpoint", "status", memory).stdout)

    def test_acknowledgements_are_logged(self):
        self.save(1, "--ack-log", "acks")
        self.save(2, "--ack-log", "acks")
        self.save(3, "--ack-log", "acks", fast=None)
        self.assertEqual((self.dir / "acks").read_text().split("\n"), ["1 fast", "1 durable", "2 fast", "2 durable", "3 durable", ""])
        self.fails(1, "save", "slow", *PAYLOAD, "--ack-log", "no/such/folder/acks", words=["log of acknowledgements"])

    def test_not_durable_in_time_is_exit_3(self):
        line = self.drain_stuck(1, "--ack-log", "acks")
        self.assertEqual((line["reached"], line["verdict"], line["durable_s"]), ("fast", "timed_out", None))
        self.assertEqual((self.dir / "acks").read_text(), "1 fast\n")
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        done = self.run_cli("checkpoint", "save", FULL, "fast", *PAYLOAD, "--step", 2, "--timeout", "100ms", expect=NOT_DURABLE)
        self.assertIn("penstock checkpoint drain", done.stderr)
        self.assertIn("no room", done.stderr)

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
        self.fails(1, "save", FULL, "--burst-buffer", small, *PAYLOAD, "--step", 3, "--block-for", "50ms", words=["fast"])
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


class Looking(CheckpointTest):
    def test_ls_tells_states_from_what_lies_there(self):
        self.save(1, "--keep-fast", 0)
        self.save(2)
        self.drain_stuck(3)
        self.assertEqual(self.states(), {("default", 1, 0): "durable", ("default", 2, 0): "both", ("default", 3, 0): "fast_committed"})
        self.assertEqual(self.states("slow", "fast"), self.states())
        line = self.verb("ls", "fast", "slow")[-1]
        self.assertEqual((line["bytes"], line["ranks"], line["files"], line["epoch"]), (6 << 20, 1, 1, 0))
        self.assertLess(line["age_s"], 600)
        self.assertIn("fast committed", self.run_cli("checkpoint", "ls", "fast", "slow").stdout)

    def test_nothing_there(self):
        self.save(1, "--run", "gone", fast=None)
        shutil.rmtree(self.dir / "slow" / "ckpt" / "gone")
        self.assertEqual(self.verb("ls", "slow"), [])
        self.assertEqual(self.run_cli("checkpoint", "ls", "slow").stdout, "no checkpoints\n")
        self.assertEqual(self.verb("verify", "slow")[-1]["copies"], 0)
        self.fails(NOTHING, "restore", "slow", words=["no checkpoint"])
        self.fails(1, "ls", "nowhere", words=["nowhere"])

    def test_verify_reads_all_and_names_what_is_wrong(self):
        for step in (1, 2):
            self.save(step, "--keep-fast", 2)
        lines = self.verb("verify", "fast", "slow")
        self.assertEqual([line["problem"] for line in lines[:-1]], [""] * 4)
        self.assertTrue(all(line["proven"] for line in lines[:-1]))
        self.assertEqual((lines[-1]["copies"], lines[-1]["wrong"], lines[-1]["bytes"], lines[-1]["verdict"]), (4, 0, 4 * 6 << 20, "ok"))
        flip(self.file("slow", 1))
        os.truncate(self.file("fast", 2), 1_000_000)
        lines = self.verb("verify", "fast", "slow", expect=1)
        wrong = {(line["tier"], line["step"]) for line in lines[:-1] if line["problem"]}
        self.assertEqual(wrong, {("slow", 1), ("fast", 2)})
        done = self.run_cli("checkpoint", "verify", "fast", "slow", expect=1)
        self.assertIn("rank-0.bin", done.stdout)
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
        lines = self.verb("verify", "slow", expect=1)
        self.assertEqual([bool(line["problem"]) for line in lines[:-1]], [True, False])
        self.assertIn("has right checksums, but", lines[0]["problem"])
        self.fails(1, "restore", "slow", "--step", 1, "--to", "out", words=["right checksums"])
        self.assertFalse((self.dir / "out" / "rank-0.bin").exists())

    def test_status(self):
        self.save(1, "--keep-fast", 1)
        self.drain_stuck(2)
        by_role = {line["role"]: line for line in self.verb("status", "slow", "fast")}
        self.assertEqual((by_role["fast"]["checkpoints"], by_role["fast"]["backlog_bytes"]), (2, 6 << 20))
        self.assertEqual((by_role["slow"]["checkpoints"], by_role["slow"]["backlog_bytes"]), (1, None))
        self.assertEqual(by_role["slow"]["bytes"], 6 << 20)
        self.assertEqual([by_role[role]["locks"] for role in ("fast", "slow")], [[], []])
        self.assertNotEqual(by_role["fast"]["uuid"], by_role["slow"]["uuid"])
        self.assertGreater(by_role["slow"]["room_bytes"], 0)


class Restoring(CheckpointTest):
    def test_a_lost_fast_tier(self):
        self.save(1)
        shutil.rmtree(self.dir / "fast")
        done = self.run_cli("checkpoint", "restore", "fast", "slow", "--to", "out")
        self.assertIn("going on without it", done.stderr)
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
        self.assertIn("2 were found wrong", done.stderr)
        self.assertEqual(done.stdout.count("rejected"), 2)
        self.assertFalse((self.dir / "out").exists())

    def test_a_certain_step(self):
        for step in (1, 2):
            self.save(step, fast=None)
        self.restore("--step", 1, "--to", "out", stores=("slow",))
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 1).read_bytes())
        self.fails(NOTHING, "restore", "slow", "--step", 3, words=["no checkpoint"])

    def test_a_store_that_cannot_be_read_is_no_fresh_start(self):
        self.save(1)
        (self.dir / "slow" / "STORE.json").write_text("{}")
        self.fails(NOTHING, "restore", "fast", "slow", words=["STORE.json"])
        self.fails(1, "ls", "fast", "slow", words=["STORE.json"])
        self.assertEqual(self.restore(stores=("fast",))["bytes"], 6 << 20)
        self.fails(NOTHING, "restore", "fast,fail=read:eio@1", words=["fast"])

    def test_runs(self):
        for run in ("one", "two"):
            self.save(1, "--run", run, fast=None)
        for verb in ("restore", "save"):
            self.fails(2, verb, "slow", *(PAYLOAD if verb == "save" else ()), words=["--run", "one, two"])
        restored, = self.verb("restore", "slow", "--run", "two")
        self.assertEqual(restored["run"], "two")
        self.fails(NOTHING, "restore", "slow", "--run", "three", words=["one, two"])
        for verb in ("ls", "verify", "gc", "status"):
            self.fails(1, verb, "slow", "--run", "three", words=["one, two"])
        self.fails(2, "ls", "slow", "--run", "../etc", words=["../etc"])
        self.assertEqual(len(self.verb("ls", "slow")), 2)
        self.assertEqual(len(self.verb("ls", "slow", "--run", "one")), 1)

    def test_it_does_not_touch_what_others_put_there(self):
        self.save(1, fast=None)
        (self.dir / "out").mkdir()
        (self.dir / "out" / "rank-0.bin").write_text("mine")
        self.fails(1, "restore", "slow", "--to", "out", words=["rank-0.bin", "--replace"])
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_text(), "mine")
        self.restore("--to", "out", "--replace", stores=("slow",))
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 1).read_bytes())

    def test_a_restore_that_failed_is_none(self):
        """restart.json stands for a whole one, and no file is half."""
        self.save(1, fast=None)
        self.restore("--to", "out", stores=("slow",))
        self.run_cli("checkpoint", "restore", "slow", "--to", "out,fail=write:enospc@#1", "--replace", expect=1)
        self.assertFalse((self.dir / "out" / "restart.json").exists())
        self.assertEqual((self.dir / "out" / "rank-0.bin").read_bytes(), self.file("slow", 1).read_bytes())

    def test_signals(self):
        self.save(1, fast=None)
        for how in (signal.SIGINT, signal.SIGTERM):
            process = self.started("restore", "slow,read_limit=100kB/s", "--to", f"out{int(how)}")
            self.until(lambda: any("rank-0.bin" in name for name in self.open_files(process)), "never read")
            process.send_signal(how)
            process.communicate(timeout=penstock_cli.PATIENCE_S)
            self.assertEqual(process.returncode, 128 + how)
            self.assertFalse((self.dir / f"out{int(how)}" / "rank-0.bin").exists())


class Draining(CheckpointTest):
    def test_another_process_drains_what_was_left(self):
        for step in (1, 2):
            self.drain_stuck(step)
        drained, = self.verb("drain", "slow", "fast", "--read-back")
        self.assertEqual((drained["copied"], drained["evicted"], drained["left"], drained["verdict"]), (2, 2, 0, "ok"))
        self.assertEqual(self.states(), {("default", 1, 0): "durable", ("default", 2, 0): "durable"})
        self.assertTrue(self.restore()["proven"])
        again, = self.verb("drain", "fast", "slow")
        self.assertEqual((again["copied"], again["evicted"]), (0, 0))

    def test_a_copy_that_is_wrong_when_read_back_leaves_the_fast_one(self):
        self.drain_stuck(1)
        self.run_cli("checkpoint", "drain", "fast", "slow,fail=read/rank-0:flip@#1", "--read-back", expect=1)
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.run_cli("checkpoint", "drain", "fast", "slow", "--read-back")
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})

    def test_the_newest_may_stay_on_the_fast_tier(self):
        for step in (1, 2):
            self.drain_stuck(step)
        self.run_cli("checkpoint", "drain", "fast", "slow", "--keep-fast", 1)
        self.assertEqual(self.states(), {("default", 1, 0): "durable", ("default", 2, 0): "both"})

    def test_not_durable_in_time_is_exit_3_and_goes_on(self):
        self.drain_stuck(1)
        done = self.run_cli("checkpoint", "drain", "fast", f"slow,{SLOWLY}", "--timeout", "200ms", expect=NOT_DURABLE)
        self.assertIn("goes on from there", done.stderr)
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.assertFalse(self.in_the_making("slow"))
        self.run_cli("checkpoint", "drain", "fast", "slow", "--timeout", "100s")
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})

    def test_a_wrong_one_never_becomes_durable(self):
        for step in (1, 2):
            self.drain_stuck(step)
        flip(self.file("fast", 1))
        drained, = self.verb("drain", "fast", "slow", expect=1)
        self.assertEqual((drained["copied"], drained["quarantined"], drained["verdict"]), (1, 1, "failed"))
        self.assertIn("rank-0.bin", drained["problems"][0])
        self.assertEqual(self.states(), {("default", 2, 0): "durable"})
        status = {line["role"]: line for line in self.verb("status", "fast", "slow")}
        self.assertGreater(status["fast"]["quarantined"], 0)

    def test_a_torn_copy_on_the_slow_tier_is_made_anew(self):
        self.save(1)
        self.file("slow", 1, name="MANIFEST").write_bytes(b"")
        drained, = self.verb("drain", "fast", "slow", expect=1)
        self.assertEqual((drained["copied"], drained["quarantined"], drained["left"]), (1, 1, 0))
        self.assertEqual(self.verb("verify", "fast", "slow")[-1]["wrong"], 0)

    def test_a_full_slow_tier_keeps_the_fast_copy(self):
        self.drain_stuck(1)
        done = self.fails(1, "drain", "fast", "slow,capacity=4MiB")
        self.assertIn("slow", done.stderr)
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.assertEqual(self.verb("verify", "fast", "slow")[-1]["wrong"], 0)

    def test_it_wants_one_of_each(self):
        self.save(1)
        self.fails(2, "drain", "slow", words=["one fast and one slow"])
        self.fails(2, "drain", "slow", "slow", words=["slow"])

    def test_one_at_a_time(self):
        self.save(1, "--keep-fast", 1)
        process = self.started("save", f"slow,{NEVER}", "--burst-buffer", "fast", *PAYLOAD, "--step", 2)
        self.until(lambda: self.states().get(("default", 2, 0)) == "fast_committed", "never on the fast tier")
        for args in (("drain", "fast", "slow"), ("save", "slow", "fast", *PAYLOAD), ("gc", "fast", "slow", "--run", "default")):
            self.fails(LOCKED, *args, words=["default", f"pid {process.pid}"])
        locks = [lock for line in self.verb("status", "fast", "slow") for lock in line["locks"]]
        self.assertEqual({lock["run"] for lock in locks}, {"default"})
        self.assertIn(f"pid {process.pid}", locks[0]["holder"])
        left, = self.verb("gc", "fast", "slow")
        self.assertIn(f"pid {process.pid}", left["locked"])
        self.assertEqual(self.restore()["proven"], True)
        self.assertEqual(self.save(1, "--run", "another")["reached"], "durable")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 143)
        drained, = self.verb("drain", "fast", "slow", "--run", "default")
        self.assertEqual((drained["copied"], drained["left"]), (1, 0))
        self.assertTrue(self.restore("--run", "default")["proven"])


class Killed(CheckpointTest):
    def kill_save(self, *args, store):
        """kill -9 while the files are on their way to that store."""
        process = self.started("save", *args)
        self.until(lambda: self.in_the_making(store) or process.poll() is not None, "never began")
        self.until(lambda: any(f"/{store}/" in name for name in self.open_files(process)), "never wrote")
        process.kill()
        process.wait()

    def test_in_the_middle_of_a_save(self):
        self.save(1)
        self.kill_save("slow", "--burst-buffer", f"fast,{NEVER}", *PAYLOAD, "--step", 2, store="fast")
        self.assertEqual(self.states(), {("default", 1, 0): "both"})
        self.assertEqual(self.verb("verify", "fast", "slow")[-1]["wrong"], 0)
        restored = self.restore("--to", "out")
        self.assertEqual((restored["lost_steps"], restored["proven"]), (0, True))
        status = {line["role"]: line for line in self.verb("status", "fast", "slow")}
        self.assertEqual(status["fast"]["in_the_making"], 1)
        line, = self.verb("gc", "fast", "slow")
        self.assertEqual((line["run"], line["swept"], line["pruned"]), ("default", 1, 0))
        self.assertFalse(self.in_the_making("fast"))
        self.assertEqual(self.states(), {("default", 1, 0): "both"})
        self.save(2)
        self.assertIn(("default", 2, 0), self.states())

    def test_in_the_middle_of_the_first_save_of_all(self):
        self.kill_save(f"slow,{NEVER}", *PAYLOAD, "--run", "first", store="slow")
        self.assertEqual(self.verb("ls", "slow"), [])
        self.assertEqual(self.verb("verify", "slow")[-1]["copies"], 0)
        self.fails(NOTHING, "restore", "slow", words=["no checkpoint"])
        line, = self.verb("gc", "slow")
        self.assertEqual((line["run"], line["swept"]), ("first", 1))
        self.assertFalse(self.in_the_making("slow"))

    def test_in_the_middle_of_a_drain(self):
        self.kill_save(f"slow,{NEVER}", "--burst-buffer", "fast", *PAYLOAD, "--step", 1, "--ack-log", "acks", store="slow")
        self.assertEqual((self.dir / "acks").read_text(), "1 fast\n")
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.assertTrue(self.restore()["proven"])
        self.run_cli("checkpoint", "drain", "fast", "slow")
        self.assertFalse(self.in_the_making("slow"), "what the dead one left is swept")
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})


class Clearing(CheckpointTest):
    def test_old_ones_go_when_asked(self):
        for step in range(1, 5):
            self.save(step, "--keep", 10, "--keep-fast", 10)
        line, = self.verb("gc", "fast", "slow")
        self.assertEqual((line["swept"], line["pruned"], line["evicted"], line["locked"]), (0, 0, 0, ""))
        line, = self.verb("gc", "fast", "slow", "--keep-fast", 2)
        self.assertEqual(line["evicted"], 2)
        self.assertEqual(sorted(self.states("fast")), [("default", 3, 0), ("default", 4, 0)])
        line, = self.verb("gc", "fast", "slow", "--keep", 2)
        self.assertEqual(line["pruned"], 2)
        self.assertEqual(sorted(self.states("slow")), [("default", 3, 0), ("default", 4, 0)])

    def test_wrong_ones_do_not_count(self):
        for step in (1, 2, 3):
            self.save(step, "--keep", 10, fast=None)
        flip(self.file("slow", 3))
        line, = self.verb("gc", "slow", "--keep", 1)
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
        line, = self.verb("gc", "fast", "other", "--keep-fast", 0)
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
        self.assertIn("ceiling of 'slow'", self.run_cli("checkpoint", "gc", "slow").stderr)
        self.assertFalse(folder.exists())
        self.assertEqual(self.verb("verify", "slow")[-1]["wrong"], 0)


class BesideATraining(CheckpointTest):
    """verify takes no lock: what it reads may be pruned and evicted meanwhile."""

    def test_what_is_taken_away_meanwhile_is_not_wrong(self):
        for step in (1, 2, 3):
            self.save(step, "--keep", 5, fast=None)
        process = self.started("verify", "slow,fail=read/rank-0:hang=3s@#1", "--json")
        self.until(lambda: any("000000000001.0/rank-0.bin" in name for name in self.open_files(process)), "never read")
        process.send_signal(signal.SIGSTOP)
        line, = self.verb("gc", "slow", "--keep", 1)
        self.assertEqual(line["pruned"], 2)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 0, out + err)
        *copies, summary = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(line["step"], line["gone"], line["problem"]) for line in copies], [(1, False, ""), (2, True, ""), (3, False, "")],
                         "of the first it had its file open")
        self.assertEqual((summary["copies"], summary["gone"], summary["wrong"], summary["verdict"]), (2, 1, 0, "ok"))

    def test_a_training_that_saves_and_prunes_is_left_alone(self):
        process = self.started("bench", "slow", "--burst-buffer", "fast", "--payload", "1MiB", "--steps", 400, "--every", 1, "--step-time", "2ms",
                               "--repeat", 1, "--keep", 1, "--keep-fast", 0, "--arms", "burst-buffer", "--seed", 5)
        stores = [self.dir / "slow", self.dir / "fast"]
        self.until(lambda: all(list(store.glob("ckpt/*/*/MANIFEST")) for store in stores) or process.poll() is not None, "never saved")
        looks = 0
        while process.poll() is None:
            self.assertEqual(self.verb("verify", *stores)[-1]["wrong"], 0)
            self.verb("ls", *stores)
            looks += 1
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertGreater(looks, 0)


class Usage(CheckpointTest):
    def test_wrong_words(self):
        for args, words in (((), ["VERB"]), (("save",), ["STORE"]), (("sav", "slow"), ["sav", "save"]),
                            (("ls", "slow", "--payload", "1MiB"), ["--payload", "save"]), (("drain", "a", "b", "--to", "c"), ["restore"]),
                            (("ls", "slow", "--seed", 1), ["--seed", "save"]), (("save", "slow", *PAYLOAD, "--results", "x"), ["--results"]),
                            (("save", "slow"), ["--payload", "--from"]), (("save", "slow", *PAYLOAD, "--from", "x"), ["either"]),
                            (("save", "slow", "--payload", "nosuch"), ["nosuch", "alexnet"]), (("save", "slow", *PAYLOAD, "--step", "x"), ["step"]),
                            (("save", "slow", *PAYLOAD, "--run", ".x"), [".x"]), (("save", "a", "b", *PAYLOAD), ["--burst-buffer"]),
                            (("save", "a", "b", "c", *PAYLOAD), ["save takes"]), (("save", "a", "b", "--burst-buffer", "c", *PAYLOAD), ["one STORE"]),
                            (("save", "a", *PAYLOAD, "--keep", 0), ["keep"]), (("save", "a", *PAYLOAD, "--on-full", "x"), ["writethrough"]),
                            (("save", "nosuch:/x", *PAYLOAD), ["nosuch"])):
            self.fails(2, *args, words=words)
        self.assertEqual(list(self.dir.iterdir()), [])
        self.save(1)
        self.save(1, slow="slow2", fast=None)
        self.fails(2, "save", "slow", "slow2", *PAYLOAD, words=["both slow"])
        self.fails(2, "save", "fast", *PAYLOAD, words=["fast"])
        (self.dir / "alias").symlink_to(self.dir / "slow")
        self.fails(2, "ls", "slow", "alias", words=["same checkpoint store"])

    def test_a_folder_of_other_things_is_no_store(self):
        (self.dir / "data").mkdir()
        (self.dir / "data" / "mine.txt").write_text("x")
        self.fails(2, "save", "data", *PAYLOAD, words=["data"])
        self.assertEqual([path.name for path in (self.dir / "data").iterdir()], ["mine.txt"])

    def test_flags_from_a_file_are_for_the_verbs_that_take_them(self):
        (self.dir / "flags.yaml").write_text("payload: 1MiB\nrun: mine\n")
        self.save(1, "--config", "flags.yaml", fast=None, what=())
        self.assertEqual([line["run"] for line in self.verb("ls", "slow", "--config", "flags.yaml")], ["mine"])


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class OverRanks(CheckpointTest):
    def over_json(self, ranks, *args, **kwargs):
        return [json.loads(line) for line in self.over(ranks, "checkpoint", *args, "--json", **kwargs).stdout.splitlines()]

    def test_four_save_and_any_number_restores(self):
        saved, = self.over_json(4, "save", "slow", "--burst-buffer", "fast", *PAYLOAD, "--step", 9, "--ack-log", "acks")
        self.assertEqual((saved["ranks"], saved["bytes"], saved["reached"]), (4, 6 << 20, "durable"))
        self.assertEqual((self.dir / "acks").read_text(), "9 fast\n9 durable\n")
        line, = self.verb("ls", "fast", "slow")
        self.assertEqual((line["ranks"], line["files"], line["state"]), (4, 4, "both"))
        for ranks in (4, 3, 1):
            out = f"out{ranks}"
            restored, = self.over_json(ranks, "restore", "fast", "slow", "--to", out)
            self.assertEqual((restored["ranks"], restored["proven"], restored["bytes"]), (ranks, True, 6 << 20))
            self.assertEqual(sorted(path.name for path in (self.dir / out).iterdir()), [f"rank-{i}.bin" for i in range(4)] + ["restart.json"])
            for i in range(4):
                name = f"rank-{i}.bin"
                self.assertEqual((self.dir / out / name).read_bytes(), self.file("slow", 9, name=name).read_bytes())
        flip(self.file("fast", 9, name="rank-2.bin"))
        flip(self.file("slow", 9, name="rank-3.bin"))
        done = self.over(4, "checkpoint", "restore", "fast", "slow", expect=NOTHING)
        self.assertEqual(done.stderr.count("were found wrong"), 1, done.stderr)

    def test_files_are_dealt_out(self):
        (self.dir / "state").mkdir()
        for i in range(5):
            (self.dir / "state" / f"part{i}").write_bytes(bytes([i]) * 1000)
        self.over(2, "checkpoint", "save", "slow", "--from", "state")
        self.restore("--to", "out", stores=("slow",))
        (self.dir / "out" / "restart.json").unlink()
        self.assert_same_tree("state", "out")
        done = self.over(6, "checkpoint", "save", "slow", "--from", "state", expect=2)
        self.assertEqual(done.stderr.count("5 files"), 1, done.stderr)

    def test_what_ends_it_is_said_once(self):
        for verb in ("ls", "verify", "drain", "gc", "status"):
            done = self.over(2, "checkpoint", verb, "slow", expect=2)
            self.assertEqual(done.stderr.count("launched as 2 ranks"), 1, done.stderr)
        done = self.over(2, "checkpoint", "restore", "nowhere", expect=NOTHING)
        self.assertEqual(done.stderr.count("penstock checkpoint:"), 1, done.stderr)
        process = self.started("save", f"slow,{NEVER}", *PAYLOAD)
        self.until(lambda: self.in_the_making("slow"), "never began")
        done = self.over(2, "checkpoint", "save", "slow", *PAYLOAD, expect=LOCKED)
        self.assertEqual(done.stderr.count(f"pid {process.pid}"), 1, done.stderr)

    def test_not_durable_in_time(self):
        done = self.over(2, "checkpoint", "save", FULL, "--burst-buffer", "fast", *PAYLOAD, "--timeout", "200ms", expect=NOT_DURABLE)
        self.assertEqual(done.stderr.count("goes on from there"), 1, done.stderr)


if __name__ == "__main__":
    penstock_cli.main()
