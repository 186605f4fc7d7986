"""What tests of other people's programs under the profiler share: what strace saw of them, and what the report says."""

import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from penstock_cli import BUILD, PENSTOCK, SANITIZED, SOURCE

LIBRARY = BUILD / "libpenstock_profile.so"
MOVES = {"read": "r", "pread64": "r", "readv": "r", "preadv": "r", "preadv2": "r",
         "write": "w", "pwrite64": "w", "writev": "w", "pwritev": "w", "pwritev2": "w"}
BETWEEN = {"sendfile": (1, 0), "copy_file_range": (0, 1)}  # which argument is read from, and which written to
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (\d+)$")
DESCRIPTOR = re.compile(r"\b\d+<([^>]*)>")
MADE_UP = re.compile(r"/tmp_obj_\w+$")  # git's, before an object has its name


# TensorFlow, without a word.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}


def python_with(module):
    """An interpreter that can import it, or None."""
    for python in (os.environ.get("PENSTOCK_LOADERS_PYTHON"), SOURCE / "build" / "interop" / "bin" / "python", "/usr/bin/python3", sys.executable):
        if python and pathlib.Path(python).exists() and \
                subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False, env=os.environ | QUIET).returncode == 0:
            return str(python)
    return None


def has(program):
    return shutil.which(program) is not None


def needs(*programs):
    missing = [program for program in programs if not has(program)]
    return unittest.skipIf(missing, f"no {' or '.join(missing)} here")


class ProgramsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.maxDiff = None
        if SANITIZED:
            raise unittest.SkipTest("other people's programs have no sanitizer's runtime")
        if not LIBRARY.exists():
            raise unittest.SkipTest("this build has no profiler")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-programs-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        rng = random.Random(5)
        self.tree = self.folder / "tree"
        for i in range(40):
            path = self.tree / f"d{i % 4}" / f"f{i}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.randbytes(rng.choice([0, 1, 100, 4096, 5000, 70000, 300001])))

    def profiled(self, words, session="session", code=0, quiet=False, **kwargs):
        """The rows of the report, and the program's output. An earlier session of the name is removed. With `quiet`, the program and what the
        library adds to it print nothing to stderr."""
        folder = self.folder / session
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run([PENSTOCK, "profile", "run", "-o", folder, "--", *map(str, words)], capture_output=True, check=False, **kwargs)
        stderr = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, stderr)
        if quiet:
            self.assertEqual([line for line in stderr.splitlines() if not line.startswith("penstock profile:")], [])
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", "--all", folder], capture_output=True, text=True, check=False)
        self.assertEqual(report.returncode, 0, report.stderr)
        rows = [json.loads(line) for line in report.stdout.splitlines()]
        return rows[0], {row["path"]: row for row in rows[1:] if row["kind"] == "file"}, done.stdout

    def traced(self, words, **kwargs):
        """Bytes read and written by file, as strace saw them, below this test's folder."""
        logs = self.folder / "strace"
        logs.mkdir()
        done = subprocess.run(["strace", "-ff", "-y", "-s", "0", "-e", "trace=" + ",".join([*MOVES, *BETWEEN]), "-o", logs / "log",
                               *map(str, words)], capture_output=True, check=False, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        moved = collections.Counter()
        for log in logs.iterdir():
            for line in log.read_text(errors="replace").splitlines():
                call = CALL.match(line)
                if call is None:
                    continue
                names = DESCRIPTOR.findall(call[2])
                if call[1] in MOVES and names:
                    moved[names[0].removesuffix(" (deleted)"), MOVES[call[1]]] += int(call[3])
                elif call[1] in BETWEEN and len(names) == 2:
                    source, target = BETWEEN[call[1]]
                    moved[names[source], "r"] += int(call[3])
                    moved[names[target], "w"] += int(call[3])
        return self.of_data(moved)

    def of_data(self, moved):
        """Without what moved nothing; names that are made up at each run are one."""
        data = collections.Counter()
        for (path, way), count in moved.items():
            if count and self.is_data(path):
                data[MADE_UP.sub("/tmp_obj_*", path), way] += count
        return dict(data)

    def is_data(self, path):
        return path.startswith(str(self.folder)) and not path.startswith((str(self.folder / "session"), str(self.folder / "strace")))

    def bytes_of(self, files):
        moved = {}
        for path, row in files.items():
            moved[path, "r"], moved[path, "w"] = row["bytes_read"], row["bytes_written"]
        return self.of_data(moved)

    def same_as_strace(self, words, again=lambda: None, **kwargs):
        if not has("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no strace here, or it may not trace")
        again()
        expected = self.traced(words, **kwargs)
        self.assertTrue(expected, "it moved nothing")
        again()
        session, files, _ = self.profiled(words, **kwargs)
        self.assertEqual(self.bytes_of(files), expected)
        self.assertEqual(session["dropped"], 0)
        return session, files
