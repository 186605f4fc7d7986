#!/usr/bin/env python3
"""The coverage matrix: a program moves 4,096 bytes of a file of its own by each route that there is, and the profiler must have
seen them to the byte. Named on the command line: the groups of rows (`posix`, `stdio`, ...), `python` or `valgrind`."""

import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from penstock_cli import BUILD, PENSTOCK, SANITIZED

PROGRAM = BUILD / "profiling" / "interpose" / "penstock_profile_matrix"
LIBRARY = PROGRAM.parent / "libpenstock_profile_sanitized.so" if SANITIZED else BUILD / "libpenstock_profile.so"
BYTES = 4096
CONTENT = bytes(10 if i % 64 == 63 else ord("a") + i % 26 for i in range(BYTES))

# Whose bytes the kernel does not add to rchar and wchar, or whose processes end without telling it.
UNCOUNTED = {"inline", "processes"}
IN_LAYER = {"queues": "ring", "rings": "ring", "stdio": "stdio"}
LAYER = {"iostream": "posix", "iostream_write": "posix", "fread_chk": "stdio", "fread_unlocked_chk": "stdio", "fgets_chk": "stdio",
         "fprintf_chk_write": "stdio", "wprintf_chk_write": "stdio"}
# What differs from "one open, 4,096 bytes read (or written), nothing else".
EXPECTED = {
    "mmap": {"bytes_read": 0, "mmaps": 1, "mapped_bytes": BYTES},
    "mmap_write": {"bytes_written": 0, "mmaps": 1, "mapped_bytes": BYTES},
    "inline_read": {"bytes_read": 0},
    "syscall_statx": {"opens": 0, "bytes_read": 0, "stats": 1},
    "stat": {"opens": 0, "bytes_read": 0, "stats": 1},
    "lstat": {"opens": 0, "bytes_read": 0, "stats": 1},
    "fstat": {"bytes_read": 0, "stats": 1},
    "fstatat": {"opens": 0, "bytes_read": 0, "stats": 1},
    "statx": {"opens": 0, "bytes_read": 0, "stats": 1},
    "access": {"opens": 0, "bytes_read": 0, "other": 1},
    "fchmodat": {"opens": 0, "bytes_read": 0, "other": 1},
    "linkat": {"opens": 0, "bytes_read": 0, "other": 1},
    "rename": {"opens": 0, "bytes_read": 0, "other": 1},
    "unlink": {"opens": 0, "bytes_read": 0, "other": 1},
    "fread_small": {"sequential_reads": 63},
    "fread_small_write": {"sequential_writes": 63},
    "fseek": {"seeks": 2},
    "fgetpos": {"other": 1},
    "second_names": {"reads": 3, "seeks": 1, "closes": 2},
    "second_names_write": {"writes": 3, "seeks": 1, "closes": 2},
    "posix_fallocate_write": {"other": 1, "failures": 1},
    "readahead": {"other": 1},
    "syscall_readahead": {"other": 1},
}
EXTRA = {  # rows whose other file counts as well
    "sendfile": (".to", {"opens": 1, "bytes_written": BYTES}),
    "copy_file_range": (".to", {"opens": 1, "bytes_written": BYTES}),
    "splice": (".to", {"opens": 1, "bytes_written": BYTES}),
    "syscall_sendfile": (".to", {"opens": 1, "bytes_written": BYTES}),
    "readdir": (".folder", {"opens": 1, "closes": 1}),
    "readdir_r": (".folder", {"opens": 1, "closes": 1, "other": 4}),
    "getdents64": (".folder", {"opens": 1, "closes": 1, "other": 3}),
    "readlink_chk": (".link", {"other": 3}),
    "syscall_symlinkat": (".link", {"other": 1}),
    "mkdir": (".folder", {"other": 1}),
}

TOUCH = """
import multiprocessing, sys
def size_of(path):
    with open(path, "rb") as file:
        return len(file.read())
if __name__ == "__main__":
    how, end, folder = sys.argv[1:]
    pool = multiprocessing.get_context(how).Pool(4)
    sizes = pool.map(size_of, [f"{folder}/file-{i}" for i in range(64)], chunksize=1)
    if end == "terminated":
        pool.terminate()
    else:
        pool.close()
    pool.join()
    assert sizes == [4096] * 64, sizes
"""


