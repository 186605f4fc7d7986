#!/usr/bin/env python3
"""`penstock train --checkpoint-every`: what is saved while a training goes on, and how it ends."""

import collections
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from messages import message
import penstock_cli
from penstock_cli import PENSTOCK
from test_ranks import ENVIRONMENT, open_mpi
from train_case import value
from train_checkpoint_case import CheckpointCase, acks, lines


class Saving(CheckpointCase):
    def test_every_n_steps_and_durable_at_the_end(self):
        record = self.train("--steps", 12, "--ack-log", "acks", "--accelerator", "emulated:step=5ms")
        self.assertIn(record["verdict"], ("ok", "client_bound"), record["reason"])
        self.assertEqual(value(record, "checkpoints"), 4)
        self.assertEqual(record["metrics"]["checkpoint_bytes"]["samples"], [2 << 20] * 4)
        for metric in ("checkpoint_block_s", "checkpoint_fast_s", "checkpoint_durable_s"):
            self.assertEqual(len(record["metrics"][metric]["samples"]), 4, metric)
        self.assertEqual(value(record, "checkpoint_skips"), 0)
        self.assertGreater(value(record, "backlog_most_bytes"), 0)
        self.assertIn("checkpoint_finalize_s", record["metrics"])
        self.assertEqual(record["parameters"]["checkpoint_every"], 3)
        self.assertEqual(record["parameters"]["mtbf_s"], 24 * 3600)
        young, daly = (value(record, f"checkpoint_interval_s.{name}") for name in ("young", "daly"))
        self.assertAlmostEqual(young, (2 * value(record, "checkpoint_block_s") * 24 * 3600) ** 0.5, places=6)
        self.assertLess(daly, 1.1 * young)
        self.assertNotIn("step_inflation", record["metrics"], "these steps end at deadlines")
        self.assertEqual(record["parameters"]["payload_bytes"], 2 << 20)
        self.assertEqual([record["tiers"][role]["root"] for role in ("checkpoint", "burst_buffer")], [str(self.dir / "slow"), str(self.dir / "fast")])
        self.assertEqual(acks(self.dir / "acks"), {"fast": [3, 6, 9, 12], "durable": [3, 6, 9, 12]})
        self.assertEqual(self.saved("slow"), [9, 12], "two are kept")

    def test_without_a_burst_buffer_all_are_durable_at_once(self):
        record = self.train("--steps", 7, "--ack-log", "acks", "--keep", 5, tiers=("--checkpoint-to", "slow", "--payload", "1MiB"), every=2)
        self.assertEqual(acks(self.dir / "acks"), {"durable": [2, 4, 6]})
        self.assertEqual(self.saved("slow"), [2, 4, 6])
        self.assertNotIn("checkpoint_fast_s", record["metrics"])
        self.assertFalse((self.dir / "fast").exists())

    def test_steps_that_work_tell_how_much_longer_a_drain_makes_them(self):
        # A drain takes two seconds, and the hundred steps during which it starts less. On a busy machine it starts late.
        record = self.train("--steps", 200, "--accelerator", "emulated:step=2ms,burn=cpu:1", every=100,
                            tiers=("--checkpoint-to", "slow,write_limit=1MiB/s", "--burst-buffer", "fast", "--payload", "2MiB"))
        for name in ("step_inflation", "burn_rounds_per_s", "step_overshoot"):
            self.assertIn(name, record["metrics"])

    def test_the_time_of_saves_is_no_wait_for_input(self):
        slow = ("--checkpoint-to", "posix:slow,write_limit=8MiB/s", "--payload", "2MiB")
        record = self.train("--steps", 6, "--accelerator", "emulated:step=1ms", tiers=slow)
        blocked = sum(record["metrics"]["checkpoint_block_s"]["samples"])
        self.assertGreater(blocked, 0.3)
        self.assertGreater(value(record, "wall_s"), blocked)
        self.assertLess(value(record, "input_wait_s"), value(record, "wall_s") - blocked)

    def test_a_timeline_has_them(self):
        self.train("--steps", 6, "--timeline", "run.csv")
        rows = (self.dir / "run.csv").read_text().splitlines()[1:]
        self.assertEqual(sum(",Checkpoint Listener," in row for row in rows), 2)

    def test_cifar_can_save_behind_steps_too(self):
        subprocess.run([PENSTOCK, "generate", "cifar10", "--out", str(self.dir / "cifar"), "--samples", "40", "--set", "samples_per_file=20",
                        "--seed", "7"], check=True, capture_output=True, cwd=self.dir)
        record = self.train("--epochs", 2, app="cifar", data="cifar", every=5)
        self.assertEqual(value(record, "checkpoints"), 4)
        self.assertFalse((self.dir / "slow" / "penstock-cifar.ckpt").exists())

    def test_arguments_that_lack_something(self):
        for args, words in ((("--checkpoint-every", 2), "needs --checkpoint-to"), (("--burst-buffer", "fast"), "--burst-buffer goes with"),
                            (("--resume",), "--resume goes with"), (("--checkpoint-to", "slow"), "--checkpoint-every N")):
            done = self.run_cli(*self.words("--steps", 3, *args, tiers=(), every=None), expect=2)
            self.assertIn(words, done.stderr)
        for args, words in ((("--tier", "more=posix:."), "--tier"), (("--on-error", "skip"), "--on-error skip"), (("--run", "../x"), "../x"),
                            (("--payload", "nonsense"), "nonsense"), (("--burst-buffer", "slow"), "two different tiers"), (("--mtbf", "0s"), "--mtbf 0"),
                            (("--mtbf", "-1h"), "mtbf"), (("--keep", 0), "keep"), (("--keep-fast", -1), "keep-fast"), (("--grace", "-1s"), "grace"),
                            (("--on-full-timeout", "-1s"), "on-full-timeout"), (("--payload", 0), "payload")):
            self.assertIn(words, self.run_cli(*self.words("--steps", 3, *args, tiers=("--checkpoint-to", "slow")), expect=2).stderr)
        self.assertFalse((self.dir / "slow").exists(), "said before anything is made")

    def test_a_tier_that_fails(self):
        record = self.train("--steps", 6, tiers=("--checkpoint-to", "posix:slow,fail=publish/rank-0.bin:eio@#2", "--payload", "1MiB"), expect=1)
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(message("checkpoint-of-step-failed", n=6), record["reason"])
        self.assertEqual(self.saved("slow"), [3])


