#!/usr/bin/env python3
"""Copies of a session that goes on: each is whole by itself, and what it counts is what the programs say that they did."""

import signal
import subprocess
import sys
import time

from messages import message
from penstock_cli import PENSTOCK, main
from profile_control_case import ControlTest


class Snapshots(ControlTest):
    def test_of_a_session_that_goes_on(self):
        session = self.folder / "s"
        process, _ = self.reader(session, pause=0, more=("--trace", "--trace-limit", "8MiB"))
        before = 0
        for i in range(5):
            time.sleep(0.1)
            copy = self.folder / f"copy{i}"
            row, = self.ask("snapshot", session, "-o", copy)
            self.assertEqual((row["files"], row["session"]), (1, str(copy)))
            output, files = self.report(copy)
            self.assertEqual(output["problems"], [])
            self.assertLess(output["coverage"]["wchar"]["kernel"], 4096)  # the session's own writes do not count
            seen = files[str(self.data)]["reads"]
            self.assertGreater(seen, before)
            before = seen
            # Blocks that gave way while they were copied are left out whole: no call is half one and half another.
            events, _ = self.calls(copy, self.data)
            for event in events:
                self.assertEqual((event["args"]["bytes"], event["args"]["offset"] % 100),
                                 (100 if event["args"]["offset"] < 4000 else max(0, min(100, 4096 - event["args"]["offset"])), 0))
            # The reads soon reach the end of the file, but each call has its own offset, and later calls have larger ones.
            offsets = [event["args"]["offset"] for event in sorted(events, key=lambda event: event["ts"])]
            self.assertEqual(offsets, sorted(set(offsets)))
        process.send_signal(signal.SIGTERM)
        made = int(process.stdout.readline())
        process.wait(timeout=60)
        self.assertLessEqual(before, made)
        last = self.folder / "last"
        self.profile("snapshot", session, "-o", last)  # also of one that has ended
        self.assertEqual(self.report(last)[1][str(self.data)]["reads"], made)
        self.assertIn(message("folder-not-empty"), self.profile("snapshot", session, "-o", last, expect=1).stderr)

    def test_what_was_seen_and_what_the_kernel_counted_are_of_one_moment(self):
        data = self.folder / "data of pages"
        data.write_bytes(bytes(65536))
        script = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nwhile True: os.pread(fd, 65536, 0)"
        session = self.folder / "s"
        process = subprocess.Popen([PENSTOCK, "profile", "run", "--trace", "-o", session, "--", sys.executable, "-c", script, data],
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        self.wait_until("it read", lambda: list(session.glob("*.session")) and self.report(session)[1].get(str(data), {"reads": 0})["reads"] > 100_000)
        apart = []
        while len(apart) < 10 and (not apart or min(apart) > 0.005):  # a busy machine may come between the two, but not each time
            copy = self.folder / f"copy{len(apart)}"
            self.profile("snapshot", session, "-o", copy)
            fraction = self.report(copy)[0]["coverage"]["rchar"]["fraction"]
            apart.append(1 if fraction is None else abs(fraction - 1))  # None: not known
        self.assertLess(min(apart), 0.005, apart)
        process.terminate()
        process.wait(timeout=60)

    def test_of_one_process(self):
        session = self.folder / "s"
        process, pid = self.reader(session)
        copy = self.folder / "copy"
        self.wait_until("it read", lambda: self.report(session)[1].get(str(self.data), {"reads": 0})["reads"] > 0)
        self.profile("snapshot", pid, "-o", copy)
        self.assertGreater(self.report(copy)[1][str(self.data)]["reads"], 0)
        self.end(process)


if __name__ == "__main__":
    main()
