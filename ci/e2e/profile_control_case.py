"""What tests share that ask the profiler about programs which run under it: the program that reads, and how it is started and asked."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from penstock_cli import BUILD, PENSTOCK, SANITIZED

LIBRARY = BUILD / "libpenstock_profile.so"

# Reads until it is told to end, or as often as it is told; says how often in the end.
READER = textwrap.dedent("""
    import os, signal, sys, time
    path, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    fd = os.open(path, os.O_RDONLY)
    done = 0
    print("ready", flush=True)
    while not stop and (count == 0 or done < count):
        os.pread(fd, 100, done * 100)
        done += 1
        if pause:
            time.sleep(pause)
    print(done, flush=True)
""")


class ControlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.maxDiff = None
        if SANITIZED:
            raise unittest.SkipTest("Python has no sanitizer's runtime")
        if not LIBRARY.exists():
            raise unittest.SkipTest("this build has no profiler")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-control-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"
        self.data.write_bytes(bytes(4096))

    def profile(self, *words, expect=0, **kwargs):
        done = subprocess.run([PENSTOCK, "profile", *map(str, words)], capture_output=True, text=True, check=False, timeout=120, **kwargs)
        self.assertEqual(done.returncode, expect, f"{words}: {done.stdout}{done.stderr}")
        return done

    def ask(self, *words, **kwargs):
        return [json.loads(line) for line in self.profile(*words, "--json", **kwargs).stdout.splitlines()]

    def wait_until(self, what, is_so):
        for _ in range(2400):
            if is_so():
                return
            time.sleep(0.05)
        self.fail(f"in two minutes it never came that {what}")

    def trace_for(self, target, time_, *more):
        """`trace on` that goes on meanwhile."""
        return subprocess.Popen([PENSTOCK, "profile", "trace", "on", str(target), "--for", time_, *more], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def wait_until_traced(self, whom):
        self.wait_until("trace was on", lambda: any(row["trace"] for row in self.ask("status", whom)))

    def report(self, session):
        rows = self.ask("report", "--all", session)
        return rows[0], {row["path"]: row for row in rows[1:] if row["kind"] == "file"}

    def calls(self, session, path, name="read"):
        """Of the trace: the calls of that name on that file, as events on the tracks of threads."""
        out = self.folder / "trace.json"
        self.profile("export", "--all", "--to", "chrome", session, "-o", out)
        trace = json.loads(out.read_text())
        return [event for event in trace["traceEvents"]
                if event.get("ph") == "X" and event["name"] == name and event["args"].get("file") == str(path)], trace

    def begin_ns(self, session):
        return self.report(session)[0]["begin_ns"]

    def start(self, words, session, *more, **kwargs):
        """Under `profile run`, until it says ready."""
        process = subprocess.Popen([PENSTOCK, "profile", "run", "-o", session, *more, "--", *map(str, words)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **kwargs)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def reader(self, session, count=0, pause=0.001, more=()):
        process = self.start([sys.executable, "-c", READER, self.data, count, pause], session, *more)
        self.assertEqual(process.stdout.readline(), "ready\n")
        pid, = {int(file.name.split("-")[0]) for file in session.glob("*.session")}
        return process, pid