def groups():
    listed = subprocess.run([PROGRAM, "list"], capture_output=True, text=True, check=True).stdout
    rows = {}
    for line in listed.splitlines():
        group, row = line.split()
        rows.setdefault(group, []).append(row)
    return rows


class Profiled(unittest.TestCase):
    def setUp(self):
        if not LIBRARY.exists() or not PROGRAM.exists():
            self.skipTest("this build has no profiler")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-matrix-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = self.folder / "data"
        self.data.mkdir()

    def run_watched(self, words, session):
        if not SANITIZED:
            return subprocess.run([PENSTOCK, "profile", "run", "-o", session, "--", *words], capture_output=True, text=True, check=False)
        session.mkdir(mode=0o700)
        # A sanitizer's runtime, where it is a library, wants to be the first.
        linked = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
        runtime = [word for word in linked if word.startswith("/") and pathlib.Path(word).name.startswith(("libtsan.", "libasan."))]
        environment = os.environ | {"LD_PRELOAD": " ".join([*runtime, str(LIBRARY)]), "PENSTOCK_PROFILE_SESSION": str(session)}
        return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)

    def profiled(self, *words, session="session"):
        """The report's first row, those of the files by path, and what was said on stderr."""
        done = self.run_watched([str(word) for word in words], self.folder / session)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", "--all", self.folder / session], capture_output=True, text=True,
                                check=False)
        self.assertEqual(report.returncode, 0, report.stderr)
        rows = [json.loads(line) for line in report.stdout.splitlines()]
        return rows[0], {row["path"]: row for row in rows[1:] if row["kind"] == "file"}, done.stderr


    def make_files(self, rows):
        for row in rows:
            if not row.endswith("_write"):
                (self.data / row).write_bytes(CONTENT)


class Matrix(Profiled):
    def check_group(self, group):
        rows = groups()[group]
        self.make_files(rows)
        session, files, printed = self.profiled(PROGRAM, "run", self.data, *rows)
        left_out = {line.split(": ")[1] for line in printed.splitlines() if line.startswith("left out: ")}
        for row in rows:
            with self.subTest(row=row):
                if row in left_out:
                    print(f"{group} {row}: skipped, what it needs is not available here", file=sys.stderr)
                    continue
                self.check_row(group, row, files)
        self.assertEqual(session["dropped"], 0)
        self.assertEqual(session["unnamed_ops"], 0)
        self.assertEqual(session["problems"], [])
        return session

    def check_row(self, group, row, files):
        suffix, extra = EXTRA.get(row, ("", {}))
        for key, value in extra.items():
            self.assertEqual(files[str(self.data / row) + suffix][key], value, (suffix, key))
        if suffix in (".folder", ".link"):
            return
        seen = files[str(self.data / row)]
        writes = row.endswith("_write")
        wanted = {"opens": 1, "stats": 0, "failures": 0, "bytes_read": 0 if writes else BYTES, "bytes_written": BYTES if writes else 0}
        wanted |= EXPECTED.get(row, {})
        self.assertEqual({key: seen[key] for key in wanted}, wanted)
        moved = wanted["bytes_written" if writes else "bytes_read"]
        if moved:  # in one layer, and in no other
            layer = LAYER.get(row, IN_LAYER.get(group, "posix"))
            kind = "bytes_written" if writes else "bytes_read"
            by_layer = {name: counts.get(kind, 0) for name, counts in seen["layers"].items()}
            self.assertEqual({name: bytes for name, bytes in by_layer.items() if bytes}, {layer: moved})

    def check_coverage(self, coverage):
        if SANITIZED:
            return  # its runtime has reads and writes of its own, which the kernel counts
        for way in ("rchar", "wchar"):
            self.assertEqual(coverage[way]["seen"], coverage[way]["kernel"], way)
            self.assertEqual(coverage[way]["fraction"], 1.0, way)

    @unittest.skipIf(os.environ.get("PENSTOCK_SANITIZE") == "thread", "the thread sanitizer knows nothing of libc's locks of streams, and does "
                                                                       "not outlive the destructors of a thread")
    def test_random(self):
        """Thousands of calls at random: what the kernel moved beneath streams is known to the byte, and what rings gave."""
        session, files, printed = self.profiled(PROGRAM, "run", self.data, *groups()["random"])
        self.check_coverage(session["coverage"])
        self.assertEqual(session["dropped"], 0)
        self.assertEqual(files[str(self.data / "stream_of_threads_write")]["bytes_read"], 300000)
        output = [line.split()[-1] for line in printed.splitlines() if line.startswith("read: rings_at_random ")]
        if output:
            seen = files[str(self.data / "rings_at_random_write")]
            self.assertEqual((seen["bytes_read"], seen["reads"]), (int(output[0]), 3 * 6000))
            self.assertEqual(session["coverage"]["ring_bytes"], int(output[0]))
        else:
            print("rings: skipped, no io_uring here", file=sys.stderr)

    @unittest.skipIf(SANITIZED, "memcheck and a sanitizer exclude each other")
    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind here")
    def test_valgrind(self):
        """The library and its program under memcheck, which knows neither rings nor processes that share their parent's memory."""
        (self.folder / "session").mkdir()
        environment = os.environ | {"LD_PRELOAD": str(LIBRARY), "PENSTOCK_PROFILE_SESSION": str(self.folder / "session"),
                                    "PENSTOCK_PROFILE_CLOCK": "tsc"}
        words = ["valgrind", "-q", "--error-exitcode=99", "--trace-children=yes"]
        for group, rows in groups().items():
            if group in ("rings", "inline", "random"):
                continue
            rows = [row for row in rows if "uring" not in row and "clone" not in row]
            self.make_files(rows)
            with self.subTest(group=group):
                done = subprocess.run([*words, PROGRAM, "run", self.data, *rows], env=environment, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, "== " in done.stderr), (0, False), done.stderr)

    def test_what_no_library_makes_shows_in_coverage(self):
        session = self.check_group("inline")
        if SANITIZED:
            return
        self.assertEqual(session["coverage"]["rchar"]["kernel"] - session["coverage"]["rchar"]["seen"], BYTES)
        self.assertLess(session["coverage"]["rchar"]["fraction"], 1.0)


