#!/usr/bin/env python3
"""`penstock train cifar`: read once, held in memory, and a checkpoint after every epoch."""

import collections
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

from messages import message
import penstock_cli
from penstock_cli import PENSTOCK
from test_ranks import RanksTest, open_mpi

SAMPLES = 300
MIB = 1 << 20
NAME = "penstock-cifar.ckpt"


def value(record, metric):
    return record["metrics"][metric]["value"]


class Cifar(RanksTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-cifar-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([PENSTOCK, "generate", "cifar10", "--out", str(cls.made / "corpus"), "--samples", str(SAMPLES), "--set",
                        "samples_per_file=100", "--seed", "7", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def cifar(self, *args, ranks=1, batch=32, expect=0):
        words = ["train", "cifar", "--data", self.made / "corpus", "--seed", 3, "--batch", batch, *args, "--json"]
        done = self.run_cli(*words, expect=expect) if ranks == 1 else self.over(ranks, *words, expect=expect)
        record, = [json.loads(line) for line in done.stdout.splitlines()]
        return record

    def used(self, path):
        return collections.Counter(tuple(map(int, line.split()))[::3] for line in (self.dir / path).read_text().splitlines())

    def test_it_writes_more_than_it_reads(self):
        record = self.cifar("--epochs", 4, "--checkpoint-to", self.dir / "out", "--set", "model=3MiB")
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertEqual(value(record, "steps"), 4 * (SAMPLES // 32))
        self.assertEqual(value(record, "checkpoints"), 4)
        self.assertEqual(value(record, "checkpoint_bytes"), 12 * MIB)
        self.assertEqual(len(record["metrics"]["checkpoint_s"]["samples"]), 4)
        self.assertEqual((self.dir / "out" / NAME).stat().st_size, 3 * MIB)
        self.assertEqual(os.listdir(self.dir / "out"), [NAME], "one that replaces the one before")
        # Once from the tier, however often it is used; the manifest comes to it.
        self.assertGreaterEqual(value(record, "tier_bytes_read"), SAMPLES * 3072)
        self.assertLess(value(record, "tier_bytes_read"), 1.2 * SAMPLES * 3072)
        self.assertEqual(record["tiers"]["checkpoint"]["root"], str(self.dir / "out"))

    def test_every_sample_is_used_once_an_epoch(self):
        self.cifar("--epochs", 2, "--sample-log", "log", batch=30)
        self.assertEqual(self.used("log"), collections.Counter((epoch, index) for epoch in range(2) for index in range(SAMPLES)))

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_ranks_share_epochs_and_one_writes(self):
        record = self.cifar("--epochs", 2, "--sample-log", "log", "--checkpoint-to", self.dir / "out", "--set", "model=1MiB", ranks=2, batch=30)
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertEqual(value(record, "checkpoints"), 2)
        self.assertEqual(self.used("log.0") + self.used("log.1"),
                         collections.Counter((epoch, index) for epoch in range(2) for index in range(SAMPLES)))

    def test_a_time_is_in_one_place(self):
        record = self.cifar("--epochs", 3, "--checkpoint-to", self.dir / "out", "--accelerator", "emulated:step=2ms")
        parts = sum(metric["value"] for name, metric in record["metrics"].items() if name.startswith("lost_s."))
        parts += sum(record["metrics"]["checkpoint_s"]["samples"]) + value(record, "steps") * 0.002
        parts += record["metrics"]["step_s"]["samples"][-1] - 0.002
        # What is around a checkpoint takes microseconds, or as long as the machine is busy with something else.
        self.assertGreater(value(record, "wall_s"), parts - 1e-6)
        self.assertLess(value(record, "wall_s"), parts + 0.25)

    def test_what_is_in_memory_is_not_called_cached(self):
        record = self.cifar("--epochs", 3)
        self.assertNotIn("epoch_device_bytes_fraction", record["metrics"])

    def test_a_timeline_has_the_checkpoints(self):
        self.cifar("--epochs", 3, "--checkpoint-to", self.dir / "out", "--set", "model=1MiB", "--timeline", "run.csv")
        rows = (self.dir / "run.csv").read_text().splitlines()[1:]
        self.assertEqual(sum(",Checkpoint Listener," in row for row in rows), 3)

    def test_wrong_arguments_and_places(self):
        self.assertIn(message("app-writes-no-checkpoints"), self.run_cli("train", "stream", "--data", self.made / "corpus", "--checkpoint-to", self.dir, expect=2).stderr)
        self.assertIn(message("samples-in-memory"), self.run_cli("train", "cifar", "--data", self.made / "corpus", "--prefetch", 2, expect=2).stderr)
        done = self.run_cli("train", "cifar", "--data", self.made / "corpus", "--checkpoint-to", "/proc/nothing", "--epochs", 10000, expect=1)
        self.assertIn(message("checkpoint-store-full"), done.stderr)
        self.assertFalse((self.dir / "penstock-results").exists(), "said before anything is measured")
        self.assertIn(message("app-takes-no-checkpoints"), self.run_cli("train", "cifar", "--data", self.made / "corpus", "--checkpoint-to", self.dir,
                                                             "--find-accelerators", "--accelerator", "emulated:step=1ms", expect=2).stderr)
        self.assertIn("--checkpoint-to DIR", self.run_cli("train", "cifar", "--data", self.made / "corpus", "--epochs", 1).stderr)

    @unittest.skipIf(os.geteuid() == 0, "nothing is forbidden to root")
    def test_a_place_that_takes_nothing(self):
        (self.dir / "closed").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
        record = self.cifar("--epochs", 1, "--checkpoint-to", self.dir / "closed", expect=1)
        self.assertIn(NAME, record["reason"])

    def test_a_disk_that_is_full(self):
        record = self.cifar("--epochs", 1, "--checkpoint-to", f"posix:{self.dir / 'out'},fail=write:enospc@#2", expect=1)
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(NAME, record["reason"])
        self.assertFalse((self.dir / "out" / NAME).exists())


if __name__ == "__main__":
    penstock_cli.main()
