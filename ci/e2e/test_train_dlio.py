#!/usr/bin/env python3
"""`penstock train dlio`: workloads as DLIO describes them."""

import csv
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


# Every section and key that MLPerf Storage's files have, with YAML 1.1's booleans, nulls, and keys in an unusual order.
ALL_KEYS = """
output: {folder: "${hydra:run.dir}", metric: {exclude_start_steps: 0, exclude_end_steps: 0}}
metric: ~
train: {computation_time_stdev: 0.0001, computation_time: 0.001, epochs: 1, seed_change_epoch: off}
reader:
  {data_loader: pytorch, batch_size: 7, batch_size_eval: 1, read_threads: 1, prefetch_size: 2, file_shuffle: seed, sample_shuffle: seed,
   storage_library: s3dlio, seed: 5, shuffle: On}
storage:
  {storage_type: local_fs, storage_root: ~, storage_library: s3dlio, storage_options: {endpoint_url: "http://h:1", region: r},
   endpoint_uris: [a, b], use_mpi_endpoint_distribution: false}
dataset:
  {data_folder: data/unet3d/, format: npz, num_files_train: 21, num_files_eval: 0, num_files_generated: 21, num_samples_per_file: 1,
   record_length_bytes: 20000, record_length_bytes_stdev: 0, compression: none, skip_listing: TRUE, direct_fs: off,
   parquet: {row_group_size: 1024, read_mode: row_group, columns: [{name: a, dtype: float32, size: 4, read: True}]}}
evaluation: {eval_time: 0.001, epochs_between_evals: 1}
checkpoint:
  {checkpoint_folder: ckpt, checkpoint_after_epoch: 1, num_checkpoints_write: 1, num_checkpoints_read: 1, time_between_checkpoints: 5, fsync: True}
model:
  {name: flux, type: transformer, num_layers: 2, parallelism: {tensor: 1, pipeline: 1, data: 2, zero_stage: 3},
   transformer: {vocab_size: 128, hidden_size: 64, ffn_hidden_size: 128, num_attention_heads: 4, num_kv_heads: 2}}
workflow: {generate_data: no, train: on, evaluation: off, checkpoint: False, profiling: No, debug: yes}
logging: {log_level: info}
profiling: {profiler: iostat, iostat_devices: [sda]}
framework: pytorch
"""


