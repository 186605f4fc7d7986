#!/usr/bin/env python3
"""`penstock train hepcnn` and `climate`: whole HDF5 files, validation between epochs, and reads as published."""

import collections
import importlib.util
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from messages import message
import penstock_cli
from penstock_cli import PENSTOCK
from test_ranks import RanksTest, open_mpi

FILES = 16  # for training, and the same number for validation, as in the published run
IMAGES = 12
VALIDATED = 5
WEATHER = 80
EPOCHS = 5
HAS_H5PY = importlib.util.find_spec("h5py") is not None


def value(record, metric):
    return record["metrics"][metric]["value"]


class FilesTest(RanksTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-files-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        for name, *words in (
                ("train", "hepcnn", "--samples", FILES * IMAGES, "--set", f"samples_per_file={IMAGES}", "--set", "shape=3,16,16"),
                ("validation", "hepcnn", "--samples", FILES * VALIDATED, "--set", f"samples_per_file={VALIDATED}", "--set", "shape=3,16,16",
                 "--set", "split=validation"),
                ("weather", "climate", "--samples", WEATHER, "--set", "shape=11,16,24")):
            subprocess.run([PENSTOCK, "generate", *map(str, words), "--out", str(cls.made / name), "--seed", "7",
                            "--results", str(cls.made / "results")], check=True, capture_output=True)

    def hepcnn(self, *args, ranks=1, data=None, validation=True, expect=0):
        words = ["train", "hepcnn", "--data", data or self.made / "train", "--seed", 3, "--batch", 8, *args, "--json"]
        if validation:
            words += ["--validation", self.made / "validation"]
        return self.train(words, ranks, expect)

    def climate(self, *args, ranks=1, data=None, expect=0):
        return self.train(["train", "climate", "--data", data or self.made / "weather", "--seed", 3, *args, "--json"], ranks, expect)

    def train(self, words, ranks, expect):
        done = self.run_cli(*words, expect=expect) if ranks == 1 else self.over(ranks, *words, expect=expect)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def copy_of(self, name):
        folder = self.dir / name
        shutil.copytree(self.made / name, folder)
        return folder, sorted(folder.glob("*-of-*.h5"))

    def log_of(self, path):
        return [tuple(map(int, line.split())) for line in (self.dir / path).read_text().splitlines()]


class Reads(FilesTest):
    """The formulas that the published counts obey: of F files over 5 epochs on N ranks, and of V validation samples."""

    def check_hepcnn(self, ranks):
        for shuffle, reads in (("local", 9 * FILES + ranks), ("global", 10 * FILES + ranks)):
            record, = self.hepcnn("--shuffle", shuffle, ranks=ranks)
            self.assertEqual(record["verdict"], "ok", record["reason"])
            self.assertEqual(value(record, "file_reads"), reads, (ranks, shuffle))
            self.assertEqual(value(record, "file_reads.training"), EPOCHS * FILES)
            self.assertEqual(value(record, "steps"), EPOCHS * (FILES // ranks * IMAGES // 8))
            self.assertEqual(value(record, "validation_passes"), EPOCHS if shuffle == "global" else EPOCHS - 1)
            # Somebody else's count: the bytes that the tier gave.
            size = next((self.made / "train").glob("*-of-*.h5")).stat().st_size
            read = value(record, "tier_bytes_read") - record["environment"]["plan"]["read_bytes"]
            self.assertGreaterEqual(read, EPOCHS * FILES * size)
            self.assertLess(read, (EPOCHS * FILES + 2) * size + ranks * (1 << 17))

    def check_climate(self, ranks):
        record, = self.climate(ranks=ranks)
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertEqual(value(record, "file_reads"), ranks * (3 * (WEATHER // 10 // ranks) + 29))
        self.assertEqual(value(record, "steps"), 29)
        self.assertEqual(value(record, "validation_passes"), 3)

    def test_of_hepcnn_on_one_rank(self):
        self.check_hepcnn(1)

    def test_of_climate_on_one_rank(self):
        self.check_climate(1)

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_of_hepcnn_on_more(self):
        for ranks in (2, 4, 8):
            self.check_hepcnn(ranks)

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_of_climate_on_more(self):
        for ranks in (2, 4, 8):
            self.check_climate(ranks)

    def test_prefetching_reads_nothing_more(self):
        record, = self.hepcnn("--prefetch", 3, "--threads", 2)
        self.assertEqual(value(record, "file_reads"), 9 * FILES + 1)
        record, = self.climate("--prefetch", 0, "--threads", 1)
        self.assertEqual(value(record, "file_reads"), 3 * (WEATHER // 10) + 29)


class Samples(FilesTest):
    def test_every_image_is_used_once_an_epoch_and_file_by_file(self):
        self.hepcnn("--epochs", 2, "--sample-log", "log", validation=False)
        lines = self.log_of("log")
        self.assertEqual(len(lines), 2 * FILES * IMAGES)
        for epoch in (0, 1):
            used = [index for of, _, _, index in lines if of == epoch]
            self.assertEqual(sorted(used), list(range(FILES * IMAGES)))
            files = [index // IMAGES for index in used]
            self.assertEqual(sum(a != b for a, b in zip(files, files[1:])), FILES - 1, "a file is used up before the next")
            self.assertNotEqual(used, sorted(used), "in an order of its own")
        self.assertNotEqual([line[3] for line in lines[:FILES * IMAGES]], [line[3] for line in lines[FILES * IMAGES:]])

    def test_the_order_is_the_seeds_alone(self):
        self.hepcnn("--epochs", 1, "--sample-log", "a", validation=False)
        self.hepcnn("--epochs", 1, "--sample-log", "b", "--prefetch", 4, "--threads", 3, validation=False)
        self.assertEqual(self.log_of("a"), self.log_of("b"))

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_ranks_share_the_files_by_local_and_by_global_shuffling(self):
        for shuffle in ("local", "global"):
            self.hepcnn("--epochs", 3, "--shuffle", shuffle, "--sample-log", "log", ranks=2, validation=False)
            lines = self.log_of("log.0") + self.log_of("log.1")
            for epoch in range(3):
                used = collections.Counter(index for of, _, _, index in lines if of == epoch)
                self.assertEqual(used, collections.Counter(range(FILES * IMAGES)))
            files = [{index // IMAGES for _, _, rank, index in lines if rank == of} for of in (0, 1)]
            self.assertEqual(bool(files[0] & files[1]), shuffle == "global", "local: each keeps its own")

    def test_climate_trains_on_four_fifths(self):
        self.climate("--steps", WEATHER * 8 // 10, "--shuffle", "none", "--sample-log", "log")
        used = [index for _, _, _, index in self.log_of("log")]
        self.assertEqual(len(set(used)), WEATHER * 8 // 10)

    def test_a_validation_is_not_training(self):
        for prefetch in (0, 3):
            record, = self.hepcnn("--accelerator", "emulated:step=3ms", "--shuffle", "global", "--prefetch", prefetch)
            metrics = record["metrics"]
            self.assertEqual(value(record, "validation_samples"), EPOCHS * FILES * VALIDATED)
            parts = sum(metric["value"] for name, metric in metrics.items() if name.startswith("lost_s."))
            overshoot = metrics["step_s"]["samples"][-1] - 0.003
            rest = value(record, "wall_s") - parts - value(record, "steps") * 0.003 - overshoot - value(record, "validation_s")
            self.assertAlmostEqual(rest, 0, places=5, msg="every second is somewhere")
            # A third of a step each, whatever was ahead.
            self.assertGreaterEqual(value(record, "validation_s"), value(record, "validation_samples") // 8 * 0.001)

    def test_a_skipped_file_takes_no_step_away(self):
        folder, files = self.copy_of("train")
        files[5].write_bytes(files[5].read_bytes()[:100])
        steps = 2 * FILES * IMAGES // 8 - 2
        record, = self.hepcnn("--steps", steps, "--on-error", "skip", data=folder, validation=False)
        self.assertEqual(record["verdict"], "degraded")
        self.assertEqual(value(record, "steps"), steps)

    def test_a_search_counts_samples(self):
        record, = self.hepcnn("--find-accelerators", "--steps", 3, "--accelerator", "emulated:step=30ms", validation=False)
        self.assertIn(record["verdict"], ("ok", "client_bound"))
        self.assertIn("accelerators_fed", record["metrics"])  # how many, the machine's load decides
        self.assertEqual(value(record, "steps"), 3)

    def test_bytes_as_published_and_as_they_were(self):
        record, = self.hepcnn("--shuffle", "local")
        image = 4 * 3 * 16 * 16
        training, validation = IMAGES * image, VALIDATED * image
        read_s = value(record, "file_read_s")
        self.assertAlmostEqual(value(record, "read_published_bytes_per_s") * read_s,
                               FILES * training + (9 * FILES + 1 - FILES) * validation, places=0)
        self.assertAlmostEqual(value(record, "read_corrected_bytes_per_s") * read_s,
                               5 * FILES * training + (4 * FILES + 1) * validation, places=0)
        record, = self.hepcnn("--steps", 3, validation=False)
        self.assertGreater(value(record, "file_reads.training"), 0)
        self.assertAlmostEqual(value(record, "read_corrected_bytes_per_s") * value(record, "file_read_s"),
                               value(record, "file_reads.training") * training, places=0)
        record, = self.climate()
        size = next(file for file in (self.made / "weather").glob("**/*.h5") if file.name != "stats.h5").stat().st_size
        self.assertAlmostEqual(value(record, "read_corrected_bytes_per_s") * value(record, "file_read_s"),
                               value(record, "file_reads") * size, places=0)

    def test_a_timeline_tells_validation_from_waiting(self):
        self.hepcnn("--epochs", 2, "--timeline", "run.csv")
        rows = (self.dir / "run.csv").read_text().splitlines()[1:]
        self.assertEqual(sum(",Validation," in row for row in rows), 1)


class BadInput(FilesTest):
    def spoil(self, change):
        folder, files = self.copy_of("train")
        change(files[5])
        return folder, files[5].name

    def expect_bad(self, folder, name, *words, flags=()):
        record, = self.hepcnn("--epochs", 1, *flags, data=folder, validation=False, expect=1)
        self.assertEqual(record["verdict"], "failed")
        for word in (name, *words):
            self.assertIn(word, record["reason"])
        record, = self.hepcnn("--epochs", 1, "--on-error", "skip", *flags, data=folder, validation=False)
        self.assertEqual(record["verdict"], "degraded")
        self.assertEqual(value(record, "skipped_samples"), 1)
        self.assertIn(name, record["reason"])

    def test_a_truncated_file(self):
        def cut(file):
            with open(file, "r+b") as out:
                out.truncate(file.stat().st_size - 100)
        folder, name = self.spoil(cut)
        self.expect_bad(folder, name)

    def test_damaged_headers(self):
        def damage(file):
            with open(file, "r+b") as out:
                out.seek(60)
                out.write(b"damaged")
        folder, name = self.spoil(damage)
        self.expect_bad(folder, name, "at byte")

    @unittest.skipUnless(HAS_H5PY, "needs h5py")
    def test_a_data_set_that_is_missing_or_of_another_type(self):
        import h5py
        import numpy

        def rewrite(file, change):
            with h5py.File(file) as old:
                arrays = {name: old[name][()] for name in old}
            change(arrays)
            with h5py.File(file, "w") as new:
                for name, array in arrays.items():
                    new[name] = array

        for change, word in ((lambda arrays: arrays.pop("psr"), "'psr'"),
                             (lambda arrays: arrays.update(data=arrays["data"].astype(numpy.int32)), "integers"),
                             (lambda arrays: arrays.update(weight=arrays["weight"][:3]), "'weight' has 3 rows")):
            shutil.rmtree(self.dir / "train", ignore_errors=True)
            folder, name = self.spoil(lambda file: rewrite(file, change))
            self.expect_bad(folder, name, word, flags=("--scan", "--types", "h5"))

    def test_wrong_arguments(self):
        self.assertIn(message("app-only-trains"), self.run_cli("train", "stream", "--data", self.made / "train", "--validation", self.made / "validation",
                                                  expect=2).stderr)
        self.assertIn(message("app-takes-no-validation"), self.run_cli("train", "climate", "--data", self.made / "weather", "--validation",
                                                             self.made / "weather", expect=2).stderr)
        self.assertIn("channel 11", self.run_cli("train", "climate", "--data", self.made / "weather", "--set", "channels=0,11",
                                                 expect=2).stderr)
        self.assertIn("--batch 192", self.run_cli("train", "hepcnn", "--data", self.made / "train", "--batch", 500, expect=2).stderr)

    def test_corpora_of_another_kind_are_refused_at_once(self):
        done = self.run_cli("train", "hepcnn", "--data", self.made / "train", "--validation", self.made / "weather", expect=2)
        self.assertIn("'weather' holds raw samples in hdf5 (generate climate); hepcnn takes raw samples in hdf5 (generate hepcnn)", done.stderr)
        # Of files without a manifest the first one tells.
        for app, data, missing in (("hepcnn", "weather", "'data'"), ("climate", "train", "'climate/data'")):
            folder, files = self.copy_of(data)
            shutil.rmtree(folder / ".penstock")
            words = ("train", app, "--data", folder, "--scan", "--types", "h5")
            done = self.run_cli(*words, expect=2)
            for word in (f"no dataset {missing}", f"{app} needs files as 'penstock generate {app}'"):
                self.assertIn(word, done.stderr)
            self.assertFalse((self.dir / "penstock-results").exists())
        if open_mpi():
            done = self.over(FILES + 1, "train", "hepcnn", "--data", self.made / "train", expect=2)
            self.assertIn(message("too-few-files-for-ranks", ranks=FILES + 1, files=FILES), done.stderr)

    def test_a_validation_that_never_comes_is_said(self):
        words = ("train", "hepcnn", "--data", self.made / "train", "--validation", self.made / "validation", "--batch", 8, "--epochs", 1)
        self.assertIn(message("validation-off"), self.run_cli(*words).stderr)
        self.assertNotIn(message("validation-off"), self.run_cli(*words, "--shuffle", "global").stderr)

    def test_climate_without_its_statistics(self):
        folder, _ = self.copy_of("weather")
        (folder / "stats.h5").unlink()
        self.assertIn("'stats.h5'", self.run_cli("train", "climate", "--data", folder, expect=1).stderr)


if __name__ == "__main__":
    penstock_cli.main()
