#!/usr/bin/env python3
"""Fault injection into sessions: every file of every process, damaged in each way; and programs and reports for which a file of /proc is
absent, empty or garbage. Whatever the fault, missing work is named, or the command fails: no exit 0 hides it."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

from penstock_cli import HIDE_PROC, PENSTOCK, SOURCE, main
from profile_case import ProgramsTest, needs

BYTES = 30_000
VERSION_AT, HEADER_BYTES, GRANULE = 8, 16_384, 16_384


def zeroed(data):
    return bytes(len(data))


def other_version(data):
    return data[:VERSION_AT] + struct.pack("=I", 99) + data[VERSION_AT + 4:]


# name -> what becomes of the file's bytes; None: the file is removed
DAMAGES = {
    "empty": lambda data: b"",
    "cut within the magic": lambda data: data[:5],
    "cut within the header": lambda data: data[:3000],
    "cut after the header": lambda data: data[:HEADER_BYTES],
    "cut within a block": lambda data: data[:HEADER_BYTES + GRANULE // 2],
    "cut by one block": lambda data: data[:-GRANULE],
    "cut by one byte": lambda data: data[:-1],
    "zeroed": zeroed,
    "header zeroed": lambda data: bytes(HEADER_BYTES) + data[HEADER_BYTES:],
    "foreign": lambda data: b"\x7fELF" + os.urandom(40_000),
    "another version": other_version,
    "another byte order": lambda data: data[:12] + data[12:16][::-1] + data[16:],
}
PROC_FILES = ("io", "stat", "cmdline", "ns")


class Sessions(ProgramsTest):
    def report(self, session):
        done = subprocess.run([PENSTOCK, "profile", "report", "--json", "--all", session], capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
        return done, rows

    def work_in(self, rows):
        return sum(row["bytes_written"] for row in rows[1:] if "/out" in row["path"])

    def recorded(self):
        """A session of several processes, each of which writes BYTES: a shell, its forked child, and what they execute."""
        script = ("import os, subprocess\n"
                  f"def work(i): open(f'out{{i}}', 'wb').write(b'x' * {BYTES})\n"
                  "work(0)\n"
                  "if os.fork() == 0:\n    work(1); os._exit(0)\n"
                  "os.wait()\n"
                  "subprocess.run(['sh', '-c', 'cp out0 out2; true'])\n")
        session = self.folder / "session"
        subprocess.run([PENSTOCK, "profile", "run", "-o", session, "--", sys.executable, "-S", "-c", script], cwd=self.folder, check=True,
                       capture_output=True)
        _, rows = self.report(session)
        self.assertEqual(self.work_in(rows), 3 * BYTES)
        return session

    def honest(self, done, rows):
        """Nothing is missing, or it is said."""
        if done.returncode != 0:
            return bool(done.stderr.strip())
        session = rows[0]
        told = bool(session["problems"] or session["unwatched"] or session["dropped"])
        return self.work_in(rows) == 3 * BYTES or told

    def test_every_damage_to_every_file(self):
        whole = self.recorded()
        files = sorted(path.name for path in whole.glob("*.session"))
        self.assertGreaterEqual(len(files), 4)
        for name in files:
            for damage, damaged in DAMAGES.items():
                with self.subTest(file=files.index(name), damage=damage):
                    session = self.folder / "damaged"
                    shutil.rmtree(session, ignore_errors=True)
                    shutil.copytree(whole, session)
                    (session / name).write_bytes(damaged((whole / name).read_bytes()))
                    done, rows = self.report(session)
                    self.assertTrue(self.honest(done, rows), done.stderr)
                    if rows and self.work_in(rows) != 3 * BYTES:
                        self.assertTrue(rows[0]["coverage"]["unread_files"] or rows[0]["coverage"]["cut_processes"])

    @unittest.skipIf(os.geteuid() == 0, "root can read every file")
    def test_a_file_that_may_not_be_read(self):
        session = self.recorded()
        for path in sorted(session.glob("*.session")):
            with self.subTest(path=path.name):
                path.chmod(0)
                done, rows = self.report(session)
                self.assertTrue(self.honest(done, rows), done.stderr)
                path.chmod(0o600)

    def test_files_that_are_no_files(self):
        whole = self.recorded()
        for name in sorted(path.name for path in whole.glob("*.session")):
            for kind in ("folder", "pipe", "dangling link"):
                with self.subTest(name=name, kind=kind):
                    session = self.folder / "damaged"
                    shutil.rmtree(session, ignore_errors=True)
                    shutil.copytree(whole, session)
                    (session / name).unlink()
                    if kind == "folder":
                        (session / name).mkdir()
                    elif kind == "pipe":
                        os.mkfifo(session / name)
                    else:
                        (session / name).symlink_to("nowhere")
                    done, rows = self.report(session)
                    self.assertTrue(self.honest(done, rows), done.stderr)

    def test_each_removed_file_is_missed(self):
        session = self.recorded()
        for path in sorted(session.glob("*.session")):
            with self.subTest(path=path.name):
                data = path.read_bytes()
                path.unlink()
                done, rows = self.report(session)
                self.assertTrue(done.returncode != 0 or rows[0]["coverage"]["unread_files"] == 1, done.stderr)
                path.write_bytes(data)

    def test_a_doubled_file_counts_once(self):
        session = self.recorded()
        for path in sorted(session.glob("*.session")):
            with self.subTest(path=path.name):
                copy = session / f"9{path.name}"
                shutil.copy(path, copy)
                done, rows = self.report(session)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.work_in(rows), 3 * BYTES)
                copy.unlink()

    def test_nothing_recorded_is_a_warning_and_no_report(self):
        session = self.folder / "session"
        done = subprocess.run([PENSTOCK, "profile", "run", "-o", session, "--", "sh", "-c", "exit 7"], capture_output=True, text=True, check=False,
                              env=os.environ | {"PENSTOCK_PROFILE_LIMIT": "1"})
        self.assertEqual(done.returncode, 7)
        self.assertIn("warning", done.stderr)
        self.assertIn("unknown", done.stderr)
        report, _ = self.report(session)
        self.assertEqual(report.returncode, 1)

    def test_a_session_that_the_program_removes_is_named(self):
        session = self.folder / "session"
        done = subprocess.run([PENSTOCK, "profile", "run", "-o", session, "--", "sh", "-c", f"rm -r {session}; exit 7"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 7)
        self.assertIn(str(session), done.stderr)
        self.assertIn("unknown", done.stderr)
        self.assertNotIn("LD_PRELOAD", done.stderr, "the reason is known: nothing is guessed")


@unittest.skipIf(os.geteuid() != 0, "only root mounts over /proc")
class Proc(ProgramsTest):
    """The program runs in a mount namespace of its own, in which /proc is another one."""

    def in_namespace(self, setup, *words):
        return subprocess.run(["unshare", "-m", "sh", "-c", f"{setup} exec \"$@\"", "sh", *map(str, words)], capture_output=True, text=True,
                              check=False, cwd=self.folder)

    @needs("unshare", "mount")
    def test_each_file_of_proc_absent_empty_or_garbage(self):
        if self.in_namespace("mount -t tmpfs none /mnt &&", "true").returncode != 0:
            self.skipTest("nothing can be mounted here")
        (self.folder / "in").write_bytes(b"x" * BYTES)
        (self.folder / "empty").write_bytes(b"")
        (self.folder / "garbage").write_bytes(b"\x00\xff) ( rchar: x\n" * 50)
        usual = self.folder / "usual"
        subprocess.run([PENSTOCK, "profile", "run", "-o", usual, "--", "cp", "in", "out"], cwd=self.folder, check=True, capture_output=True)
        # The program runs with a /proc that has nothing: the library can read none of its files.
        hide = HIDE_PROC + " &&"
        session = self.folder / "hidden"
        command = f"{hide} exec cp in out"
        done = subprocess.run([PENSTOCK, "profile", "run", "-o", session, "--", "unshare", "-m", "sh", "-c", command], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", "--all", session], capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in report.stdout.splitlines()]
        self.assertEqual(sum(row["bytes_written"] for row in rows[1:] if row["path"].endswith("/out")), BYTES)
        self.assertTrue(rows[0]["coverage"]["unknown_processes"] or rows[0]["coverage"]["wchar"]["fraction"] in (None, 1))
        # The program covers single files of its own /proc before it executes the next program.
        for name in ("io", "stat", "cmdline"):
            for what in ("empty", "garbage"):
                with self.subTest(name=name, what=what):
                    session = self.folder / f"s-{name}-{what}"
                    command = f"mount --bind {self.folder / what} /proc/$$/{name} && exec cp in out"
                    done = subprocess.run([PENSTOCK, "profile", "run", "-o", session, "--", "unshare", "-m", "sh", "-c", command],
                                          cwd=self.folder, capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    report = subprocess.run([PENSTOCK, "profile", "report", "--json", "--all", session], capture_output=True, text=True,
                                            check=False)
                    self.assertEqual(report.returncode, 0, report.stderr)
                    rows = [json.loads(line) for line in report.stdout.splitlines()]
                    self.assertEqual(sum(row["bytes_written"] for row in rows[1:] if row["path"].endswith("/out")), BYTES)
                    fraction = rows[0]["coverage"]["wchar"]["fraction"]
                    self.assertTrue(fraction is None or fraction == 1 or rows[0]["coverage"]["unknown_processes"], rows[0]["coverage"])
        # The report without /proc.
        done = self.in_namespace(hide, PENSTOCK, "profile", "report", "--json", "--all", usual)
        if done.returncode == 0:
            self.assertEqual(sum(row["bytes_written"] for row in map(json.loads, done.stdout.splitlines()[1:])
                                 if row["path"].endswith("/out")), BYTES)
        else:
            self.assertTrue(done.stderr.strip())


class ReadsOfProc(unittest.TestCase):
    def test_every_read_of_proc_is_injected(self):
        """The injection points above are all reads of /proc/self that the library makes."""
        found = set()
        for path in (SOURCE / "profiling" / "interpose").rglob("*.cpp"):
            if "matrix" in path.parts or path.name.endswith("_test.cpp"):
                continue
            for piece in path.read_text(encoding="utf-8").split('"/proc/self/')[1:]:
                found.add(piece.split('"')[0].split("/")[0])
        self.assertEqual(found - {"exe", "fd", ""}, set(PROC_FILES))


if __name__ == "__main__":
    main()