class Ending(CheckpointCase):
    def endless(self, *args, slow="slow", step="10ms", **kwargs):
        tiers = ("--checkpoint-to", slow, "--burst-buffer", "fast", "--payload", "2MiB")
        return self.words("--epochs", 100000, "--ack-log", "acks", "--accelerator", f"emulated:step={step}", *args, tiers=tiers, **kwargs)

    def stop(self, *args, what, **kwargs):
        process = self.start(*self.endless(*args, **kwargs))
        self.wait_for(lambda: what(acks(self.dir / "acks")), process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        return process.returncode, err

    def test_the_second_trainer_is_kept_out(self):
        process = self.start(*self.endless())
        self.wait_for(lambda: acks(self.dir / "acks")["durable"], process)
        try:
            for args in ((), ("--resume",)):
                self.run_cli(*self.words("--steps", 3, *args), expect=5)
            self.train("--steps", 3, "--run", "another")
        finally:
            process.terminate()
            process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 143)

    def test_without_grace_what_is_not_durable_stays(self):
        # Three checkpoints of 2 MiB are there long before the first is drained.
        code, err = self.stop("--sample-log", "first", slow="posix:slow,write_limit=256KiB/s", what=lambda seen: len(seen["fast"]) >= 3)
        self.assertEqual(code, 143, err)
        seen = acks(self.dir / "acks")
        self.assertLess(len(seen["durable"]), len(seen["fast"]))
        self.assertIn(message("checkpoint-not-durable"), err)
        record, = [json.loads(line) for file in (self.dir / "penstock-results").glob("*.jsonl") for line in file.read_text().splitlines()]
        self.assertEqual(record["verdict"], "interrupted")
        last = seen["fast"][-1]
        record = self.train("--steps", last + 2, "--resume", "--sample-log", "first", "--ack-log", "acks")
        used = [step for _, step, _, _ in lines(self.dir / "first")]
        self.assertEqual(used, sorted(list(range(last + 2)) * 4), "each step once, in one log")
        self.assertEqual(record["parameters"]["resumed_step"], last)
        self.assertEqual(acks(self.dir / "acks")["durable"][-1], last, "drained by the one that went on")
        self.assertEqual(self.saved("slow")[-1], last)

    def test_a_grace_that_is_shorter_than_the_drain(self):
        # A checkpoint of 2 MiB is drained in a second: of three, some are not by then.
        since = time.monotonic()
        code, err = self.stop("--grace", "1s", slow="posix:slow,write_limit=2MiB/s", what=lambda seen: len(seen["fast"]) >= 5)
        self.assertEqual(code, 143, err)
        self.assertGreaterEqual(time.monotonic() - since, 1, "it takes the time that it is given")
        seen = acks(self.dir / "acks")
        self.assertLess(len(seen["durable"]), len(seen["fast"]))
        self.assertIn(message("checkpoint-not-durable"), err)
        last = seen["fast"][-1]
        record = self.train("--steps", last + 2, "--resume", "--ack-log", "acks")
        self.assertEqual(record["parameters"]["resumed_step"], last)
        self.assertEqual(acks(self.dir / "acks")["durable"][-1], last, "drained by the one that went on")

    def test_a_run_that_has_made_all_its_steps_drains_in_its_grace_alike(self):
        self.stop(slow="posix:slow,write_limit=256KiB/s", what=lambda seen: len(seen["fast"]) >= 3)
        last = acks(self.dir / "acks")["fast"][-1]
        for grace in ((), ("--grace", "500ms")):
            words = self.words("--steps", last, "--resume", "--ack-log", "acks", *grace,
                               tiers=("--checkpoint-to", "slow,write_limit=256KiB/s", "--burst-buffer", "fast", "--payload", "2MiB"))
            process = self.start(*words)
            self.wait_for(lambda: any((self.dir / "slow" / "tmp").iterdir()), process)
            since = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
            self.assertEqual(process.returncode, 143, err)
            self.assertGreaterEqual(time.monotonic() - since, 0.5 if grace else 0)
            self.assertIn(message("all-steps-done"), err)
            self.assertIn("warning: ", err)
            self.assertIn(message("checkpoint-not-durable"), err)
            self.assertNotIn("penstock train: ", err, "no failure")
            self.assertLess(len(acks(self.dir / "acks")["durable"]), len(acks(self.dir / "acks")["fast"]))
        self.run_cli(*self.words("--steps", last, "--resume", "--ack-log", "acks"))
        self.assertEqual(acks(self.dir / "acks")["durable"][-1], last)

    def test_with_grace_the_drain_ends(self):
        code, err = self.stop("--grace", "60s", slow="posix:slow,write_limit=2MiB/s", what=lambda seen: len(seen["fast"]) >= 2)
        self.assertEqual(code, 143, err)
        seen = acks(self.dir / "acks")
        self.assertEqual(seen["durable"], seen["fast"])
        self.assertNotIn(message("checkpoint-not-durable"), err)

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_killed_ranks_go_on_where_they_stood(self):
        # Epochs of three steps of 4 x 4 of the 50 pictures; a drain of 2 MiB takes half a second.
        words = self.endless("--sample-log", "log", slow="posix:slow,write_limit=4MiB/s", step="40ms", every=2)
        process = subprocess.Popen(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", "4", str(PENSTOCK), *map(str, words)],
                                   cwd=self.dir, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        self.wait_for(lambda: acks(self.dir / "acks")["durable"] and acks(self.dir / "acks")["fast"][-1] >= 8, process)
        found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
        for pid in found:
            os.kill(int(pid), signal.SIGKILL)
        process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertNotEqual(process.returncode, 0)
        seen = acks(self.dir / "acks")
        for tier in ("fast", "slow"):
            shutil.copytree(self.dir / tier, self.dir / f"{tier}-then")

        # All tiers are there: not a step that was acknowledged is lost.
        self.assert_whole_epochs(seen["fast"][-1])
        # And without the fast one, none that was durable.
        shutil.rmtree(self.dir / "fast")
        shutil.rmtree(self.dir / "slow")
        (self.dir / "slow-then").rename(self.dir / "slow")
        self.assert_whole_epochs(seen["durable"][-1])

    def assert_whole_epochs(self, at_least):
        """Continues on 4 ranks to the end of the epoch after that of the restored step: each sample of an epoch is in its logs once."""
        end = (at_least // 3 + 3) * 3
        record = self.train("--steps", end, "--resume", "--sample-log", "log", ranks=4, every=2)
        restored = record["parameters"]["resumed_step"]
        self.assertGreaterEqual(restored, at_least)
        used = collections.defaultdict(list)
        for rank in range(4):
            for epoch, _, _, index in lines(self.dir / f"log.{rank}"):
                used[epoch].append(index)
        self.assertEqual({epoch: len(indices) for epoch, indices in used.items()}, {epoch: 48 for epoch in range(end // 3)})
        self.assertEqual({epoch: len(set(indices)) for epoch, indices in used.items()}, {epoch: 48 for epoch in range(end // 3)})


if __name__ == "__main__":
    penstock_cli.main()
