#!/usr/bin/env python3
"""`penstock train --checkpoint-every`: what is saved while a training goes on, and that it goes on where it stood."""

import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import penstock_cli
from penstock_cli import PENSTOCK
from test_ranks import ENVIRONMENT, RanksTest, open_mpi
from train_case import value

SAMPLES = 50
TIERS = ("--checkpoint-to", "slow", "--burst-buffer", "fast", "--payload", "2MiB")


def lines(path):
    """A sample log: (epoch, step, rank, index) a line."""
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def acks(path):
    """An --ack-log: level -> steps, in order."""
    levels = collections.defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else ():
        step, level = line.split()
        levels[level].append(int(step))
    return levels


class CheckpointCase(RanksTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-checkpoint-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([PENSTOCK, "generate", "imagenet", "--out", str(cls.made / "pictures"), "--samples", str(SAMPLES),
                        "--set", "median=8KiB", "--seed", "7", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def words(self, *args, app="stream", data=None, batch=4, seed=3, tiers=TIERS, every=3):
        words = ["train", app, "--data", data or self.made / "pictures", "--batch", batch, "--threads", 2]
        words += ["--seed", seed] * (seed is not None)
        words += ["--checkpoint-every", every] * (every is not None)
        return [*words, *tiers, *args]

    def train(self, *args, ranks=1, expect=0, **kwargs):
        words = [*self.words(*args, **kwargs), "--json"]
        done = self.run_cli(*words, expect=expect) if ranks == 1 else self.over(ranks, *words, expect=expect)
        record, = [json.loads(line) for line in done.stdout.splitlines()]
        return record

    def saved(self, tier, run="default"):
        """Steps of the run's checkpoints on the tier, oldest first."""
        folder = self.dir / tier / "ckpt" / run
        return sorted(int(name.split(".")[0]) for name in os.listdir(folder)) if folder.exists() else []

    def wait_for(self, what, process):
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while time.monotonic() < deadline and process.poll() is None:
            if what():
                return
            time.sleep(0.02)
        process.kill()
        self.fail("".join(map(str, process.communicate())))


class Saving(CheckpointCase):
    def test_every_so_many_steps_and_durable_at_the_end(self):
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

    def test_words_that_lack_something(self):
        for args, words in ((("--checkpoint-every", 2), "needs --checkpoint-to"), (("--burst-buffer", "fast"), "--burst-buffer goes with"),
                            (("--resume",), "--resume goes with"), (("--checkpoint-to", "slow"), "--checkpoint-every N")):
            done = self.run_cli(*self.words("--steps", 3, *args, tiers=(), every=None), expect=2)
            self.assertIn(words, done.stderr)
        for args, words in ((("--tier", "more=posix:."), "--tier"), (("--on-error", "skip"), "--on-error skip"), (("--run", "../x"), "../x"),
                            (("--payload", "nonsense"), "nonsense"), (("--burst-buffer", "slow"), "two places")):
            self.assertIn(words, self.run_cli(*self.words("--steps", 3, *args, tiers=("--checkpoint-to", "slow")), expect=2).stderr)
        self.assertFalse((self.dir / "slow").exists(), "said before anything is made")

    def test_a_tier_that_fails(self):
        record = self.train("--steps", 6, tiers=("--checkpoint-to", "posix:slow,fail=publish/rank-0.bin:eio@#2", "--payload", "1MiB"), expect=1)
        self.assertEqual(record["verdict"], "failed")
        self.assertIn("the checkpoint of step 6 failed", record["reason"])
        self.assertEqual(self.saved("slow"), [3])


class GoingOn(CheckpointCase):
    def assert_goes_on(self, *args, first=10, ranks=1, total=30, every=3, suffixes=("",), **kwargs):
        """Runs to `first`, then from its last checkpoint to `total`: together exactly what one run does."""
        shutil.rmtree(self.dir / "slow", ignore_errors=True)
        shutil.rmtree(self.dir / "fast", ignore_errors=True)
        self.train("--steps", total, "--sample-log", "whole", *args, ranks=ranks, tiers=(), every=None, **kwargs)
        self.train("--steps", first, "--sample-log", "first", *args, ranks=ranks, every=every, **kwargs)
        record = self.train("--steps", total, "--resume", "--sample-log", "rest", *args, ranks=ranks, every=every, **kwargs)
        restored = first // every * every
        self.assertEqual(record["parameters"]["resumed_step"], restored)
        self.assertEqual(value(record, "steps"), total - restored)
        self.assertEqual(value(record, "checkpoints"), total // every - first // every)
        for suffix in suffixes:
            before = [line for line in lines(self.dir / f"first{suffix}") if line[1] < restored]
            self.assertEqual(before + lines(self.dir / f"rest{suffix}"), lines(self.dir / f"whole{suffix}"), (args, suffix))
        self.assertEqual(self.saved("slow")[-1], total // every * every)

    def test_with_the_very_next_sample(self):
        for shuffle in ("global", "local", "buffer:7", "none"):
            with self.subTest(shuffle=shuffle):
                self.assert_goes_on("--shuffle", shuffle)

    def test_at_the_end_of_an_epoch(self):
        self.assert_goes_on(first=12, every=12)

    def test_with_decoded_pictures(self):
        self.assert_goes_on("--accelerator", "emulated:step=1ms", first=5, total=14, app="alexnet")

    def test_with_samples_that_lie_in_memory(self):
        subprocess.run([PENSTOCK, "generate", "cifar10", "--out", str(self.dir / "cifar"), "--samples", "40", "--set", "samples_per_file=20",
                        "--seed", "7"], check=True, capture_output=True, cwd=self.dir)
        self.assert_goes_on(app="cifar", data="cifar")

    def test_in_the_middle_of_a_file(self):
        for recipe, args in (("hepcnn", ("--samples", 84, "--set", "samples_per_file=21", "--set", "shape=3,16,16")),
                             ("climate", ("--samples", 20, "--set", "shape=11,16,24"))):
            self.run_cli("generate", recipe, *args, "--out", recipe, "--seed", 7)
        # Epochs of ten steps of 8 of 84 images, in files of 21; and of 16 files for training, one a step.
        self.assert_goes_on(app="hepcnn", data="hepcnn", batch=8)
        self.assert_goes_on(app="climate", data="climate", batch=1)
        if open_mpi():
            self.assert_goes_on("--shuffle", "global", app="hepcnn", data="hepcnn", batch=8, ranks=2, suffixes=(".0", ".1"))

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_over_ranks(self):
        for shuffle in ("global", "local"):
            with self.subTest(shuffle=shuffle):
                self.assert_goes_on("--shuffle", shuffle, ranks=2, suffixes=(".0", ".1"))

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_over_fewer_ranks(self):
        self.train("--steps", 4, "--sample-log", "first", ranks=2, every=4)
        self.train("--epochs", 1, "--resume", "--sample-log", "rest", every=4)
        used = [index for name in ("first.0", "first.1", "rest") for _, _, _, index in lines(self.dir / name)]
        self.assertEqual(len(used), 48)
        self.assertEqual(len(set(used)), 48, "no sample twice")
        shutil.rmtree(self.dir / "slow")
        shutil.rmtree(self.dir / "fast")
        self.train("--steps", 4, "--shuffle", "local", ranks=2, every=4)
        done = self.run_cli(*self.words("--epochs", 1, "--shuffle", "local", "--resume", every=4), expect=2)
        self.assertIn("it ran over 2 ranks", done.stderr)

    def test_without_a_seed_it_is_the_runs_own(self):
        self.train("--steps", 6, "--sample-log", "first", seed=None)
        record = self.train("--steps", 12, "--resume", "--sample-log", "rest", seed=None)
        used = [index for name in ("first", "rest") for _, _, _, index in lines(self.dir / name)]
        self.assertEqual(len(set(used)), 48)
        self.assertIn("--seed " + str(record["seed"]), self.run_cli(*self.words("--steps", 20, "--resume", seed=record["seed"] + 1), expect=2).stderr)

    def test_limits_are_the_whole_runs(self):
        self.train("--epochs", 1)
        self.assertIn("has made all its steps", self.run_cli(*self.words("--steps", 12, "--resume"), expect=0).stderr)
        record = self.train("--epochs", 2, "--resume")
        self.assertEqual(value(record, "steps"), 12)

    def test_what_a_checkpoint_does_not_hold(self):
        self.train("--steps", 3)
        done = self.run_cli(*self.words("--steps", 6, "--resume", "--accelerator", "cpu", app="alexnet", batch=2), expect=None)
        if done.returncode != 77:  # a build without oneDNN
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("not in a checkpoint", done.stderr)

    def test_an_old_run_is_not_overwritten(self):
        self.train("--steps", 6)
        done = self.run_cli(*self.words("--steps", 6), expect=2)
        self.assertIn("--resume", done.stderr)
        self.assertIn("--run", done.stderr)
        self.train("--steps", 6, "--run", "another")
        self.assertEqual((self.saved("slow"), self.saved("slow", "another")), ([3, 6], [3, 6]))

    def test_nothing_to_go_on_from(self):
        self.assertIn("there is none", self.run_cli(*self.words("--steps", 6, "--resume"), expect=4).stderr)
        self.assertIn("there is none", self.run_cli(*self.words("--steps", 6, "--resume", seed=None), expect=4).stderr)
        self.train("--steps", 6)
        for file in self.dir.glob("*/ckpt/default/*/rank-0.bin"):
            file.write_bytes(file.read_bytes()[:-1] + b"!")
        done = self.run_cli(*self.words("--steps", 9, "--resume"), expect=4)
        self.assertIn("found wrong", done.stderr)

    def test_a_store_that_cannot_be_read_is_no_fresh_start(self):
        self.train("--steps", 3)
        (self.dir / "slow" / "STORE.json").write_text("{}")
        self.run_cli(*self.words("--steps", 6, "--resume"), expect=4)
        self.assertEqual(self.saved("slow"), [3])

    def test_the_slow_copy_serves_where_the_fast_one_is_wrong(self):
        self.train("--steps", 6)
        file, = (self.dir / "fast" / "ckpt" / "default").glob("*6.0/rank-0.bin")
        file.write_bytes(b"?" + file.read_bytes()[1:])
        record = self.train("--steps", 9, "--resume")
        self.assertEqual(record["parameters"]["resumed_step"], 6)
        self.assertEqual(len(record["parameters"]["restart"]["rejected"]), 1)


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
        self.assertIn("not durable", err)
        record, = [json.loads(line) for file in (self.dir / "penstock-results").glob("*.jsonl") for line in file.read_text().splitlines()]
        self.assertEqual(record["verdict"], "interrupted")
        last = seen["fast"][-1]
        record = self.train("--steps", last + 2, "--resume", "--sample-log", "rest", "--ack-log", "acks")
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
        self.assertIn("not durable", err)
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
            self.assertIn("all its steps", err)
            self.assertIn("warning: ", err)
            self.assertIn("not durable", err)
            self.assertNotIn("penstock train: ", err, "no failure")
            self.assertLess(len(acks(self.dir / "acks")["durable"]), len(acks(self.dir / "acks")["fast"]))
        self.run_cli(*self.words("--steps", last, "--resume", "--ack-log", "acks"))
        self.assertEqual(acks(self.dir / "acks")["durable"][-1], last)

    def test_with_grace_the_drain_ends(self):
        code, err = self.stop("--grace", "60s", slow="posix:slow,write_limit=2MiB/s", what=lambda seen: len(seen["fast"]) >= 2)
        self.assertEqual(code, 143, err)
        seen = acks(self.dir / "acks")
        self.assertEqual(seen["durable"], seen["fast"])
        self.assertNotIn("not durable", err)

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_killed_ranks_go_on_where_they_stood(self):
        # Epochs of three steps of 4 x 4 of the 50 pictures; a drain of 2 MiB takes half a second.
        words = self.endless("--sample-log", "first", slow="posix:slow,write_limit=4MiB/s", step="40ms", every=2)
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
        """Goes on over 4 ranks to the end of the epoch behind the restored step's: each sample of an epoch once."""
        end = (at_least // 3 + 3) * 3
        record = self.train("--steps", end, "--resume", "--sample-log", "rest", ranks=4, every=2)
        restored = record["parameters"]["resumed_step"]
        self.assertGreaterEqual(restored, at_least)
        used = collections.defaultdict(list)
        for rank in range(4):
            for epoch, step, _, index in lines(self.dir / f"first.{rank}"):
                if step < restored:
                    used[epoch].append(index)
            rest = lines(self.dir / f"rest.{rank}")
            self.assertEqual(rest[0][1], restored)
            for epoch, _, _, index in rest:
                used[epoch].append(index)
        self.assertEqual({epoch: len(indices) for epoch, indices in used.items()}, {epoch: 48 for epoch in range(end // 3)})
        self.assertEqual({epoch: len(set(indices)) for epoch, indices in used.items()}, {epoch: 48 for epoch in range(end // 3)})


if __name__ == "__main__":
    penstock_cli.main()
