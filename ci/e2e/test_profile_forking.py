#!/usr/bin/env python3
"""`penstock profile attach` to a program that forks at the same time: no child waits for a lock that a thread of its parent held, and what
the children do is counted."""

import unittest

from penstock_cli import BUILD, SANITIZED, main
from profile_attach_case import AttachTest

PROGRAMS = BUILD / "profiling" / "interpose"
FORKING = PROGRAMS / "penstock_profile_forking"
PLUGIN = PROGRAMS / "penstock_profile_plugin.so"
CYCLES = 3 if SANITIZED else 8
BYTES = 4096


@unittest.skipIf(not FORKING.exists(), "this build has no such program")
class Forking(AttachTest):
    def numbers(self, process, line="how many"):
        started, ended, hung, failed, within = map(int, self.tell(process, line).split())
        self.assertEqual((hung, failed), (0, 0), "children that hung, children that failed")
        return started, ended, within

    def test_no_child_hangs(self):
        data = self.folder / "data"
        data.write_bytes(bytes(BYTES))
        process = self.start(FORKING, data, PLUGIN)
        self.assertEqual(process.stdout.readline(), "ready\n")
        for i in range(CYCLES):
            session = self.folder / f"s{i}"
            before, _, _ = self.numbers(process)
            self.ask("attach", process.pid, "-o", session)
            first, _, _ = self.numbers(process)
            while self.numbers(process)[1] < first + 20:
                pass
            _, last, _ = self.numbers(process)
            self.ask("detach", process.pid)
            after, _, within = self.numbers(process)
            row = self.report(session)[1][str(data)]
            # Those that began after the attachment and ended before it did are surely seen; no others than those in between are.
            self.assertGreaterEqual(row["bytes_read"], (last - first) * BYTES)
            self.assertLessEqual(row["bytes_read"], (after - before + 2) * BYTES)
        self.assertGreater(within, 0, "no fork was tried while the objects were walked over")
        self.numbers(process, "quit")
        self.assertEqual(process.wait(timeout=120), 0)


if __name__ == "__main__":
    main()
