#!/usr/bin/env python3
"""`penstock train` from outside: order, ways to treat samples, figures and records, real photographs, labels, epochs."""

import json
import os
import pathlib
import shutil

from messages import message
from penstock_cli import SOURCE, main
from train_case import SAMPLES, TrainTest, value

METRICS = {
    "samples_per_s", "payload_bytes_per_s", "wall_s", "steps", "step_s", "input_wait_s", "accelerator_utilization",
    "au_dlio", "accelerators", "input_overlap", "input_alone_s", "first_batch_s", "step_overshoot", "skipped_samples",
    "dropped_tail_samples", "peak_memory_bytes", "payload_bytes", "tier_bytes_read",
} | {f"stage_{what}_s.{stage}" for what in ("busy", "starved", "blocked")
     for stage in ("read", "decode", "resize", "accelerator")}


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

    def test_png_has_no_parts_to_decode(self):
        done = self.run_cli("generate", "imagenet", "--out", "png", "--samples", 8, "--set", "codec=png", "--set", "median=8kB", expect=None)
        if done.returncode == 77:
            self.skipTest("needs a build with libpng")
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(self.dir / "penstock-results")
        shutil.copytree(self.dir / "png", self.dir / "scanned", ignore=shutil.ignore_patterns(".penstock"))
        words = ("train", "alexnet", "--batch", 4, "--set", "image=32")
        for data in (("png",), ("scanned", "--scan")):
            for decode, remedy in (("scaled", "leave out --decode scaled"), ("crop", "leave out --decode crop, and add --set crop=random")):
                done = self.run_cli(*words, "--data", *data, "--decode", decode, expect=2)
                self.assertIn(message("png-decoded-whole", data=data[0], remedy=remedy), done.stderr)
        self.assertFalse((self.dir / "penstock-results").exists())
        output = "--decode scaled is for JPEG, and PNG is decoded whole"
        for way in (("--decode", "full"), ("--set", "crop=random")):
            self.assertNotIn(message("samples-decoded-whole"), self.run_cli(*words, "--data", "png", *way).stderr)
        shutil.copytree(self.made / "corpus", self.dir / "scanned", ignore=shutil.ignore_patterns(".penstock"), dirs_exist_ok=True)
        self.assertEqual(self.run_cli(*words, "--data", "scanned", "--scan", "--decode", "scaled").stderr.count(output), 1)
        self.assertNotIn(message("samples-decoded-whole"), self.run_cli(*words, "--data", "scanned", "--scan").stderr)
        self.assertNotIn(message("samples-decoded-whole"), self.run_cli(*words, "--data", self.made / "corpus", "--decode", "scaled").stderr)

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
            for how in ("", ",keep=1", ",touch=page"):
                [mapped] = self.records("train", "stream", "--data", f"mmap:{data}{how}", "--batch", "8", "--steps", "6", "--seed", "3")
                self.assertEqual(mapped["verdict"], "ok", mapped["reason"])
                self.assertEqual(mapped["parameters"]["layout"], "as stored, in place")
                self.assertEqual(value(mapped, "payload_bytes"), value(record, "payload_bytes"))
            done = self.run_cli("train", "stream", "--data", f"mmap:{data}", "--depth", "4", "--batch", "8", "--steps", "6", "--json")
            self.assertEqual(json.loads(done.stdout)["parameters"]["layout"], "as stored")
            self.assertIn(message("mapped-samples-copied", n=1), done.stderr)
            done = self.run_cli("train", "stream", "--data", f"mmap:{data},keep=1", "--cache", "cold", expect=2)
            self.assertIn(message("mmap-keeps-objects-mapped", n=1), done.stderr)
        done = self.run_cli("train", "stream", "--data", "shards", "--decode", "full", expect=2)
        self.assertIn(message("app-decodes-no-pictures"), done.stderr)
        done = self.run_cli("train", "alexnet", "--data", "shards", expect=2)
        self.assertIn("takes jpeg|png", done.stderr)

    def test_malware_is_read_as_pictures(self):
        self.run_cli("generate", "malware", "--out", "dumps", "--samples", "24", "--set", "median=20kB", "--seed", "7")
        for words, layout in (((), "f32 NHWC 256x256x1"), (("--set", "type=u8", "--set", "image=64"), "u8 NHWC 64x64x1")):
            [record] = self.records("train", "malware", "--data", "dumps", "--batch", "8", "--steps", "6", "--seed", "3", *words)
            self.assertEqual(record["verdict"], "ok", record["reason"])
            self.assertEqual(record["parameters"]["layout"], layout)
        victim = sorted((self.dir / "dumps").rglob("*.bytes"))[3]
        text = bytearray(victim.read_bytes())
        text[57 * 20 + 12] = ord("z")
        victim.write_bytes(text)
        [record] = self.records("train", "malware", "--data", "dumps", "--batch", "8", "--epochs", "1", "--seed", "3", expect=1)
        self.assertIn(victim.name, record["reason"])
        self.assertIn(f"byte {57 * 20}", record["reason"])

    def test_arguments_that_are_wrong(self):
        for words, expected in ((("--decode", "half"), "full|scaled|crop"), (("--resize", "cubic"), "bilinear|antialias"),
                            (("--set", "type=f64"), "f32|f16|u8"), (("--decode", "crop", "--set", "crop=whole"), "random crops"), (("--depth", "0"), "depth"), (("--depth", "5000"), "at most 1024"),
                            (("--accelerator", "emulated:step=1ms,burn=gpu"), "burn=cpu:0.5"),
                            (("--accelerator", "emulated:step=1ms,jitter=1ms"), "smaller than its step time")):
            done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", *words, expect=2)
            self.assertIn(expected, done.stderr)


