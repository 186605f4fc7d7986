#!/usr/bin/env python3
"""Programs that nobody here wrote, under the profiler: their bytes by file against what strace saw, what fio says of itself, and
the sizes of files that are read whole. What they give out is what they give out without it."""

import collections
import hashlib
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

from penstock_cli import BUILD, PENSTOCK, SANITIZED, main

LIBRARY = BUILD / "libpenstock_profile.so"
MOVES = {"read": "r", "pread64": "r", "readv": "r", "preadv": "r", "preadv2": "r",
         "write": "w", "pwrite64": "w", "writev": "w", "pwritev": "w", "pwritev2": "w"}
BETWEEN = {"sendfile": (1, 0), "copy_file_range": (0, 1)}  # which argument is read from, and which written to
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (\d+)$")
DESCRIPTOR = re.compile(r"\b\d+<([^>]*)>")
MADE_UP = re.compile(r"/tmp_obj_\w+$")  # git's, before an object has its name
MIB = 1 << 20


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

    def profiled(self, words, session="session", **kwargs):
        """The rows of the report, and what the program said."""
        folder = self.folder / session
        done = subprocess.run([PENSTOCK, "profile", "run", "-o", folder, "--", *map(str, words)], capture_output=True, check=False, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
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


class AgainstStrace(ProgramsTest):
    @needs("tar")
    def test_tar(self):
        archive = self.folder / "archive.tar"
        self.same_as_strace(["tar", "cf", archive, "-C", self.folder, "tree"], lambda: archive.unlink(missing_ok=True))
        target = self.folder / "out"

        def again():
            shutil.rmtree(self.folder / "strace", ignore_errors=True)
            shutil.rmtree(self.folder / "session", ignore_errors=True)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()

        self.same_as_strace(["tar", "xf", archive, "-C", target], again)
        for path in self.tree.rglob("f*"):
            self.assertEqual((target / path.relative_to(self.folder)).read_bytes(), path.read_bytes())

    def test_cp(self):
        target = self.folder / "copy"
        self.same_as_strace(["cp", "-r", "--reflink=never", self.tree, target], lambda: shutil.rmtree(target, ignore_errors=True))

    @needs("git")
    def test_git(self):
        environment = os.environ | {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
                                    (("NAME", "n"), ("EMAIL", "e@x"), ("DATE", "2026-01-01T00:00:00Z"))}
        subprocess.run(["git", "init", "-q", self.tree], check=True)

        def again():
            shutil.rmtree(self.tree / ".git", ignore_errors=True)
            subprocess.run(["git", "init", "-q", self.tree], check=True)

        self.same_as_strace(["git", "-C", self.tree, "add", "."], again, env=environment)

    @needs("sqlite3")
    def test_sqlite(self):
        base = self.folder / "base.db"
        script = "create table t(a, b); begin; " + "".join(f"insert into t values({i}, hex(zeroblob({i % 900}))); " for i in range(2000)) + \
                 "commit; select count(*), sum(length(b)) from t;"
        _, files = self.same_as_strace(["sqlite3", base, script], lambda: base.unlink(missing_ok=True))
        self.assertGreater(files[str(base)]["syncs"], 0)

    @needs("dd")
    def test_dd(self):
        self.same_as_strace(["dd", f"if={self.tree / 'd1' / 'f1'}", f"of={self.folder / 'copy'}", "bs=1000"],
                            lambda: (self.folder / "copy").unlink(missing_ok=True))

    def test_python(self):
        script = "import pathlib, sys\nfor p in sorted(pathlib.Path(sys.argv[1]).rglob('f*')): p.with_suffix('.x').write_bytes(p.read_bytes())"

        def again():
            for path in self.tree.rglob("*.x"):
                path.unlink()

        _, files = self.same_as_strace([sys.executable, "-c", script, self.tree], again)
        for path in self.tree.rglob("f*"):
            if not path.suffix:
                self.assertEqual(files[str(path)]["opens"], 1, path)


class AgainstWhatIsThere(ProgramsTest):
    def test_streams_read_whole_files(self):
        names = [path for path in sorted(self.tree.rglob("f*")) if path.stat().st_size]
        for words in (["sort", "-o", "/dev/null", *names], ["sed", "-n", "", *names], ["awk", "0", *names]):
            if not has(words[0]):
                continue
            with self.subTest(program=words[0]):
                _, files, _ = self.profiled(words, session=f"session-{words[0]}")
                for path in names:
                    self.assertEqual(files[str(path)]["bytes_read"], path.stat().st_size, path)

    def test_what_is_given_out_stays_the_same(self):
        for words in (["find", self.tree, "-type", "f"], ["sha256sum", *sorted(p for p in self.tree.rglob("f*"))], ["git", "--version"],
                      ["ls", "-lR", self.tree]):
            if not has(words[0]):
                continue
            with self.subTest(program=words[0]):
                plain = subprocess.run(list(map(str, words)), capture_output=True, check=True).stdout
                _, _, out = self.profiled(words, session=f"session-{words[0]}")
                self.assertEqual(hashlib.sha256(out).digest(), hashlib.sha256(plain).digest())


class WithoutRoom(ProgramsTest):
    def test_what_finds_no_room_is_counted(self):
        calls, files = BUILD / "benchmarks" / "rates" / "penstock_io_calls", 2000
        subprocess.run([calls, "make", self.folder / "small", str(files)], check=True)
        session, rows, _ = self.profiled([calls, "small", self.folder / "small", str(files)],
                                         env=os.environ | {"PENSTOCK_PROFILE_LIMIT": str(256 << 10)})
        seen = sum(1 for path in rows if path.startswith(str(self.folder / "small")))
        self.assertLess(seen, files)
        self.assertGreater(seen, 0)
        self.assertGreaterEqual(session["dropped"], files - seen)


@needs("fio")
class AgainstFio(ProgramsTest):
    def fio(self, engine, *more):
        path = self.folder / "fio.dat"
        session, files, out = self.profiled(["fio", "--output-format=json", "--name=a", f"--filename={path}", "--size=4m", "--bs=4k",
                                             "--rw=randrw", f"--ioengine={engine}", "--randseed=7", "--fallocate=none", *more])
        job = json.loads(out[out.index(b"{"):])["jobs"][0]
        self.assertEqual(job["error"], 0)
        return session, files[str(path)], job, path

    def check(self, engine, *more):
        _, row, job, _ = self.fio(engine, *more)
        self.assertEqual(row["bytes_read"], job["read"]["io_bytes"])
        # It lays the file out before.
        self.assertEqual(row["bytes_written"], job["write"]["io_bytes"] + 4 * MIB)

    def test_psync(self):
        self.check("psync")

    def test_libaio(self):
        self.check("libaio", "--iodepth=8")

    def test_mmap(self):
        _, row, _, path = self.fio("mmap")
        self.assertEqual(row["mmaps"], 1)
        self.assertEqual(row["mapped_bytes"], path.stat().st_size)


main()
