#!/usr/bin/env python3
"""`penstock train --resume`: a training goes on where it stood, with the very next sample, and what is another one is refused."""

import shutil
import subprocess
import unittest

from messages import message
import penstock_cli
from penstock_cli import PENSTOCK
from test_ranks import open_mpi
from train_case import value
from train_checkpoint_case import CheckpointCase, SAMPLES, lines


class GoingOn(CheckpointCase):
    def assert_goes_on(self, *args, first=10, ranks=1, total=30, every=3, suffixes=("",), **kwargs):
        """Runs to `first`, then from its last checkpoint to `total`: together exactly what one run does, in one log."""
        shutil.rmtree(self.dir / "slow", ignore_errors=True)
        shutil.rmtree(self.dir / "fast", ignore_errors=True)
        self.train("--steps", total, "--sample-log", "whole", *args, ranks=ranks, tiers=(), every=None, **kwargs)
        self.train("--steps", first, "--sample-log", "log", *args, ranks=ranks, every=every, **kwargs)
        for suffix in suffixes:
            self.assertEqual(lines(self.dir / f"log{suffix}")[-1][1], first - 1)
            with (self.dir / f"log{suffix}").open("a") as log:
                log.write(f"0 {first} 0")  # as a kill leaves it
        record = self.train("--steps", total, "--resume", "--sample-log", "log", *args, ranks=ranks, every=every, **kwargs)
        restored = first // every * every
        self.assertEqual(record["parameters"]["resumed_step"], restored)
        self.assertEqual(value(record, "steps"), total - restored)
        self.assertEqual(value(record, "checkpoints"), total // every - first // every)
        for suffix in suffixes:
            self.assertEqual(lines(self.dir / f"log{suffix}"), lines(self.dir / f"whole{suffix}"), (args, suffix))
        self.assertEqual(self.saved("slow")[-1], total // every * every)

    def test_with_the_very_next_sample(self):
        for shuffle in ("global", "local", "buffer:7", "none"):
            with self.subTest(shuffle=shuffle):
                self.assert_goes_on("--shuffle", shuffle)

    def test_at_the_end_of_an_epoch(self):
        self.assert_goes_on(first=12, every=12)

    def test_with_decoded_pictures(self):
        self.assert_goes_on("--accelerator", "emulated:step=1ms", first=5, total=14, app="alexnet")

    def test_with_samples_in_memory(self):
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
        self.train("--steps", 5, "--sample-log", "log", ranks=2, every=4)
        self.train("--epochs", 1, "--resume", "--sample-log", "log", every=4)
        used = [index for name in ("log.0", "log.1", "log") for _, _, _, index in lines(self.dir / name)]
        self.assertEqual(len(used), 48)
        self.assertEqual(len(set(used)), 48, "no sample twice")
        shutil.rmtree(self.dir / "slow")
        shutil.rmtree(self.dir / "fast")
        self.train("--steps", 4, "--shuffle", "local", ranks=2, every=4)
        done = self.run_cli(*self.words("--epochs", 1, "--shuffle", "local", "--resume", every=4), expect=2)
        self.assertIn(message("resume-ran-over-ranks", n=2), done.stderr)

    def test_without_a_seed_it_is_the_runs_own(self):
        self.train("--steps", 6, "--sample-log", "first", seed=None)
        record = self.train("--steps", 12, "--resume", "--sample-log", "rest", seed=None)
        used = [index for name in ("first", "rest") for _, _, _, index in lines(self.dir / name)]
        self.assertEqual(len(set(used)), 48)
        self.assertIn("--seed " + str(record["seed"]), self.run_cli(*self.words("--steps", 20, "--resume", seed=record["seed"] + 1), expect=2).stderr)

    def test_limits_are_the_whole_runs(self):
        self.train("--epochs", 1)
        self.assertIn(message("training-already-complete"), self.run_cli(*self.words("--steps", 12, "--resume"), expect=0).stderr)
        record = self.train("--epochs", 2, "--resume")
        self.assertEqual(value(record, "steps"), 12)

    def test_another_training_is_refused_by_what_differs(self):
        other = self.dir / "other"
        subprocess.run([PENSTOCK, "generate", "imagenet", "--out", str(other), "--samples", str(SAMPLES), "--set", "median=8KiB", "--seed", "8"],
                       check=True, capture_output=True, cwd=self.dir)
        self.train("--steps", 6, "--shuffle", "global", "--sample-log", "log")
        log = (self.dir / "log").read_text()
        for args, kwargs, words in (((), {"data": other}, ("--data", "checksum", "'other'")), (("--shuffle", "buffer:5"), {}, ("--shuffle global", "buffer:5")),
                                    ((), {"batch": 8}, ("take 4 samples", "not 8", "--batch")), (("--accelerators", 2), {}, ("take 4 samples", "--accelerators")),
                                    ((), {"seed": 4}, ("--seed 3",)), ((), {"app": "alexnet"}, ("train stream",))):
            done = self.run_cli(*self.words("--steps", 9, "--resume", "--sample-log", "log", *args, **kwargs), expect=2)
            for word in ("run 'default' cannot be resumed here", *words):
                self.assertIn(word, done.stderr)
        self.assertEqual((self.dir / "log").read_text(), log, "no training was started")
        shutil.copytree(self.made / "pictures", self.dir / "copy")
        record = self.train("--steps", 9, "--resume", "--prefetch", 3, data="copy")
        self.assertEqual(value(record, "steps"), 3, "the same corpus elsewhere, and another pipeline, are the same training")

    def test_logs_of_something_else(self):
        self.train("--steps", 6)
        (self.dir / "log").write_text("0 0 0 1\n")
        self.assertIn("another --sample-log", self.run_cli(*self.words("--steps", 9, "--resume", "--sample-log", "log"), expect=2).stderr)
        self.assertEqual((self.dir / "log").read_text(), "0 0 0 1\n")
        (self.dir / "acks").write_text("notes")
        self.assertIn("another --ack-log", self.run_cli(*self.words("--steps", 9, "--resume", "--ack-log", "acks"), expect=2).stderr)
        (self.dir / "acks").write_text("3 fast\n3 dur")
        self.train("--steps", 9, "--resume", "--ack-log", "acks")
        self.assertEqual((self.dir / "acks").read_text(), "3 fast\n9 fast\n9 durable\n")

    def test_validation_goes_on_where_it_stood(self):
        self.run_cli("generate", "hepcnn", "--samples", 84, "--set", "samples_per_file=21", "--set", "shape=3,16,16", "--out", "hepcnn", "--seed", 7)
        self.run_cli("generate", "hepcnn", "--samples", 42, "--set", "samples_per_file=21", "--set", "shape=3,16,16", "--set", "split=validation",
                     "--out", "held-out", "--seed", 7)
        self.run_cli("generate", "climate", "--samples", 20, "--set", "shape=11,16,24", "--out", "climate", "--seed", 7)
        # hepcnn has ten steps in an epoch and validates between epochs. climate validates after every tenth step, and at the end.
        for app, args, batch, passes in (("hepcnn", ("--validation", "held-out"), 8, (2, 0, 2)), ("climate", (), 1, (3, 1, 3))):
            with self.subTest(app=app):
                shutil.rmtree(self.dir / "slow", ignore_errors=True)
                shutil.rmtree(self.dir / "fast", ignore_errors=True)
                whole = self.train("--steps", 30, *args, app=app, data=app, batch=batch, tiers=(), every=None)
                first = self.train("--steps", 10, *args, app=app, data=app, batch=batch, every=10)
                rest = self.train("--steps", 30, "--resume", *args, app=app, data=app, batch=batch, every=10)
                self.assertEqual(tuple(value(record, "validation_passes") if "validation_passes" in record["metrics"] else 0
                                       for record in (whole, first, rest)), passes)

    def test_what_a_checkpoint_does_not_hold(self):
        self.train("--steps", 3, app="alexnet", batch=2)
        done = self.run_cli(*self.words("--steps", 6, "--resume", "--accelerator", "cpu", app="alexnet", batch=2), expect=None)
        if done.returncode != 77:  # a build without oneDNN
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message("state-not-in-checkpoint"), done.stderr)

    def test_an_old_run_is_not_overwritten(self):
        self.train("--steps", 6)
        done = self.run_cli(*self.words("--steps", 6), expect=2)
        self.assertIn("--resume", done.stderr)
        self.assertIn("--run", done.stderr)
        self.train("--steps", 6, "--run", "another")
        self.assertEqual((self.saved("slow"), self.saved("slow", "another")), ([3, 6], [3, 6]))

    def test_nothing_to_go_on_from(self):
        self.assertIn(message("no-checkpoint-to-resume"), self.run_cli(*self.words("--steps", 6, "--resume"), expect=4).stderr)
        self.assertIn(message("no-checkpoint-to-resume"), self.run_cli(*self.words("--steps", 6, "--resume", seed=None), expect=4).stderr)
        self.train("--steps", 6)
        for file in self.dir.glob("*/ckpt/default/*/rank-0.bin"):
            file.write_bytes(file.read_bytes()[:-1] + b"!")
        done = self.run_cli(*self.words("--steps", 9, "--resume"), expect=4)
        self.assertIn(message("checkpoints-found-wrong"), done.stderr)

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


if __name__ == "__main__":
    penstock_cli.main()
