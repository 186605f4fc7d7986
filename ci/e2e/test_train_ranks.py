#!/usr/bin/env python3
"""`penstock train` over the ranks of a real mpirun: shards, steps made together, one record, and what goes wrong."""

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

from messages import message
import penstock_cli
from test_ranks import ENVIRONMENT, RanksTest, open_mpi
from train_case import value

SAMPLES = 50


def lost(record):
    return {name.split(".")[1]: metric["value"] for name, metric in record["metrics"].items() if name.startswith("lost_s.")}


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class Training(RanksTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-ranks-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([penstock_cli.PENSTOCK, "generate", "imagenet", "--out", str(cls.made / "pictures"), "--samples", str(SAMPLES),
                        "--set", "median=8KiB", "--seed", "7", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def command(self, *args, data=None, app="stream", batch=4):
        return ["train", app, "--data", data or self.made / "pictures", "--seed", 3, "--batch", batch, "--threads", 2, *args]

    def train(self, ranks, *args, expect=0, **kwargs):
        done = self.over(ranks, *self.command(*args, **kwargs), "--json", expect=expect)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def launch(self, *parts):
        """mpirun of one rank for each of `parts`, which are the arguments of its `penstock`."""
        words = []
        for part in parts:
            words += [":"] * bool(words) + ["-np", "1", str(penstock_cli.PENSTOCK), *map(str, part)]
        return subprocess.Popen(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", *words], cwd=self.dir,
                                env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)

    def outcome(self, process, patience=penstock_cli.PATIENCE_S):
        try:
            return process.communicate(timeout=patience)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def test_every_sample_is_one_ranks_and_once_an_epoch(self):
        for shuffle in ("none", "local", "global"):
            record, = self.train(3, "--epochs", 2, "--shuffle", shuffle, "--sample-log", "log")
            lines = []
            for rank in range(3):
                own = [tuple(map(int, line.split())) for line in (self.dir / f"log.{rank}").read_text().splitlines()]
                self.assertEqual({line[2] for line in own}, {rank})
                lines += own
            each = SAMPLES // 3 // 4  # steps an epoch
            self.assertEqual(value(record, "steps"), 2 * each)
            self.assertEqual(len(lines), 2 * each * 4 * 3)
            for epoch in range(2):
                used = collections.Counter(index for of, _, _, index in lines if of == epoch)
                self.assertEqual(set(used.values()), {1}, "no sample twice")
                self.assertEqual(len(used), each * 4 * 3)
            if shuffle == "local":
                parts = [{index for _, _, rank, index in lines if rank == of} for of in range(3)]
                self.assertFalse(parts[0] & parts[1] or parts[1] & parts[2] or parts[0] & parts[2], "each keeps its part")

    def test_one_record_of_all_ranks(self):
        record, = self.train(3, "--epochs", 1, "--accelerator", "emulated:step=4ms", app="alexnet")
        self.assertEqual(record["verdict"] in ("ok", "client_bound"), True, record["reason"])
        self.assertEqual(record["parameters"]["ranks"], 3)
        self.assertEqual(record["parameters"]["rank_scaling"], "strong")
        self.assertEqual(len(record["environment"]["ranks"]), 3)
        steps = SAMPLES // 3 // 4
        self.assertEqual(value(record, "steps"), steps)
        self.assertEqual(value(record, "accelerators"), 3)
        self.assertAlmostEqual(value(record, "samples_per_s") * value(record, "wall_s"), 3 * 4 * steps, places=3)
        self.assertEqual(value(record, "dropped_tail_samples"), 3 * (SAMPLES // 3 % 4))
        self.assertLessEqual(value(record, "accelerator_utilization_min"), value(record, "accelerator_utilization"))
        self.assertLessEqual(value(record, "rank_min_bytes_per_s"), value(record, "rank_max_bytes_per_s"))
        self.assertIn("input_overlap", record["metrics"])
        # What was lost is the wall without the steps, of the mean rank, whose wall is that of the slowest at most.
        self.assertGreater(sum(lost(record).values()), 0)
        self.assertLessEqual(sum(lost(record).values()), value(record, "wall_s") - steps * 0.004 + 1e-9)
        files = list((self.dir / "penstock-results").glob("*-train-*.jsonl"))
        self.assertEqual([len(file.read_text().splitlines()) for file in files], [1])

    def test_the_rank_that_is_late_is_named(self):
        # The other rank's tier has a latency: 4 samples on 2 threads are two times 150 ms a step, which outlasts any turn that a
        # busy machine keeps the first one waiting for its processor.
        slow = self.command("--steps", 20, "--accelerator", "emulated:step=2ms", data=f"posix:{self.made / 'pictures'},latency=150ms")
        fast = self.command("--steps", 20, "--accelerator", "emulated:step=2ms", "--json")
        out, err = self.outcome(self.launch(fast, slow))
        record, = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(value(record, "straggler_rank"), 1, err)
        self.assertGreater(value(record, "straggler_steps"), 10)
        self.assertGreater(lost(record)["straggler"], 0.1)
        self.run_cli("report", "penstock-results", "-o", "report.html")
        if value(record, "straggler_steps") >= 16:
            self.assertIn(message("ranks-waited-for-slowest", n=1), (self.dir / "report.html").read_text())

    def test_a_rank_whose_back_end_hangs_ends_the_job(self):
        hangs = ("--tier", f"slow=posix:{self.made / 'pictures'},latency=1h", "--steps", 3, "--stall-timeout", "5s")
        fine = ("--tier", f"slow=posix:{self.made / 'pictures'}", "--steps", 3, "--stall-timeout", "5s", "--json")
        out, err = self.outcome(self.launch(self.command(*fine), self.command(*hangs)), 120)
        first, second = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(second["verdict"], "timed_out", first["reason"] + err)
        self.assertIn(message("no-sample-for-seconds", n=5), second["reason"])

    def test_a_folder_that_one_rank_lacks_fails_all(self):
        out, err = self.outcome(self.launch(self.command("--steps", 3, "--json"), self.command("--steps", 3, data=self.dir / "nowhere")), 120)
        self.assertEqual(out, "")
        self.assertIn(message("on-rank-of", n=1, n2=2), err)

    def test_ranks_that_see_other_data_are_refused(self):
        folder = self.dir / "fewer"
        shutil.copytree(self.made / "pictures", folder)
        next(path for path in folder.rglob("*") if path.suffix.lower() in (".jpeg", ".jpg")).unlink()
        _, err = self.outcome(self.launch(self.command("--scan", "--steps", 3), self.command("--scan", "--steps", 3, data=folder)), 120)
        self.assertIn(message("ranks-different-data-sets"), err)

    def test_ranks_that_are_told_other_things_are_refused(self):
        for other in (("--steps", 4), ("--steps", 3, "--accelerator", "emulated:step=1ms"), ("--steps", 3, "--tier", f"more=posix:{self.made / 'pictures'}")):
            _, err = self.outcome(self.launch(self.command("--steps", 3), self.command(*other)), 120)
            self.assertIn(message("ranks-different-flags"), err)

    def test_ranks_draw_one_seed(self):
        done = self.over(2, "train", "stream", "--data", self.made / "pictures", "--batch", 4, "--steps", 3, "--sample-log", "log")
        self.assertIn("2 ranks", done.stdout)

    def test_a_search_over_ranks(self):
        record, = self.train(2, "--find-accelerators", "--steps", 4, "--accelerator", "emulated:step=20ms", "--au", 0.01, "--prefetch", 8)
        fed = record["parameters"]["accelerators"] if value(record, "accelerators_fed") > 0 else 0
        self.assertEqual(value(record, "accelerators_fed"), 2 * fed)
        self.assertTrue(fed >= 1 or record["verdict"] == "client_bound", record["reason"])

    def test_the_table_is_printed_once(self):
        done = self.over(2, *self.command("--steps", 3))
        self.assertEqual(done.stdout.count("2 ranks, each with batches of 4"), 1, done.stdout)
        self.assertEqual(done.stderr.count("record: "), 1, done.stderr)

    def test_a_sample_that_is_gone_fails_the_job_or_is_skipped(self):
        folder = self.dir / "pictures"
        shutil.copytree(self.made / "pictures", folder)
        victim = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))[17]
        victim.unlink()
        record, = self.train(2, "--epochs", 1, data=folder, expect=1)
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(victim.name, record["reason"])
        record, = self.train(2, "--epochs", 1, "--on-error", "skip", data=folder)
        self.assertEqual(record["verdict"], "degraded")
        self.assertEqual(value(record, "skipped_samples"), 1)

    def test_too_few_samples_for_that_number_of_ranks(self):
        done = self.over(3, *self.command(batch=20), expect=2)
        self.assertIn(message("samples-for-each-rank", n=16, n2=3), done.stderr)

    def endless(self, *args):
        return self.command("--epochs", 100000, "--accelerator", "emulated:step=10ms", *args)

    def children(self, process):
        found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
        return [int(pid) for pid in found]

    def wait_for_ranks(self, process, logs):
        """The processes of the ranks, once all have made steps."""
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while time.monotonic() < deadline and process.poll() is None:
            if all(log.exists() and log.stat().st_size > 0 for log in logs):
                return self.children(process)
            time.sleep(0.05)
        self.fail(self.outcome(process, 1)[1])

    def test_a_signal_to_one_rank_ends_all_with_a_record(self):
        process = self.launch(self.endless("--sample-log", "log"), self.endless("--sample-log", "log"))
        pids = self.wait_for_ranks(process, [self.dir / "log.0", self.dir / "log.1"])
        os.kill(pids[-1], signal.SIGINT)
        self.outcome(process, 60)
        record, = [json.loads(line) for file in (self.dir / "penstock-results").glob("*.jsonl") for line in file.read_text().splitlines()]
        self.assertEqual(record["verdict"], "interrupted")
        self.assertGreater(value(record, "steps"), 0)

    def test_a_rank_that_dies_ends_the_job(self):
        process = self.launch(self.endless("--sample-log", "log"), self.endless("--sample-log", "log"))
        pids = self.wait_for_ranks(process, [self.dir / "log.0", self.dir / "log.1"])
        os.kill(pids[-1], signal.SIGKILL)
        _, err = self.outcome(process, 60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("signal 9", err)


if __name__ == "__main__":
    penstock_cli.main()
