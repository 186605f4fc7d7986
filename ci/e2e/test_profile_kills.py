#!/usr/bin/env python3
"""A profiled program that is killed at any instant: its session opens, and is within one operation of the truth."""

import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from penstock_cli import BUILD, PENSTOCK, SANITIZED, main

LIBRARY = BUILD / "libpenstock_profile.so"
CALLS = BUILD / "benchmarks" / "self" / "rates" / "penstock_io_calls"
KILLS = 20 if SANITIZED else 200
PIECE = 100


class KilledAtAnyInstant(unittest.TestCase):
    def setUp(self):
        if not LIBRARY.exists() or not CALLS.exists():
            self.skipTest("this build has no profiler")
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where an fsync is soon done
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-kills-", dir=base))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"
        self.data.write_bytes(os.urandom(4096))

    def killed(self, number, delay):
        """The file's row of the report, and how many reads the program had logged when it was killed."""
        session, log = self.folder / f"session-{number}", self.folder / f"log-{number}"
        session.mkdir(mode=0o700)
        environment = os.environ | {"LD_PRELOAD": str(LIBRARY), "PENSTOCK_PROFILE_SESSION": str(session)}
        with subprocess.Popen([CALLS, "logged", self.data, str(10**12), log], env=environment) as program:
            while not log.exists() or log.stat().st_size < 8:
                time.sleep(0.0005)
            time.sleep(delay)
            program.send_signal(signal.SIGKILL)
            program.wait()
        logged = struct.unpack("<Q", log.read_bytes())[0]
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", session], capture_output=True, text=True, check=False)
        self.assertEqual(report.returncode, 0, report.stderr)
        rows = [json.loads(line) for line in report.stdout.splitlines()]
        shutil.rmtree(session)
        return {row["path"]: row for row in rows if row["kind"] == "file"}, logged, log

    def test_counts_are_within_one_operation(self):
        rng = random.Random(11)
        for number in range(KILLS):
            with self.subTest(number=number):
                files, logged, log = self.killed(number, rng.uniform(0, 0.02))
                row = files[str(self.data)]
                self.assertIn(row["reads"], (logged, logged + 1))
                self.assertIn(row["bytes_read"], (logged * PIECE, (logged + 1) * PIECE))
                # The log lacks the write in progress, or has one more write, which was not counted before the kill.
                self.assertIn(files[str(log)]["writes"], (logged - 1, logged))
                log.unlink()


main()
