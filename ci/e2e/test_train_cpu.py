#!/usr/bin/env python3
"""`penstock train --accelerator cpu`: AlexNet that is really trained on the pictures. Skipped in a build without oneDNN."""

import json
import math
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from messages import message
from penstock_cli import PENSTOCK, main
from test_ranks import RanksTest, open_mpi

SAMPLES = 6


def value(record, metric):
    return record["metrics"][metric]["value"]


def lacking():
    rows = [json.loads(line) for line in
            subprocess.run([PENSTOCK, "--version", "--json"], check=True, capture_output=True, text=True).stdout.splitlines()]
    row = next(row for row in rows if row["kind"] == "library" and row["name"] == "onednn")
    return "" if row["present"] else f"this build lacks oneDNN: {row['reason']}"


class TrainOnCpu(RanksTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-cpu-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([PENSTOCK, "generate", "imagenet", "--out", str(cls.made / "corpus"), "--samples", str(SAMPLES), "--seed", "7",
                        "--set", "median=8KiB", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def command(self, *args, accelerator="cpu:threads=1", app="alexnet", steps=3):
        return ("train", app, "--data", self.made / "corpus", "--seed", "3", "--batch", "2", "--steps", steps, "--threads", "1",
                "--accelerator", accelerator, *args)

    def test_trains_and_says_how_busy_it_was(self):
        [record] = self.records(*self.command())
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertEqual(record["parameters"]["accelerator"], "cpu:threads=1")
        self.assertEqual(record["parameters"]["step_s"], 0)
        self.assertEqual(value(record, "steps"), 3)
        steps = record["metrics"]["step_s"]["samples"]
        self.assertEqual(len(steps), 3)
        self.assertGreater(value(record, "accelerator_utilization"), 0)
        self.assertLessEqual(value(record, "accelerator_utilization"), 1)
        self.assertIn("input_overlap", record["metrics"])
        self.assertNotIn("step_overshoot", record["metrics"])
        self.assertAlmostEqual(value(record, "wall_s"), value(record, "input_wait_s") + sum(steps), places=6)
        # Before training, the loss is that of guessing among this number of classes.
        self.assertAlmostEqual(value(record, "loss_first"), math.log(1000), delta=1)
        [again] = self.records(*self.command())
        self.assertEqual(value(again, "loss_first"), value(record, "loss_first"))

    def test_the_other_order_of_axes_begins_with_the_same_loss(self):
        losses = [value(self.records(*self.command("--set", f"axes={axes}", steps=1))[0], "loss_first") for axes in ("nhwc", "nchw")]
        self.assertAlmostEqual(losses[0], losses[1], places=2)

    def test_what_it_does_not_take_is_said_before_anything_is_measured(self):
        for command, expected in ((self.command("--set", "type=u8"), "f32 NHWC 224x224x3"), (self.command("--set", "image=64"), "f32 NHWC 224x224x3"),
                              (self.command(app="stream"), "f32 NHWC 224x224x3"), (self.command("--accelerators", "2"), "leave out --accelerators"),
                              (self.command("--find-accelerators"), "emulated:step"), (self.command(accelerator="cpu:cores=1"), "threads")):
            done = self.run_cli(*command, expect=2)
            self.assertIn(expected, done.stderr)
            self.assertFalse((self.dir / "penstock-results").exists(), "no record of a measurement")

    def test_a_label_beyond_its_classes_fails_the_run(self):
        [record] = self.records(*self.command(accelerator="cpu:threads=1,classes=2"), expect=None)
        self.assertEqual(record["verdict"], "failed")
        self.assertIn("classes=", record["reason"])

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_ranks_train_a_network_each_and_step_together(self):
        done = self.over(2, *self.command("--cache", "warm", "--json", steps=2), expect=0)
        [record] = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertEqual(record["parameters"]["ranks"], 2)
        self.assertEqual(value(record, "accelerators"), 2)
        self.assertEqual(value(record, "steps"), 2)
        self.assertGreater(value(record, "accelerator_utilization_min"), 0)
        self.assertLessEqual(value(record, "accelerator_utilization"), 1)
        self.assertGreater(value(record, "loss_last"), 0)

    def test_a_report_is_made_of_it(self):
        self.run_cli(*self.command())
        self.run_cli("report", "penstock-results", "-o", "report.html")
        self.assertIn(message("accelerator-sentence"), (self.dir / "report.html").read_text())


if __name__ == "__main__":
    main(lacking)
