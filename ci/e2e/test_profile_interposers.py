#!/usr/bin/env python3
"""Programs that have another library between us and libc: they run as without us, and each call counts once."""

import os
import subprocess
import unittest

from penstock_cli import BUILD, main
from profile_case import ProgramsTest

PROGRAMS = BUILD / "profiling" / "interpose"
CALLS = PROGRAMS / "penstock_profile_calls"
LINKED = PROGRAMS / "penstock_profile_calls_linked"
MADE_OF_SYSCALL = PROGRAMS / "libpenstock_profile_made_of_syscall.so"
COUNTS = {"opens": 1, "closes": 1, "reads": 3, "writes": 6, "bytes_read": 300, "bytes_written": 600, "mmaps": 2, "mapped_bytes": 1200}
OF_CHILD = {"opens": 1, "reads": 0, "writes": 1, "bytes_written": 10, "mmaps": 0}


@unittest.skipIf(not CALLS.exists(), "this build has no such programs")
class MadeOfSyscall(ProgramsTest):
    """Functions that are made of syscall() come back to us: what they ask for goes to the kernel, and counts once."""

    def counts_once(self, program, **environment):
        data = self.folder / "data"
        alone = subprocess.run([program, data], env=os.environ | environment, check=False, timeout=60)
        self.assertEqual(alone.returncode, 0)
        session, files, _ = self.profiled([program, data], env=os.environ | environment, timeout=60)
        row, child = files[str(data)], files[f"{data}.child"]
        self.assertEqual({name: row[name] for name in COUNTS}, COUNTS)
        self.assertEqual({name: child[name] for name in OF_CHILD}, OF_CHILD)
        self.assertEqual((session["processes"], session["dropped"], session["problems"]), (2, 0, []))
        self.assertEqual((session["bytes_read"], session["bytes_written"]), (300, 610))

    def test_with_libc_alone(self):
        self.counts_once(CALLS)

    def test_preloaded(self):
        self.counts_once(CALLS, LD_PRELOAD=str(MADE_OF_SYSCALL))

    def test_linked(self):
        self.counts_once(LINKED)


if __name__ == "__main__":
    main()
