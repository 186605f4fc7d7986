#!/usr/bin/env python3
"""What `penstock train` says it was held up by: a tier, a decoder and a rank that are slow on purpose, each by name."""

import json
import re
import subprocess
import unittest

import penstock_cli
from test_ranks import ENVIRONMENT, open_mpi
from train_case import TrainTest, value

STEP = ("--accelerator", "emulated:step=2ms")


class Limits(TrainTest):
    def check(self, record, text, to):
        """The waterfall adds up, and its largest part is what was slowed."""
        lost = {name.partition(".")[2]: metric["value"] for name, metric in record["metrics"].items() if name.startswith("lost_s.")}
        waited = sum(seconds for part, seconds in lost.items() if part not in ("straggler", "barrier"))
        self.assertAlmostEqual(waited, value(record, "input_wait_s"), delta=0.02 * value(record, "input_wait_s"))
        self.assertEqual(max(lost, key=lost.get), to, lost)
        output = re.search(r"lost [\d.]+% of the wall time, the first batch included: \d+% to (\w+)", text)
        self.assertTrue(output, text)
        self.assertEqual(output[1], to, text)

    def measured(self, *args, data=None, batch=4):
        done = self.run_cli("train", "alexnet", "--data", data or self.made / "corpus", "--seed", 3, "--threads", 1, "--batch", batch, *STEP, *args)
        self.run_cli("report", "penstock-results", "-o", "report.html")
        record, = [json.loads(line) for file in (self.dir / "penstock-results").glob("*-train-*.jsonl") for line in file.read_text().splitlines()]
        return record, done.stdout

    def test_a_throttled_tier(self):
        # Pictures are resized to 8 pixels, so that reading takes longer, even with sanitizers on a busy machine.
        record, text = self.measured("--prefetch", 2, "--set", "image=8", data=f"posix:{self.made / 'corpus'},latency=100ms")
        self.check(record, text, "read")

    def test_a_slow_decoder(self):
        # Of whole pictures for results of a few pixels, from memory: decoding is all that takes time.
        record, text = self.measured("--cache", "warm", "--set", "image=8", "--prefetch", 0, batch=20)
        self.check(record, text, "decode")

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_a_rank_that_is_late(self):
        def words(data, *more):
            return ["-np", "1", str(penstock_cli.PENSTOCK), *map(str, ("train", "stream", "--data", data, "--seed", 3, "--threads", 1,
                                                                        "--batch", 2, "--steps", 20, *STEP, *more))]
        done = subprocess.run(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", *words(self.made / "corpus", "--json"), ":",
                               *words(f"posix:{self.made / 'corpus'},latency=150ms")], capture_output=True, text=True, cwd=self.dir,
                              env={**ENVIRONMENT}, stdin=subprocess.DEVNULL, timeout=penstock_cli.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        record, = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertEqual(value(record, "straggler_rank"), 1)
        # The mean of both: one waits for its tier, the other for that one. On a busy machine the barrier itself may take longest.
        lost = {name.partition(".")[2]: metric["value"] for name, metric in record["metrics"].items() if name.startswith("lost_s.")}
        lost.pop("barrier")
        self.assertEqual(set(sorted(lost, key=lost.get)[-2:]), {"read", "straggler"}, lost)


if __name__ == "__main__":
    penstock_cli.main()
