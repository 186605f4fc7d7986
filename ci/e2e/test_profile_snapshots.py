#!/usr/bin/env python3
"""Copies of a session that goes on: each is whole by itself, and what it counts is what the programs say that they did."""

import signal
import time

from penstock_cli import main
from profile_control_case import ControlTest


class Snapshots(ControlTest):
    def test_of_a_session_that_goes_on(self):
        session = self.folder / "s"
        process, _ = self.reader(session, pause=0, more=("--trace", "--trace-limit", "128KiB"))
        before = 0
        for i in range(5):
            time.sleep(0.1)
            copy = self.folder / f"copy{i}"
            row, = self.ask("snapshot", session, "-o", copy)
            self.assertEqual((row["files"], row["session"]), (1, str(copy)))
            told, files = self.report(copy)
            self.assertEqual(told["problems"], [])
            # Of one moment with the kernel's counters; what the session takes itself is nobody's writing.
            self.assertLess(told["coverage"]["rchar"]["kernel"] - told["coverage"]["rchar"]["seen"], 65536)  # the loader's
            self.assertLess(told["coverage"]["wchar"]["kernel"], 4096)
            seen = files[str(self.data)]["reads"]
            self.assertGreater(seen, before)
            before = seen
            # Blocks that gave way while they were copied are left out whole: no call is half one and half another.
            events, _ = self.calls(copy, self.data)
            for event in events:
                self.assertEqual((event["args"]["bytes"], event["args"]["offset"] % 100),
                                 (100 if event["args"]["offset"] < 4000 else max(0, min(100, 4096 - event["args"]["offset"])), 0))
            # The file soon has nothing more to give, but each call has its own place, later ones further behind.
            offsets = [event["args"]["offset"] for event in sorted(events, key=lambda event: event["ts"])]
            self.assertEqual(offsets, sorted(set(offsets)))
        process.send_signal(signal.SIGTERM)
        made = int(process.stdout.readline())
        process.wait(timeout=60)
        self.assertLessEqual(before, made)
        last = self.folder / "last"
        self.profile("snapshot", session, "-o", last)  # also of one that has ended
        self.assertEqual(self.report(last)[1][str(self.data)]["reads"], made)
        self.assertIn("not empty", self.profile("snapshot", session, "-o", last, expect=1).stderr)

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
