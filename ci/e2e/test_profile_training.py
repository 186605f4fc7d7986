#!/usr/bin/env python3
"""Penstock's own readers under the profiler: both count the same bytes, and spans and calls come onto one timeline."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from penstock_cli import BUILD, PENSTOCK, SANITIZED, main

LIBRARY = BUILD / "libpenstock_profile.so"


class WithCorpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if SANITIZED or not LIBRARY.exists():
            raise unittest.SkipTest("this build has no profiler" if not SANITIZED else "the profiler watches builds without a sanitizer")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-training-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        cls.fast = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-training-", dir=base)).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.fast, ignore_errors=True)
        cls.corpus, cls.copy = cls.folder / "corpus", cls.fast / "copy"
        cls.penstock("generate", "imagenet", "--out", cls.corpus, "--samples", "24", "--seed", "3", "--set", "median=16KiB")
        cls.penstock("copy", cls.corpus, "--to", cls.copy)

    @classmethod
    def penstock(cls, *words):
        done = subprocess.run([PENSTOCK, *map(str, words), "--progress", "never"], capture_output=True, text=True, check=False, cwd=cls.folder)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout

    def profiled(self, name, *words, trace=False):
        """The session, the records, and bytes read by file."""
        session = self.folder / f"session-{name}"
        run = [PENSTOCK, "profile", "run", "-o", session, *(["--trace"] if trace else []), "--", PENSTOCK, *map(str, words), "--json",
               "--results", self.folder / "results", "--progress", "never"]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", session], capture_output=True, text=True, check=True).stdout
        rows = [json.loads(line) for line in report.splitlines()]
        self.assertEqual(rows[0]["dropped"], 0)
        return session, [json.loads(line) for line in done.stdout.splitlines()], {row["path"]: row["bytes_read"] for row in rows if row["kind"] == "file"}

    def below(self, files, folder):
        """Of objects and, where it was opened, of the manifest, which is mapped: no call reads it, but the tier's record has it."""
        manifest = folder / ".penstock" / "manifest"
        return sum(count for path, count in files.items() if path.startswith(f"{folder}/")) + \
            (manifest.stat().st_size if str(manifest) in files else 0)


class OwnReaders(WithCorpus):
    def test_read_on_two_tiers_at_several_threads(self):
        _, records, files = self.profiled("read", "read", self.corpus, "--tier", f"posix:{self.copy}", "--threads", "1,2,4", "--min-time", "0.05s")
        self.assertNotIn("failed", {record["verdict"] for record in records})
        output = {record["parameters"]["tier"]: record["metrics"]["tier_bytes_read"]["value"] for record in records}
        self.assertEqual(len(output), 2)
        self.assertEqual(sorted(output.values()), sorted((self.below(files, self.corpus), self.below(files, self.copy))))

    def test_train_with_spans(self):
        session, [record], files = self.profiled("train", "train", "alexnet", "--data", self.corpus, "--batch", "4", "--epochs", "1",
                                                 "--threads", "2", "--accelerator", "emulated:step=1ms", trace=True)
        self.assertEqual(self.below(files, self.corpus), record["metrics"]["tier_bytes_read"]["value"])
        timeline = self.folder / "timeline.json"
        subprocess.run([PENSTOCK, "profile", "export", "--to", "chrome", session, "-o", timeline], check=True, capture_output=True)
        events = json.loads(timeline.read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        names = {event["name"] for event in events if event["ph"] == "X"}
        self.assertLessEqual({"decode", "train"}, {name.split()[0].lower() for name in names}, names)
        self.assertTrue(any("read" in name.lower() for name in names), names)


# Reads a data set into memory, trains on nothing, and saves after each epoch; says which of Python's own files it has read itself
# (shared objects are the dynamic loader's).
CIFAR = """
import csv, decimal, email.mime.text, glob, json, logging, multiprocessing, os, random, sys, unittest
images = {path: open(path, "rb").read() for path in sorted(glob.glob("cifar/**/*.bin", recursive=True))}
rows = [images[path][at:at + 3073] for path in images for at in range(0, len(images[path]), 3073)]
for epoch in range(3):
    random.Random(epoch).shuffle(rows)
    with open(f"checkpoint-{epoch}", "wb") as saved:
        for _ in range(8):
            saved.write(os.urandom(1 << 20))
        saved.flush()
        os.fsync(saved.fileno())
specs = [module.__spec__ for module in list(sys.modules.values()) if getattr(module, "__spec__", None)]
files = [spec.cached or spec.origin for spec in specs if spec.has_location]
json.dump([path for path in files if path and os.path.exists(path) and not path.endswith(".so")], sys.stdout)
"""


class Cifar(WithCorpus):
    """A data set that fits into memory: written is far more than read, and Python itself opens more files than the training."""

    def test_python_files_are_there_or_left_out_by_choice(self):
        self.penstock("generate", "cifar10", "--out", self.folder / "cifar", "--samples", "3000", "--seed", "3")
        session = self.folder / "session-cifar"
        done = subprocess.run([PENSTOCK, "profile", "run", "-o", session, "--", "/usr/bin/env", "python3", "-c", CIFAR], capture_output=True,
                              text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        loaded = set(json.loads(done.stdout))
        self.assertGreater(len(loaded), 100)

        def report(*words):
            out = subprocess.run([PENSTOCK, "profile", "report", "--json", session, *words], capture_output=True, text=True, check=True).stdout
            whole, *files = map(json.loads, out.splitlines())
            return whole, {row["path"]: row for row in files if row["kind"] == "file"}

        every, everything = report("--all")
        self.assertEqual(every["dropped"], 0)
        self.assertEqual({path for path in loaded if everything.get(path, {"bytes_read": 0})["bytes_read"] < os.path.getsize(path)}, set())
        chosen, files = report()
        self.assertEqual(loaded & set(files), set())
        images = sum(path.stat().st_size for path in (self.folder / "cifar").rglob("*.bin"))
        self.assertEqual(sum(row["bytes_read"] for path, row in files.items() if path.endswith(".bin")), images)
        self.assertEqual([row["bytes_written"] for path, row in sorted(files.items()) if "checkpoint-" in path], [8 << 20] * 3)
        self.assertGreater(chosen["bytes_written"], 2 * chosen["bytes_read"])
        printed = subprocess.run([PENSTOCK, "profile", "report", session], capture_output=True, text=True, check=True).stdout
        self.assertIn("--all", printed)


main()
