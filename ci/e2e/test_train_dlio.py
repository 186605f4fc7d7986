#!/usr/bin/env python3
"""`penstock train dlio`: workloads as DLIO describes them."""

import json
import shutil
import subprocess

from messages import message
from penstock_cli import PENSTOCK, main
from train_case import TrainTest, value

WORKLOAD = """
model: {name: unet3d, model_size: 499153191}
framework: pytorch
workflow: {generate_data: False, train: True, checkpoint: True}
dataset: {data_folder: data/unet3d/, format: npz, num_files_train: 21, num_samples_per_file: 1, record_length_bytes: 20000}
reader: {data_loader: pytorch, batch_size: 7, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 2, computation_time: 0.005}
metric: {au: 0.85}
"""


class Dlio(TrainTest):
    def setUp(self):
        super().setUp()
        self.run_cli("generate", "unet3d", "--out", "data/unet3d/train", "--samples", "21", "--set", "mean=20kB", "--seed", "7")
        (self.dir / "it.yaml").write_text(WORKLOAD)

    def dlio(self, *args, **kwargs):
        return self.records("train", "dlio", "--workload", "it.yaml", "--seed", "3", *args, **kwargs)

    def test_a_workload_describes_the_run(self):
        done = self.run_cli("train", "dlio", "--workload", "it.yaml", "--json")
        record = json.loads(done.stdout)
        self.assertIn(message("model-size-has-no-effect"), done.stderr)
        self.assertIn(message("checkpoints-off-in-workload"), done.stderr)
        self.assertNotIn(message("workload-says-corpus"), done.stderr)
        for name, wanted in (("batch", 7), ("threads", 2), ("prefetch", 2), ("au", 0.85), ("step_s", 0.005), ("shuffle", "global"),
                             ("workload", "it.yaml")):
            self.assertEqual(record["parameters"][name], wanted, name)
        self.assertEqual(value(record, "steps"), 6)
        self.assertIn("au_dlio", record["metrics"])
        self.assertIn(message("not-an-mlperf-result"), self.run_cli("train", "dlio", "--workload", "it.yaml").stdout)

    def test_overrides_and_flags_go_before_it(self):
        [record] = self.dlio("++workload.reader.read_threads=3", "++workload.train.epochs=1", "--batch", "3")
        self.assertEqual(record["parameters"]["threads"], 3)
        self.assertEqual(record["parameters"]["batch"], 3)
        self.assertEqual(value(record, "steps"), 7)
        [record] = self.dlio("--steps", "2")
        self.assertEqual(value(record, "steps"), 2)

    def test_without_reading_threads_nothing_is_ahead(self):
        done = self.run_cli("train", "dlio", "--workload", "it.yaml", "++workload.reader.read_threads=0", "--steps", "2", "--json")
        parameters = json.loads(done.stdout)["parameters"]
        self.assertEqual((parameters["threads"], parameters["prefetch"]), (1, 0))
        self.assertIn(message("read-threads-zero", n=0), done.stderr)

    def test_data_that_are_not_what_the_workload_says_are_noticed(self):
        done = self.run_cli("train", "dlio", "--workload", "it.yaml", "--data", self.made / "corpus", "--steps", "2")
        self.assertIn("the workload is about 21 samples in npz, 'corpus' has 40 in files", done.stderr)

    def test_data_without_a_manifest_is_scanned(self):
        shutil.rmtree(self.dir / "data/unet3d/train/.penstock")
        [record] = self.dlio()
        self.assertEqual(record["corpus"]["samples"], 21)
        self.assertEqual(value(record, "steps"), 6)

    def test_arguments_that_are_wrong(self):
        for words, expected in ((("--workload", "it.yaml", "++workload.reader.bach_size=3"), "reader.batch_size"),
                            (("--workload", "it.yaml", "reader.batch_size=3"), "++workload.SECTION.KEY=VALUE"),
                            (("--workload", "it.yaml", "++workload.reader.read_threads=4294967296"), "too large: at most 4096"),
                            (("--workload", "no.yaml"), "no.yaml"), ((), "needs --workload")):
            self.assertIn(expected, self.run_cli("train", "dlio", *words, expect=2).stderr)
        self.assertIn(message("app-described-by-flags"), self.run_cli("train", "stream", "--data", "data/unet3d/train", "--workload", "it.yaml", expect=2).stderr)
        self.assertIn(message("extra-argument"), self.run_cli("train", "stream", "x", "--data", "data/unet3d/train", expect=2).stderr)


def lacking():
    """Why none of this can run here, or None."""
    done = subprocess.run([PENSTOCK, "--version", "--json"], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return next((row["reason"] for row in rows if row["name"] == "dlio" and not row["present"]), None)


if __name__ == "__main__":
    main(lacking)
