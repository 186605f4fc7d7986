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


class OwnReaders(unittest.TestCase):
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

    def test_read_on_two_tiers_at_several_threads(self):
        _, records, files = self.profiled("read", "read", self.corpus, "--tier", f"posix:{self.copy}", "--threads", "1,2,4", "--min-time", "0.05s")
        self.assertNotIn("failed", {record["verdict"] for record in records})
        told = {record["parameters"]["tier"]: record["metrics"]["tier_bytes_read"]["value"] for record in records}
        self.assertEqual(len(told), 2)
        self.assertEqual(sorted(told.values()), sorted((self.below(files, self.corpus), self.below(files, self.copy))))

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


main()