class Dlio(TrainTest):
    def setUp(self):
        super().setUp()
        self.run_cli("generate", "unet3d", "--out", "data/unet3d/train", "--samples", "21", "--set", "mean=20kB", "--seed", "7")
        (self.dir / "it.yaml").write_text(WORKLOAD)

    def dlio(self, *args, workload=None, **kwargs):
        (self.dir / "it.yaml").write_text(workload or WORKLOAD)
        return self.records("train", "dlio", "--workload", "it.yaml", "--seed", "3", *args, **kwargs)

    def dlio_run(self, *args, **kwargs):
        return self.run_cli("train", "dlio", "--workload", "it.yaml", "--seed", "3", *args, **kwargs)

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

    def test_flags_and_overrides_come_before_the_file_is_judged(self):
        self.dlio("++workload.workflow.train=True", "++workload.metric=null", "--steps", "2", workload=WORKLOAD.replace("train: True", "train: False"))
        in_a_store = WORKLOAD + "storage: {storage_type: s3, storage_root: bucket}\n"
        self.dlio("++workload.storage.storage_type=local_fs", "++workload.storage.storage_root=null", "--steps", "2", workload=in_a_store)
        [record] = self.dlio("--data", "data/unet3d/train", "--steps", "2", workload=in_a_store)
        self.assertEqual(value(record, "steps"), 2)
        done = self.dlio_run("++workload.dataset.format=parquet", "--data", "data/unet3d/train", "--steps", "2")
        self.assertIn("parquet", done.stderr)

    def test_what_cannot_be_done_has_its_true_reason(self):
        self.assertIn("Parquet", self.dlio_run("++workload.dataset.format=parquet", expect=2).stderr)
        self.assertIn("endpoint_url", self.dlio_run("++workload.storage={storage_type: s3, storage_root: b}", expect=2).stderr)
        self.assertIn("storage_root", self.dlio_run("++workload.storage={storage_type: s3, storage_options: {endpoint_url: http://h}}", expect=2).stderr)
        self.assertIn("hdfs", self.dlio_run("++workload.storage.storage_type=hdfs", expect=2).stderr)
        self.assertIn("aistore", self.dlio_run("++workload.storage.storage_type=aistore", expect=2).stderr)
        self.assertIn("${oc.env:DATA}", self.dlio_run("++workload.dataset.data_folder=${oc.env:DATA}", expect=2).stderr)
        only_checkpoints = self.dlio_run("++workload.workflow={train: False, generate_data: False}", "++workload.model.name=llama_70b_zero3",
                                         "++workload.checkpoint.checkpoint_folder=ckpt", expect=2)
        self.assertIn("penstock checkpoint bench ckpt --payload llama3-70b", only_checkpoints.stderr)
        self.assertIn("penstock generate", self.dlio_run("++workload.workflow={train: False, checkpoint: False}", expect=2).stderr)

    def test_workload_files_as_yaml_and_hydra_allow_them(self):
        files = {
            "marks": "---\n" + WORKLOAD + "...\n",
            "line ends": "\ufeff" + WORKLOAD.replace("\n", "\r\n"),
            "merge key": WORKLOAD.replace("train: {epochs: 2, computation_time: 0.005}",
                                          "base: &base {epochs: 2, computation_time: 9}\ntrain: {<<: *base, computation_time: 0.005}"),
        }
        for name, text in files.items():
            with self.subTest(name):
                [record] = self.dlio(workload=text)
                self.assertEqual((value(record, "steps"), record["parameters"]["step_s"]), (6, 0.005))
        for words in (["++hydra.run.dir=run2", "++hydra.output_subdir=configs"], ["~workload.metric"], ["+workload.train.total_training_steps=2"],
                      ["++workload.workflow.profiling=False", "++workload.profiling.profiler=none"]):
            with self.subTest(words):
                [record] = self.dlio(*words, "--steps", "2")
                self.assertEqual(value(record, "steps"), 2)
        (self.dir / "it.yaml").write_text(WORKLOAD + "train: {epochs: 7}\n")
        self.assertIn("'train' twice", self.dlio_run("--steps", "2", expect=2).stderr)

    def test_the_data_of_an_object_store(self):
        done = self.dlio_run("++workload.storage={storage_type: s3, storage_root: s3://b/, storage_options: {endpoint_url: http://127.0.0.1:1}}",
                             "++workload.dataset.data_folder=x/y", expect=1, env={"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})
        self.assertIn("'b' at http://127.0.0.1:1", done.stderr)

    def test_the_storage_root_is_above_the_data_folder(self):
        [record] = self.dlio("++workload.storage.storage_root=data", "++workload.dataset.data_folder=unet3d", "--steps", "2")
        self.assertEqual(value(record, "steps"), 2)

    def test_another_batch_and_samples_of_another_size_are_noticed(self):
        done = self.dlio_run("--batch", "3", "--steps", "2")
        self.assertIn(message("batch-replaces-workload-batch", n=3), done.stderr)
        self.assertNotIn(message("samples-of-another-size"), done.stderr)
        self.assertNotIn(message("batch-replaces-workload-batch", n=7), self.dlio_run("--batch", "7", "--steps", "2").stderr)
        done = self.dlio_run("++workload.dataset.record_length_bytes=146600628", "--steps", "2")
        self.assertIn(message("samples-of-another-size"), done.stderr)

    def test_steps_are_as_short_as_the_workload_says(self):
        for given, recorded in (("0.0000001", 1e-7), ("0.0000014", 1.4e-6), ("0.00000000001", 0)):
            [record] = self.dlio(f"++workload.train.computation_time={given}", "--steps", "2")
            self.assertAlmostEqual(record["parameters"]["step_s"], recorded, delta=1e-12)
        [record] = self.dlio("++workload.train.computation_time={type: gamma, shape: 4, scale: 0.001}", "--steps", "2")
        self.assertEqual(record["parameters"]["accelerator"], "emulated:step=4000000ns,stdev=2000000ns,distribution=gamma")
        [record] = self.dlio("++workload.train.computation_time={type: uniform, min: 0.001, max: 0.003}", "--steps", "2")
        self.assertEqual(record["parameters"]["accelerator"], "emulated:step=2000000ns,jitter=1000000ns")

    def test_epochs_without_a_counted_step_have_no_au(self):
        for words in (("--batch", "21"), ("++workload.output.metric={exclude_start_steps: 2, exclude_end_steps: 1}",)):
            done = self.dlio_run(*words, "--json")
            self.assertNotIn("au_dlio", json.loads(done.stdout)["metrics"])
            self.assertIn(message("dlio-has-no-au"), self.dlio_run(*words).stdout)

    def test_excluded_steps_are_left_out_of_the_au(self):
        for first, last in ((0, 2), (1, 0), (0, 0), (2, 0)):
            [record] = self.dlio("--timeline", "t.csv", f"++workload.output.metric={{exclude_start_steps: {first}, exclude_end_steps: {last}}}",
                                 "++workload.train.computation_time=0.02", "--data", "data/unet3d/train,latency=15ms", "--prefetch", "1", "--threads", "1")
            self.assertAlmostEqual(value(record, "au_dlio"), self.au_by_dlio(record, self.dir / "t.csv", first, last), delta=0.02)

    def au_by_dlio(self, record, timeline, first, last):
        """compute_metrics_train() of DLIO's utils/statscounter.py on the begins of the steps in a timeline and their lengths in the record,
        as the mean over the epochs. The timeline itself has the ends that steps should have had."""
        with open(timeline, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        lengths = iter(record["metrics"]["step_s"]["samples"])
        end = min(float(row["Start Time"]) for row in rows if row["Action Name"] == "Training Iteration")
        of_epochs = []
        for epoch in sorted({row["Epoch"] for row in rows if row["Action Name"] == "Training Step"}):
            computed, took = [], []
            for begin in sorted(float(row["Start Time"]) for row in rows if (row["Epoch"], row["Action Name"]) == (epoch, "Training Step")):
                computed.append(next(lengths))
                took.append(begin + computed[-1] - end)
                end += took[-1]
            counted = slice(first, len(took) - last)
            of_epochs.append(sum(computed[counted]) / sum(took[counted]))
        return sum(of_epochs) / len(of_epochs)

    def test_data_that_are_not_what_the_workload_says_are_noticed(self):
        done = self.run_cli("train", "dlio", "--workload", "it.yaml", "--data", self.made / "corpus", "--steps", "2")
        self.assertIn("the workload is about 21 samples in npz, 'corpus' has 40 in files", done.stderr)

    def test_data_without_a_manifest_is_scanned(self):
        shutil.rmtree(self.dir / "data/unet3d/train/.penstock")
        [record] = self.dlio()
        self.assertEqual(record["corpus"]["samples"], 21)
        self.assertEqual(value(record, "steps"), 6)

    def test_every_key_of_mlperf_files_is_known(self):
        (self.dir / "it.yaml").write_text(ALL_KEYS)
        done = self.dlio_run("--json")
        record = json.loads(done.stdout)
        self.assertNotIn(message("workload-keys-ignored"), done.stderr)
        self.assertEqual(record["parameters"]["accelerator"], "emulated:step=1000000ns,stdev=100000ns")
        self.assertEqual((record["parameters"]["shuffle"], value(record, "steps")), ("global", 3))

    def test_files_that_a_file_is_based_on(self):
        (self.dir / "base.yaml").write_text(ALL_KEYS)
        [record] = self.dlio("++workload.train.computation_time=0.002", workload="defaults: [base, _self_]\ntrain: {epochs: 2}\n")
        self.assertEqual(record["parameters"]["accelerator"], "emulated:step=2000000ns,stdev=100000ns")
        self.assertEqual(value(record, "steps"), 6)

    def test_a_mapping_that_contains_itself(self):
        (self.dir / "base.yaml").write_text("dataset: &a {record_length_bytes: 5, more: *a}\n")
        (self.dir / "it.yaml").write_text("defaults: [base]\ndataset: &a {record_length_bytes: 5, more: *a}\n" + WORKLOAD.split("dataset:")[0])
        self.assertIn("nested too deeply", self.dlio_run(expect=2).stderr)

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