def group_test(group):
    def test(self):
        session = self.check_group(group)
        if group not in UNCOUNTED:
            self.check_coverage(session["coverage"])
        if group in ("queues", "rings"):
            rows = groups()[group]
            self.assertLessEqual(session["coverage"]["ring_bytes"], BYTES * len(rows))
            self.assertEqual(session["coverage"]["ring_bytes"], session["bytes_read"] + session["bytes_written"])

    return test


for name in ("posix", "stdio", "fortified", "kernel", "number", "aio", "queues", "rings", "metadata", "processes"):
    setattr(Matrix, f"test_{name}", group_test(name))


@unittest.skipIf(SANITIZED, "Python has no sanitizer's runtime")
class PythonPools(Profiled):
    """Pool(4) over 64 files: all of them are there, however the pool begins and ends."""

    def check(self, how, end):
        script = self.folder / "touch.py"
        script.write_text(TOUCH)
        for i in range(64):
            (self.data / f"file-{i}").write_bytes(CONTENT)
        for run in range(3):
            _, files, _ = self.profiled(sys.executable, script, how, end, self.data, session=f"session-{run}")
            seen = {i: files.get(str(self.data / f"file-{i}"), {}).get("bytes_read") for i in range(64)}
            self.assertEqual(seen, {i: BYTES for i in range(64)})


def pool_test(how, end):
    return lambda self: self.check(how, end)


for method in multiprocessing.get_all_start_methods():
    for ending in ("joined", "terminated"):
        setattr(PythonPools, f"test_{method}_{ending}", pool_test(method, ending))

if __name__ == "__main__":
    wanted = sys.argv[1:]
    tests = [f"PythonPools.{name}" for name in unittest.TestLoader().getTestCaseNames(PythonPools)] if wanted == ["python"] else [
        "Matrix.test_what_no_library_makes_shows_in_coverage" if name == "inline" else f"Matrix.test_{name}" for name in wanted]
    suite = unittest.defaultTestLoader.loadTestsFromNames(tests, sys.modules[__name__]) if tests else \
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    skipped = result.testsRun > 0 and len(result.skipped) == result.testsRun
    sys.exit(77 if skipped else 0 if result.wasSuccessful() else 1)