class Kinds(TrainTest):
    """An app on a corpus of another kind than it takes: wrong use, whatever tells."""

    CORPORA = {"pictures": ("imagenet", "--set", "median=8kB"), "records": ("imagenet", "--set", "median=8kB", "--format", "tfrecord"),
               "images": ("hepcnn", "--set", "shape=3,16,16", "--set", "samples_per_file=6"), "fields": ("climate", "--set", "shape=11,16,16"),
               "small": ("cifar10",), "small-arrays": ("cifar10", "--format", "hdf5"), "dumps": ("malware", "--set", "median=20kB"),
               "bytes": ("unet3d", "--set", "mean=20kB")}
    # Of the images of hepcnn each has the size of one of cifar, and is something else.
    TAKEN = {"alexnet": ("jpeg|png samples", {"pictures", "records"}), "hepcnn": ("raw samples in hdf5 (generate hepcnn)", {"images"}),
             "climate": ("raw samples in hdf5 (generate climate)", {"fields"}),
             "cifar": ("raw samples of 3072 bytes (generate cifar10)", {"small", "small-arrays"}),
             "malware": ("raw samples (generate malware)", {"dumps"}), "stream": ("", set(CORPORA))}

    def test_every_app_on_every_corpus(self):
        for name, (recipe, *words) in self.CORPORA.items():
            self.run_cli("generate", recipe, "--out", name, "--samples", 24, "--seed", 7, *words)
        shutil.rmtree(self.dir / "penstock-results")
        apps = [json.loads(line)["name"] for line in self.run_cli("train", "--list", "--json").stdout.splitlines()]
        self.assertEqual(set(apps) - {"dlio"}, set(self.TAKEN), "dlio is described by a workload, which says what its data are")
        for app, (takes, taken) in self.TAKEN.items():
            for name, (recipe, *_) in self.CORPORA.items():
                with self.subTest(app=app, corpus=name):
                    words = ("train", app, "--data", name, "--batch", 2, "--steps", 2, "--threads", 1)
                    if name in taken:
                        self.run_cli(*words)
                        shutil.rmtree(self.dir / "penstock-results")
                        continue
                    done = self.run_cli(*words, expect=2)
                    self.assertEqual(done.stdout, "")
                    self.assertRegex(done.stderr, rf"'{name}' holds \w+ samples .*\(generate {recipe}\); {app} takes ")
                    self.assertIn(f"{app} takes {takes}\n", done.stderr)
                    self.assertFalse((self.dir / "penstock-results").exists(), "said before anything is measured")


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
        self.assertIn(message("accelerator-sentence"), table)

    def test_tiers_of_one_name_get_rows_and_logs_of_their_own(self):
        copies = [self.dir / "one", self.dir / "two"]
        for copy in copies:
            shutil.copytree(self.made / "corpus", copy)
        records = self.train("--tier", copies[0], "--tier", copies[1], "--batch", "8", "--sample-log", self.dir / "log")
        self.assertEqual(len({record["parameters"]["tier"] for record in records}), 3)
        self.assertEqual(len(list(self.dir.glob("log*"))), 3)

    def test_cache_states_are_said(self):
        for requested in ("cold", "warm"):
            [record] = self.train("--batch", "8", "--cache", requested, expect=None)
            output = record["cache"]["client_data"]
            if record["verdict"] == f"not_{requested}":
                continue
            self.assertIn(output, (requested, "memory", "unverified"))
            if output == requested and requested == "cold":
                self.assertLessEqual(record["cache"]["resident_fraction_before"], 0.01)

    def test_the_table_says_what_was_alternating(self):
        out = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--prefetch", "0",
                           "--accelerator", "emulated:step=10ms").stdout
        self.assertIn(message("input-alternates-with-steps"), out)
        self.assertRegex(out, r"decode +\d")

    def test_list(self):
        self.assertIn("PDSW-DISCS", self.run_cli("train", "--list").stdout)
        rows = [json.loads(line) for line in self.run_cli("train", "--list", "--json").stdout.splitlines()]
        self.assertIn("alexnet", [row["name"] for row in rows])

    def test_the_picture_size_is_the_apps_own_option(self):
        [record] = self.train("--batch", "8", "--set", "image=64")
        self.assertEqual(record["parameters"]["layout"], "f32 NHWC 64x64x3")


class RealPhotographs(TrainTest):
    def test_photographs_from_elsewhere(self):
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
        self.assertIn(message("corpus-without-labels"), done.stderr)
        self.assertEqual(record["parameters"]["labels"], 0)

    def test_labels_come_with_the_corpus(self):
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--json")
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertNotIn(message("corpus-without-labels"), done.stderr)
        self.assertGreater(record["parameters"]["labels"], 0)


class Epochs(TrainTest):
    def test_each_epoch_says_what_devices_moved(self):
        if os.statvfs(self.made).f_fsid == os.statvfs("/dev/shm").f_fsid:
            self.skipTest("the folder for temporary files is in memory")
        for _ in range(5):  # other tests drop the caches of the whole machine
            [record] = self.train("--batch", "8", "--epochs", "3", "--cache", "cold", expect=None)
            if record["verdict"] not in ("ok", "client_bound"):
                self.skipTest(record["reason"])
            fractions = record["metrics"]["epoch_device_bytes_fraction"]["samples"]
            self.assertEqual(len(fractions), 3)
            self.assertGreater(fractions[0], 0.5)
            if max(fractions[1:]) < 0.5:
                return
        self.fail(f"later epochs came from devices, too: {fractions}")


if __name__ == "__main__":
    main()
