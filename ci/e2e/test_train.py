#!/usr/bin/env python3
"""`penstock train` from outside: order, accounting, records, real photographs, bad input, and Ctrl-C."""

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

from penstock_cli import PENSTOCK, SOURCE, CliTest, main

SAMPLES = 40
METRICS = {
    "samples_per_s", "payload_bytes_per_s", "wall_s", "steps", "step_s", "input_wait_s", "accelerator_utilization",
    "au_dlio", "accelerators", "input_overlap", "input_alone_s", "first_batch_s", "step_overshoot", "skipped_samples",
    "dropped_tail_samples", "peak_memory_bytes", "payload_bytes", "tier_bytes_read",
} | {f"stage_{what}_s.{stage}" for what in ("busy", "starved", "blocked")
     for stage in ("read", "decode", "resize", "accelerator")}


def value(record, metric):
    return record["metrics"][metric]["value"]


class TrainTest(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([PENSTOCK, "generate", "imagenet", "--out", str(cls.made / "corpus"), "--samples", str(SAMPLES),
                        "--seed", "7", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def corpus(self):
        """A copy of the corpus that this test may spoil, and its pictures by name."""
        folder = self.dir / "corpus"
        shutil.copytree(self.made / "corpus", folder)
        return folder, sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))

    def train(self, *args, data=None, seed="3", **kwargs):
        return self.records("train", "alexnet", "--data", data or self.made / "corpus", "--seed", seed, *args, **kwargs)

    def log(self, *args, name="samples.log", **kwargs):
        """The sample log of a run: (epoch, step, rank, index) a line."""
        self.train("--sample-log", self.dir / name, *args, **kwargs)
        return [tuple(map(int, line.split(" "))) for line in (self.dir / name).read_text().splitlines()]


class Order(TrainTest):
    def test_an_epoch_uses_each_sample_once(self):
        lines = self.log("--batch", "8", "--epochs", "2", "--threads", "3")
        self.assertEqual(len(lines), 2 * SAMPLES)
        for epoch in (0, 1):
            indices = [index for e, _, _, index in lines if e == epoch]
            self.assertEqual(sorted(indices), list(range(SAMPLES)))
        self.assertEqual([step for _, step, _, _ in lines], [n // 8 for n in range(2 * SAMPLES)])
        self.assertEqual({rank for _, _, rank, _ in lines}, {0})
        self.assertNotEqual([line[3] for line in lines[:SAMPLES]], [line[3] for line in lines[SAMPLES:]])

    def test_the_order_depends_on_the_seed_and_on_nothing_else(self):
        first = self.log("--batch", "4", "--threads", "1", "--prefetch", "0")
        self.assertEqual(self.log("--batch", "4", "--threads", "4", "--prefetch", "5"), first)
        self.assertEqual(self.log("--batch", "4", "--threads", "2", "--accelerator", "emulated:step=2ms"), first)
        other = self.log("--batch", "4", seed="4")
        self.assertNotEqual(other, first)

    def test_without_shuffle_it_follows_the_manifest(self):
        lines = self.log("--batch", "8", "--shuffle", "none")
        self.assertEqual([index for _, _, _, index in lines], list(range(SAMPLES)))

    def test_steps_go_on_into_further_epochs(self):
        lines = self.log("--batch", "16", "--steps", "5")
        self.assertEqual([epoch for epoch, _, _, _ in lines[::16]], [0, 0, 1, 1, 2])

    def test_the_tail_is_counted(self):
        [record] = self.train("--batch", "16", "--epochs", "2")
        self.assertEqual(value(record, "steps"), 4)
        self.assertEqual(value(record, "dropped_tail_samples"), 2 * (SAMPLES - 32))


class Ways(TrainTest):
    def test_every_way_to_treat_pictures(self):
        for words, layout in (((), "f32 NHWC 224x224x3"), (("--decode", "scaled", "--set", "image=64"), "f32 NHWC 64x64x3"),
                              (("--decode", "crop", "--set", "mirror=1"), "f32 NHWC 224x224x3"),
                              (("--resize", "antialias", "--set", "type=u8"), "u8 NHWC 224x224x3"),
                              (("--set", "crop=random", "--set", "type=f16", "--set", "axes=nchw"), "f16 NCHW 3x224x224")):
            [record] = self.train("--batch", "8", "--epochs", "1", *words)
            self.assertEqual(record["verdict"], "ok", record["reason"])
            self.assertEqual(record["parameters"]["layout"], layout)
            self.assertEqual(value(record, "steps"), SAMPLES // 8)

    def test_the_order_and_the_samples_are_the_same_at_any_depth(self):
        first = self.log("--batch", "8", "--depth", "1")
        for backend in ("posix", "uring", "libaio"):
            place = f"{backend}:{self.made / 'corpus'}"
            if self.run_cli("describe", place, expect=None).returncode == 0:
                for depth in ("3", "64"):
                    self.assertEqual(self.log("--batch", "8", "--iodepth", depth, data=place), first)

    def test_a_back_end_with_queues_is_read_through_them(self):
        corpus = self.made / "corpus"
        [record] = self.train("--batch", "8", "--epochs", "1", data=f"posix:{corpus}")
        self.assertEqual(record["parameters"]["depth"], 1)
        [record] = self.train("--batch", "8", "--epochs", "1", "--depth", "40", "--threads", "1", data=f"posix:{corpus},latency=20ms")
        self.assertEqual(record["parameters"]["depth"], 40)
        self.assertEqual(value(record, "steps"), SAMPLES // 8)

    def test_jitter_and_burning(self):
        [record] = self.train("--batch", "8", "--steps", "10", "--accelerator", "emulated:step=20ms,jitter=15ms,burn=cpu:0.5")
        self.assertEqual(record["parameters"]["step_s"], 0.02)
        steps = record["metrics"]["step_s"]["samples"]
        self.assertGreater(max(steps) - min(steps), 0.003)
        self.assertIn(record["verdict"], ("ok", "client_bound"))

    def test_stream_takes_anything_as_it_is_stored(self):
        self.run_cli("generate", "unet3d", "--out", "shards", "--format", "npz", "--samples", "24", "--set", "mean=20kB", "--seed", "7")
        for data in (self.made / "corpus", self.dir / "shards"):
            [record] = self.records("train", "stream", "--data", data, "--batch", "8", "--steps", "6", "--seed", "3")
            self.assertEqual(record["verdict"], "ok", record["reason"])
            self.assertEqual(record["parameters"]["layout"], "as stored")
            self.assertEqual(value(record, "steps"), 6)
            self.assertIn("stage_busy_s.read", record["metrics"])
            self.assertNotIn("stage_busy_s.decode", record["metrics"])
        done = self.run_cli("train", "stream", "--data", "shards", "--decode", "full", expect=2)
        self.assertIn("as they are stored", done.stderr)
        done = self.run_cli("train", "alexnet", "--data", "shards", expect=2)
        self.assertIn("takes jpeg|png", done.stderr)

    def test_words_that_are_wrong(self):
        for words, said in ((("--decode", "half"), "full|scaled|crop"), (("--resize", "cubic"), "bilinear|antialias"),
                            (("--set", "type=f64"), "f32|f16|u8"), (("--decode", "crop", "--set", "crop=whole"), "random crops"), (("--depth", "0"), "depth"), (("--depth", "5000"), "at most 1024"),
                            (("--accelerator", "emulated:step=1ms,burn=gpu"), "burn=cpu:0.5"),
                            (("--accelerator", "emulated:step=1ms,jitter=1ms"), "shorter than its step")):
            done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", *words, expect=2)
            self.assertIn(said, done.stderr)


class Figures(TrainTest):
    def test_the_record_says_what_the_contract_says(self):
        [record] = self.train("--batch", "8", "--steps", "10", "--prefetch", "2", "--threads", "2",
                              "--accelerator", "emulated:step=60ms")
        self.assertEqual(METRICS - set(record["metrics"]), set())
        self.assertIn(record["verdict"], ("ok", "client_bound"))
        parameters = record["parameters"]
        for name, expected in {"app": "alexnet", "prefetch": 2, "batch": 8, "threads": 2, "decode": "full",
                               "resize": "bilinear", "accelerator": "emulated:step=60ms", "step_s": 0.06,
                               "layout": "f32 NHWC 224x224x3", "shuffle": "global", "ranks": 1}.items():
            self.assertEqual(parameters[name], expected, name)
        self.assertEqual(record["corpus"]["samples"], SAMPLES)
        self.assertEqual(len(record["metrics"]["step_s"]["samples"]), 10)
        self.assertEqual(sum(record["series"]["payload_bytes"]["values"]), value(record, "payload_bytes"))
        self.assertGreaterEqual(value(record, "tier_bytes_read"), value(record, "payload_bytes"))

    def test_wall_is_waiting_and_steps(self):
        for prefetch in (0, 4):
            [record] = self.train("--batch", "8", "--steps", "8", "--prefetch", prefetch, "--accelerator",
                                  "emulated:step=40ms")
            overshoot = record["metrics"]["step_s"]["samples"][-1] - 0.040
            self.assertGreaterEqual(overshoot, 0)
            accounted = value(record, "input_wait_s") + 8 * 0.040 + overshoot
            self.assertAlmostEqual(value(record, "wall_s"), accounted, places=6)
            stages = [sum(value(record, f"stage_{what}_s.{stage}") for what in ("busy", "starved", "blocked"))
                      for stage in ("read", "decode", "resize")]
            self.assertAlmostEqual(max(stages), min(stages), places=6)

    def test_the_input_alone_is_measured_on_both_sides_where_that_leaves_the_cache_alone(self):
        def halves(*args):
            [record] = self.train("--batch", "4", "--accelerator", "emulated:step=2ms", *args)
            samples = record["metrics"]["input_alone_s"]["samples"]
            alone_s = sum(samples) / len(samples)
            self.assertAlmostEqual(value(record, "input_overlap"), 1 - value(record, "input_wait_s") / alone_s, places=6)
            return len(samples)
        self.assertEqual(halves("--cache", "warm"), 2)
        self.assertEqual(halves("--cache", "warm", "--steps", "7"), 1, "too few to divide")
        self.assertEqual(halves("--cache", "cold", "--epochs", "2"), 1, "the second epoch is warm")

    def test_without_an_accelerator_there_is_no_utilization(self):
        [record] = self.train("--batch", "8", "--accelerator", "none")
        for absent in ("accelerator_utilization", "au_dlio", "step_overshoot", "input_overlap"):
            self.assertNotIn(absent, record["metrics"])
        self.assertAlmostEqual(value(record, "input_wait_s"), value(record, "wall_s"), places=6)

    def test_each_tier_gets_a_row(self):
        copy = self.dir / "copy"
        shutil.copytree(self.made / "corpus", copy)
        log = self.dir / "log"
        records = self.train("--tier", f"other=posix:{copy}", "--batch", "8", "--sample-log", log)
        self.assertEqual(len(records), 2)
        self.assertEqual(records[1]["tiers"]["data"]["name"], "other")
        self.assertEqual(log.read_text(), (self.dir / "log.other").read_text())
        table = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--tier", f"other=posix:{copy}",
                             "--batch", "8", "--accelerator", "emulated:step=20ms", "--prefetch", "2").stdout
        self.assertRegex(table, r"(?m)^other +5 ")
        self.assertIn("The accelerator of", table)

    def test_tiers_of_one_name_get_rows_and_logs_of_their_own(self):
        copies = [self.dir / "one", self.dir / "two"]
        for copy in copies:
            shutil.copytree(self.made / "corpus", copy)
        records = self.train("--tier", copies[0], "--tier", copies[1], "--batch", "8", "--sample-log", self.dir / "log")
        self.assertEqual(len({record["parameters"]["tier"] for record in records}), 3)
        self.assertEqual(len(list(self.dir.glob("log*"))), 3)

    def test_cache_states_are_said(self):
        for wish in ("cold", "warm"):
            [record] = self.train("--batch", "8", "--cache", wish, expect=None)
            said = record["cache"]["client_data"]
            if record["verdict"] == f"not_{wish}":
                continue
            self.assertIn(said, (wish, "memory", "unverified"))
            if said == wish and wish == "cold":
                self.assertLessEqual(record["cache"]["resident_fraction_before"], 0.01)

    def test_the_table_says_what_was_alternating(self):
        out = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--prefetch", "0",
                           "--accelerator", "emulated:step=10ms").stdout
        self.assertIn("input and steps alternate", out)
        self.assertRegex(out, r"decode +\d")

    def test_list(self):
        self.assertIn("PDSW-DISCS", self.run_cli("train", "--list").stdout)
        rows = [json.loads(line) for line in self.run_cli("train", "--list", "--json").stdout.splitlines()]
        self.assertIn("alexnet", [row["name"] for row in rows])

    def test_the_picture_size_is_the_apps_own_option(self):
        [record] = self.train("--batch", "8", "--set", "image=64")
        self.assertEqual(record["parameters"]["layout"], "f32 NHWC 64x64x3")


class RealPhotographs(TrainTest):
    def test_photographs_that_nobody_here_made(self):
        package, folder = (SOURCE / "ci" / "photo_package").read_text().split()
        if not pathlib.Path(folder).is_dir():
            self.skipTest(f"needs the photographs of the Debian package {package}")
        [record] = self.train("--scan", "--batch", "10", "--epochs", "1", "--prefetch", "2", data=folder)
        self.assertEqual(record["verdict"], "ok")
        self.assertGreaterEqual(value(record, "steps"), 2)
        self.assertEqual(value(record, "skipped_samples"), 0)
        self.assertEqual(record["corpus"]["recipe"], "scan")


class Labels(TrainTest):
    def test_a_folder_without_folders_has_no_labels(self):
        flat = self.dir / "flat"
        flat.mkdir()
        for path in self.corpus()[1]:
            shutil.copy(path, flat / path.name)
        done = self.run_cli("train", "alexnet", "--data", flat, "--scan", "--batch", "8", "--json")
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertIn("no labels", done.stderr)
        self.assertEqual(record["parameters"]["labels"], 0)

    def test_labels_come_with_the_corpus(self):
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--json")
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertNotIn("no labels", done.stderr)
        self.assertGreater(record["parameters"]["labels"], 0)


class BadInput(TrainTest):
    def spoil(self, how):
        """A corpus in which one picture is spoilt, and that picture's name."""
        folder, pictures = self.corpus()
        how(pictures[7])
        return folder, pictures[7].name

    def check_fails_and_skips(self, how):
        folder, name = self.spoil(how)
        done = self.run_cli("train", "alexnet", "--data", folder, "--batch", "4", "--json", expect=1)
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(name, record["reason"])
        self.assertIn(name, done.stderr)

        done = self.run_cli("train", "alexnet", "--data", folder, "--batch", "4", "--on-error", "skip", "--json",
                            "--threads", "3", "--prefetch", "2", "--sample-log", "log")
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertEqual(record["verdict"], "degraded")
        self.assertEqual(value(record, "skipped_samples"), 1)
        self.assertIn(name, record["reason"])
        self.assertIn(name, done.stderr)
        used = collections.Counter(line.split()[3] for line in (self.dir / "log").read_text().splitlines())
        self.assertEqual(set(used.values()), {1})
        self.assertEqual(len(used) + 1 + value(record, "dropped_tail_samples"), SAMPLES)

    def test_truncated(self):
        # The name and the size stay those of the manifest: only the decoder can tell.
        def cut(path):
            data = path.read_bytes()
            path.write_bytes(data[:len(data) // 2] + b"\0" * (len(data) - len(data) // 2))
        self.check_fails_and_skips(cut)

    def test_no_jpeg(self):
        self.check_fails_and_skips(lambda path: path.write_bytes(b"x" * path.stat().st_size))

    def test_vanished(self):
        self.check_fails_and_skips(lambda path: path.unlink())

    def test_shrunk(self):
        self.check_fails_and_skips(lambda path: path.write_bytes(path.read_bytes()[:100]))

    def test_empty_file(self):
        self.check_fails_and_skips(lambda path: path.write_bytes(b""))

    def test_everything_is_bad(self):
        folder, pictures = self.corpus()
        for path in pictures:
            path.write_bytes(b"?" * path.stat().st_size)
        begin = time.monotonic()
        done = self.run_cli("train", "alexnet", "--data", folder, "--batch", "4", "--steps", "1000", "--on-error", "skip",
                            "--json", expect=1, timeout=60)
        self.assertLess(time.monotonic() - begin, 60)
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertEqual(record["verdict"], "failed")
        self.assertIn("no batch", record["reason"])
        self.assertEqual(value(record, "steps"), 0)

    def test_a_scanned_folder_with_something_else_in_it(self):
        folder, pictures = self.corpus()
        shutil.rmtree(folder / ".penstock")
        pictures[3].write_bytes(b"not a picture at all")
        done = self.run_cli("train", "alexnet", "--data", folder, "--scan", "--batch", "4", "--on-error", "skip")
        self.assertIn(pictures[3].name, done.stderr)

    def test_a_missing_object_on_another_tier(self):
        copy, pictures = self.corpus()
        pictures[0].unlink()
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--tier", f"other=posix:{copy}",
                            "--batch", "4", "--json", expect=1)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([record["verdict"] for record in records], ["ok", "failed"])
        self.assertIn(pictures[0].name, records[1]["reason"])

    def test_an_empty_folder(self):
        (self.dir / "empty").mkdir()
        done = self.run_cli("train", "alexnet", "--data", "empty", "--scan", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("empty", done.stderr)
        done = self.run_cli("train", "alexnet", "--data", "empty", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("--scan", done.stderr)

    def test_fewer_samples_than_a_batch(self):
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", expect=2)
        self.assertIn(f"--batch {SAMPLES}", done.stderr)
        self.assertFalse((self.dir / "penstock-results").exists())

    def test_wrong_words(self):
        data = ("--data", self.made / "corpus", "--batch", "8")
        for words, hint in ((("alexnett", *data), "alexnet"),
                            (data, "--list"),
                            (("alexnet",), "--data"),
                            (("alexnet", *data, "--threads", "0"), "threads"),
                            (("alexnet", *data, "--threads", "100000"), "threads"),
                            (("alexnet", *data, "--batch", "0"), "batch"),
                            (("alexnet", *data, "--batch", "99999999999999999999"), "batch"),
                            (("alexnet", *data, "--prefetch", "-1"), "prefetch"),
                            (("alexnet", *data, "--steps", "0"), "steps"),
                            (("alexnet", *data, "--prefech", "1"), "--prefetch"),
                            (("alexnet", *data, "--decode", "half"), "full"),
                            (("alexnet", *data, "--accelerator", "gpu"), "emulated"),
                            (("alexnet", *data, "--accelerator", "emulated"), "step"),
                            (("alexnet", *data, "--accelerator", "emulated:step=10"), "step"),
                            (("alexnet", *data, "--accelerator", "emulated:stepp=10ms"), "step"),
                            (("alexnet", *data, "--set", "imag=3"), "image"),
                            (("alexnet", *data, "--set", "image=0"), "image"),
                            (("alexnet", *data, "--set", "image"), "KEY=VALUE"),
                            (("alexnet", *data, "--shuffle", "locally"), "local")):
            with self.subTest(words=words[-2:]):
                done = self.run_cli("train", *words, expect=2)
                self.assertIn(hint, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_more_prefetching_than_memory(self):
        for depth in ("100000000", str(2**63 - 1)):
            done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--prefetch", depth,
                                expect=None)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn("--prefetch", done.stderr)

    def test_a_sample_log_that_cannot_be_written(self):
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--sample-log",
                            "no/such/folder/log", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("no/such/folder/log", done.stderr)


class Interrupts(TrainTest):
    def wait_for_log(self, lines):
        log = self.dir / "log"
        deadline = time.monotonic() + 120
        while not (log.exists() and (not lines or log.stat().st_size > 0)):
            self.assertLess(time.monotonic(), deadline, "training does not begin")
            time.sleep(0.02)

    def start_training(self, *args):
        return self.start("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--sample-log", "log",
                          *args)

    def test_sigint_keeps_what_was_measured(self):
        process = self.start_training("--steps", "100000", "--accelerator", "emulated:step=5ms", "--json")
        self.wait_for_log(lines=True)  # its buffer was full once: some steps have ended
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        [record] = map(json.loads, out.splitlines())
        self.assertEqual(record["verdict"], "interrupted")
        self.assertGreater(value(record, "steps"), 0)
        stored = list((self.dir / "penstock-results").iterdir())
        self.assertEqual([path.suffix for path in stored], [".jsonl"])
        lines = (self.dir / "log").read_text().splitlines()
        self.assertEqual(len(lines), 8 * value(record, "steps"))

    def test_a_manifest_that_is_cut_short_under_it(self):
        folder, _ = self.corpus()
        process = self.start("train", "alexnet", "--data", folder, "--batch", "8", "--steps", "100000", "--sample-log", "log")
        self.wait_for_log(lines=True)
        os.truncate(folder / ".penstock" / "manifest", 0)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("became shorter", err)

    def test_sigterm_in_the_middle_of_a_long_step(self):
        process = self.start_training("--accelerator", "emulated:step=1h", "--prefetch", "3")
        self.wait_for_log(lines=False)
        time.sleep(0.3)  # most likely in the first step now; before it, it must stop as well
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, err)


if __name__ == "__main__":
    main()
