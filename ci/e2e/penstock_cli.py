"""What the command-line tests share: run the program, look at its exit code, its records and its folders."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

# Tests send these signals. Programs would ignore them if whoever started the test does, as shells do in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

PENSTOCK = os.environ.get("PENSTOCK", "penstock")
SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
SANITIZED = bool(os.environ.get("PENSTOCK_SANITIZE"))
PATIENCE_S = 1200 if SANITIZED else 300  # only a program that hangs takes longer
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD", "build/release"))
HIDE_PROC = "mount -t tmpfs none /proc"  # in a mount namespace of its own
if SANITIZED:  # The leak sanitizer fails without /proc. It reads its options there, so this file turns it off.
    HIDE_PROC += r' && mkdir /proc/self && printf "ASAN_OPTIONS=detect_leaks=0\0" > /proc/self/environ'


def tree(folder):
    """Relative name -> content of every file below the folder, folders as None."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def present(folder, pattern):
    """The paths below the folder whose last names match the pattern, while others make and remove there: glob() dies of a folder that
    vanishes between two looks."""
    found = (pathlib.Path(parent, name) for parent, folders, files in os.walk(folder) for name in folders + files)
    return [path for path in found if path.relative_to(folder).match(pattern)]


def slabs_dropped():
    """How often dentries and inodes were dropped since the machine started; skips the test where the kernel does not count."""
    counted = re.search(r"^drop_slab (\d+)$", pathlib.Path("/proc/vmstat").read_text(encoding="ascii"), re.MULTILINE)
    if counted is None:
        raise unittest.SkipTest("this kernel does not count what is dropped")
    return int(counted[1])


def has_library(name):
    """Whether this build has an optional library. Without uplot, for example, reports have tables but no charts."""
    rows = subprocess.run([PENSTOCK, "--version", "--json"], capture_output=True, text=True, check=True).stdout
    return any(row.get("name") == name and row.get("present") for row in map(json.loads, rows.splitlines()))


def without_proc():
    """The words to put before a command that must not see /proc; skips the test where it cannot be hidden."""
    words = ["unshare", "--mount", "sh", "-c", HIDE_PROC + ' && exec "$@"', "sh"]
    if os.geteuid() != 0 or subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        raise unittest.SkipTest("/proc cannot be hidden here")
    return words


def stored(*files):
    """The records in these files, without the seals of their lines: what --json prints."""
    records = [json.loads(line) for file in files for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines()]
    for record in records:
        record.pop("seal", None)
    return records


class CliTest(unittest.TestCase):
    """Gives each test an empty folder `self.dir`, which is the working directory of what it runs."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="penstock-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def start(self, *args, **kwargs):
        """Starts `penstock ARGS` and returns the process."""
        kwargs.setdefault("cwd", self.dir)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([PENSTOCK, *map(str, args)], text=True, **kwargs)

    def run_cli(self, *args, expect=0, timeout=PATIENCE_S, **kwargs):
        """Runs `penstock ARGS`, checks the exit code, and returns the completed process (stdout, stderr as text)."""
        process = self.start(*args, **kwargs)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"penstock {' '.join(map(str, args))}: no end within {timeout} s\n{out}\n{err}")
        done = subprocess.CompletedProcess(args, process.returncode, out, err)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"penstock {' '.join(map(str, args))}\n{out}\n{err}")
        return done

    def formats(self):
        """The names of all formats of this build."""
        rows = [json.loads(line) for line in self.run_cli("--version", "--json").stdout.splitlines()]
        return {row["name"] for row in rows if row.get("kind") == "format"}

    def assert_same_tree(self, one, other):
        """The same names with the same bytes; folders are those of the test unless they are absolute."""
        first, second = tree(self.dir / one), tree(self.dir / other)
        self.assertEqual(first.keys(), second.keys())
        self.assertEqual([name for name in first if first[name] != second[name]], [])

    def records(self, *args, **kwargs):
        """Runs with --json and returns the records; every line of stdout must be one."""
        done = self.run_cli(*args, "--json", **kwargs)
        return [json.loads(line) for line in done.stdout.splitlines()]


def main(lacking=None):
    """Runs the tests of the script. `lacking()` says why none of them can run here, or nothing: then it exits 77, a skip to ctest."""
    reason = lacking() if lacking else None
    if reason:
        print(reason.strip(), file=sys.stderr)
        sys.exit(77)
    unittest.main(module="__main__", verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
