"""What the tests of programs share that are watched for a part of their run: they talk to the program through pipes, and ask penstock."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from messages import message
from penstock_cli import BUILD, PENSTOCK

LIBRARY = BUILD / "libpenstock_profile.so"
BUSY = BUILD / "profiling" / "interpose" / "penstock_profile_busy"


class AttachTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.maxDiff = None
        if not LIBRARY.exists() or not BUSY.exists():
            raise unittest.SkipTest("this build has no profiler that attaches")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-attach-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def profile(self, *words, expect=0):
        done = subprocess.run([PENSTOCK, "profile", *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, expect, f"{words}: {done.stdout}{done.stderr}")
        return done

    def ask(self, *words):
        """The answer of attach or detach. On a busy machine no thread may come to a call in time: the message says to try again."""
        for _ in range(5):
            done = subprocess.run([PENSTOCK, "profile", *map(str, words), "--json"], capture_output=True, text=True, check=False, timeout=120)
            if message("attach-found-no-call") not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def report(self, *sessions):
        rows = [json.loads(line) for line in self.profile("report", "--json", "--all", *sessions).stdout.splitlines()]
        return rows[0], {row["path"]: row for row in rows[1:] if row["kind"] == "file"}

    def start(self, *words, **kwargs):
        process = subprocess.Popen([*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kwargs)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def tell(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()
