#!/usr/bin/env python3
"""`penstock profile attach` to a program that forks at the same time: no child waits for a lock that a thread of its parent held, and what
the children do is counted."""

import os
import unittest

from penstock_cli import BUILD, PENSTOCK, SANITIZED, main
from profile_attach_case import AttachTest

PROGRAMS = BUILD / "profiling" / "interpose"
FORKING = PROGRAMS / "penstock_profile_forking"
WORKERS = PROGRAMS / "penstock_profile_workers"
PLUGIN = PROGRAMS / "penstock_profile_plugin.so"
CYCLES = 3 if SANITIZED else 8
BYTES = 4096
FULL = bool(os.environ.get("PENSTOCK_FULL"))
WORKER_CYCLES = 200 if FULL else 3 if SANITIZED else 10
FIRST_ATTACHES = 60 if FULL else 4
FAMILIES = 3000 if FULL else 300


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


@unittest.skipIf(not WORKERS.exists(), "this build has no such program")
class Workers(AttachTest):
    """Programs that start a worker every 10 ms. Each worker opens files; no worker hangs or fails."""

    def begin(self, kind, pause_us=10000):
        data = self.folder / "data"
        data.write_bytes(bytes(BYTES))
        process = self.start(WORKERS, data, kind, pause_us, PLUGIN)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process, data

    def numbers(self, process, line="how many"):
        ended, hung, failed = map(int, self.tell(process, line).split())
        self.assertEqual((hung, failed), (0, 0), f"of {ended} workers: hung, failed")
        return ended

    def end_workers(self, process):
        self.numbers(process, "quit")
        self.assertEqual(process.wait(timeout=120), 0)

    def attach_again_and_again(self, kind):
        process, data = self.begin(kind)
        for i in range(WORKER_CYCLES):
            session = self.folder / f"s{i}"
            self.ask("attach", process.pid, "-o", session)
            before = self.numbers(process)
            while self.numbers(process) < before + 3:
                pass
            self.ask("detach", process.pid)
            if i == 0 and kind != "spawn":  # a spawned program is not attached to
                self.assertGreater(self.report(session)[1][str(data)]["bytes_read"], 0)
        self.end_workers(process)

    def test_forked_workers(self):
        self.attach_again_and_again("fork")

    def test_forked_workers_while_threads_load(self):
        self.attach_again_and_again("load")

    def test_spawned_workers(self):
        self.attach_again_and_again("spawn")

    def test_workers_that_fork_while_their_first_call_is_made(self):
        data = self.folder / "data"
        data.write_bytes(bytes(BYTES))
        process = self.start(PENSTOCK, "profile", "run", "-o", self.folder / "s", "--", WORKERS, data, "family", 200, PLUGIN)
        self.assertEqual(process.stdout.readline(), "ready\n")
        while self.numbers(process) < FAMILIES:
            pass
        self.end_workers(process)

    def test_first_attaches(self):
        """The first attach loads the library. No worker is forked in the middle of that load."""
        for i in range(FIRST_ATTACHES):
            process, _ = self.begin("fork", pause_us=200)
            self.ask("attach", process.pid, "-o", self.folder / f"first{i}")
            before = self.numbers(process)
            while self.numbers(process) < before + 3:
                pass
            self.end_workers(process)


if __name__ == "__main__":
    main()
