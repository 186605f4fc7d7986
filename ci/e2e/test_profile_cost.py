#!/usr/bin/env python3
"""How many instructions the profiler adds to a call, counted by callgrind: the same at every run, whatever else goes on.

The limits are what it takes, and a little: who makes it cheaper lowers them."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from penstock_cli import BUILD, SANITIZED, main

LIBRARY = BUILD / "libpenstock_profile.so"
CALLS = BUILD / "benchmarks" / "self" / "rates" / "penstock_io_calls"
FEW, MANY = 5000, 15000


class InstructionsPerCall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if SANITIZED:
            raise unittest.SkipTest("a sanitizer has instructions of its own")
        if shutil.which("valgrind") is None:
            raise unittest.SkipTest("no valgrind here")
        if not LIBRARY.exists() or not CALLS.exists():
            raise unittest.SkipTest("this build has no profiler")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-cost-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        (cls.folder / "big").write_bytes(os.urandom(1 << 20))
        subprocess.run([CALLS, "make", cls.folder / "small", str(MANY)], check=True)

    def instructions(self, words, environment):
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", CALLS, *map(str, words)], capture_output=True,
                              text=True, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(re.search(r"Collected : (\d+)", done.stderr)[1])

    def per_call(self, kind, path, *more, **variables):
        counts = []
        for calls in (FEW, MANY):
            session = tempfile.mkdtemp(dir=self.folder, prefix="session-")
            environment = os.environ | {"PENSTOCK_PROFILE_SESSION": session, "PENSTOCK_PROFILE_CLOCK": "tsc"} | variables
            counts.append(self.instructions([kind, self.folder / path, calls, *more], environment))
        return (counts[1] - counts[0]) / (MANY - FEW)

    def added(self, *words, **variables):
        return self.per_call(*words, LD_PRELOAD=str(LIBRARY), **variables) - self.per_call(*words)

    def check(self, added, limit):
        print(f"{self._testMethodName}: {added:.0f} instructions, limit {limit}")
        self.assertLess(added, limit)
        self.assertGreater(added, 20, "it was not watched")

    def test_pread(self):
        self.check(self.added("pread", "big"), 147)

    def test_pread_that_is_traced(self):
        self.check(self.added("pread", "big", PENSTOCK_PROFILE_TRACE="1"), 240)

    def test_fread_of_64_bytes(self):
        self.check(self.added("fread", "big", 64), 115)

    def test_open_fstat_read_close(self):
        self.check(self.added("small", "small"), 1240)


main()
