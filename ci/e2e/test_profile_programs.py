#!/usr/bin/env python3
"""Programs of other projects under the profiler: their bytes by file against what strace saw, what fio says of itself, and
the sizes of files that are read whole. Their output is the same as without the profiler."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from messages import message
from penstock_cli import BUILD, PENSTOCK, main
from profile_case import ProgramsTest, has, needs

MIB = 1 << 20


class Patterns(ProgramsTest):
    def test_the_parts_of_a_pattern_add_up(self):
        """Darshan's counters: an access is sequential if it begins after the last byte of the one before, the first one if it begins after byte 0."""
        for call in ("read", "write"):
            for offsets in ((5000, 0), (0, 5000), (1, 0), (0, 10), *([list(range(100, 0, -step))] for step in (10, 20))):
                offsets = offsets[0] if isinstance(offsets[0], list) else list(offsets)
                with self.subTest(call=call, offsets=offsets):
                    file = self.folder / "patterned"
                    file.write_bytes(b"x" * 9000)
                    program = (f"import os\nf = os.open({str(file)!r}, os.O_RDWR)\nfor at in {offsets}: "
                               + ("os.pread(f, 10, at)" if call == "read" else "os.pwrite(f, b'0123456789', at)"))
                    self.profiled([sys.executable, "-c", program])
                    text = subprocess.run([PENSTOCK, "profile", "report", "--include", str(file), self.folder / "session"], capture_output=True, text=True,
                                          check=True).stdout
                    parts = re.search(rf"{call}s: ([\d.]+)% \D+; ([\d.]+)% consecutive\), ([\d.]+)% not; ([\d.]+)%", text)
                    self.assertIsNotNone(parts, text)
                    pairs = list(zip([-9, *offsets], offsets))
                    later = sum(at > before + 9 for before, at in pairs)
                    expected = (later, sum(at == before + 10 for before, at in pairs), len(pairs) - later, 1)
                    self.assertEqual([round(float(part)) for part in parts.groups()], [round(100 * part / len(offsets)) for part in expected], text)


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


class ByTheirDescriptors(ProgramsTest):
    """Files that come to a program as a descriptor, or by a name of one."""

    def test_a_name_of_a_descriptor_is_its_file(self):
        source, target = self.tree / "d0" / "f4", self.folder / "target"
        source.write_bytes(b"x" * 70001)
        for name in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
            with self.subTest(name=name):
                session, files, _ = self.profiled(["sh", "-c", f"cat {name} < {source} > {target}"], session=name.replace("/", "-"))
                self.assertEqual((files[str(source)]["bytes_read"], files[str(target)]["bytes_written"]), (70001, 70001))
                self.assertEqual([path for path in files if path.startswith(("/dev/std", "/dev/fd", "/proc/self/fd"))], [])

    @needs("bash")
    def test_a_stream_whose_descriptor_becomes_another_files(self):
        out = self.folder / "out"
        with open(out, "wb") as stdout:
            folder = self.folder / "session"
            subprocess.run([PENSTOCK, "profile", "run", "-o", folder, "--", "bash", "-c",
                            f"for i in 1 2 3 4 5; do echo 0123456789; done; echo foo >> {self.folder}/a; echo bar > {self.folder}/b; echo end"],
                           stdout=stdout, check=True)
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", folder], capture_output=True, text=True, check=True).stdout
        sizes = {row["path"]: (row["bytes_written"], row["size"]) for row in map(json.loads, report.splitlines()) if row["kind"] == "file"}
        self.assertEqual({path: sizes[str(self.folder / path)] for path in ("out", "a", "b")}, {"out": (59, 59), "a": (4, 4), "b": (4, 4)})

    def test_names_that_are_not_there_are_counted_together(self):
        script = ("import os, sys\n"
                  "for i in range(500):\n"
                  "    for call in (os.stat, lambda name: os.open(name, os.O_RDONLY)):\n"
                  "        try: call(f'{sys.argv[1]}/{i}')\n"
                  "        except OSError: pass\n")
        session, files, _ = self.profiled([sys.executable, "-S", "-c", script, self.folder / "nowhere"])
        self.assertGreaterEqual(session["missed_ops"], 1000)
        self.assertLess(session["missed_ops"], 1500)  # Python's own, too
        self.assertGreater(session["missed_time_s"], 0)
        self.assertEqual([path for path in files if "nowhere" in path], [])

    def test_memory_is_no_file_of_a_mount(self):
        script = "import os; m = os.memfd_create('c'); os.write(m, b'x' * 100000); print(len(os.pread(m, 100000, 0)))"
        folder = self.folder / "session"
        subprocess.run([PENSTOCK, "profile", "run", "-o", folder, "--", sys.executable, "-c", script], capture_output=True, check=True)
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", folder], capture_output=True, text=True, check=True).stdout
        session = json.loads(report.splitlines()[0])
        self.assertEqual(session["bytes_written"], 0)
        self.assertGreaterEqual(session["left_out"]["bytes_written"], 100000)

    @needs("cc", "sh")
    def test_programs_that_take_no_library_are_named_however_they_begin(self):
        source, static = self.folder / "s.c", self.folder / "static"
        source.write_text("int main(void) { return 0; }", encoding="utf-8")
        if subprocess.run(["cc", "-static", "-o", static, source], capture_output=True, check=False).returncode != 0:
            self.skipTest("no static libc here")
        python = f"import subprocess; subprocess.run(['{static}'], check=True)"
        for name, words in (("sh", ["sh", "-c", f"{static}; true"]), ("python", [sys.executable, "-c", python])):
            with self.subTest(program=name):
                session, _, _ = self.profiled(words, session=name)
                self.assertEqual([one["program"] for one in session["unwatched"]], [str(static)])


class BetweenTwoFiles(ProgramsTest):
    def test_the_time_is_counted_once(self):
        source = self.folder / "from"
        source.write_bytes(os.urandom(32 * MIB))
        script = ("import os, sys, time\n"
                  "call, source, target = sys.argv[1:]\n"
                  "i, o = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT)\n"
                  "begin = time.perf_counter()\n"
                  "moved = os.copy_file_range(i, o, 1 << 25) if call == 'copy_file_range' else os.sendfile(o, i, None, 1 << 25)\n"
                  "print(moved, time.perf_counter() - begin)\n")
        for call in ("copy_file_range", "sendfile"):
            with self.subTest(call=call):
                target = self.folder / f"to-{call}"
                _, files, output = self.profiled([sys.executable, "-c", script, call, source, target], session=call)
                moved, elapsed = output.split()
                read, written = files[str(source)], files[str(target)]
                self.assertEqual((read["bytes_read"], written["bytes_written"]), (int(moved), int(moved)))
                self.assertGreater(min(read["read_time_s"], written["write_time_s"]), 0)
                self.assertLess(read["read_time_s"] + written["write_time_s"], 1.05 * float(elapsed))


class WithoutRoom(ProgramsTest):
    def test_what_finds_no_room_is_counted(self):
        calls, files = BUILD / "benchmarks" / "self" / "rates" / "penstock_io_calls", 2000
        subprocess.run([calls, "make", self.folder / "small", str(files)], check=True)
        session, rows, _ = self.profiled([calls, "small", self.folder / "small", str(files)],
                                         env=os.environ | {"PENSTOCK_PROFILE_LIMIT": str(256 << 10)})
        seen = sum(1 for path in rows if path.startswith(str(self.folder / "small")))
        self.assertLess(seen, files)
        self.assertGreater(seen, 0)
        self.assertGreaterEqual(session["dropped"], files - seen)

    @unittest.skipIf(os.geteuid() != 0, "only root mounts")
    def test_a_full_disk_is_said(self):
        calls, disk = BUILD / "benchmarks" / "self" / "rates" / "penstock_io_calls", self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True).returncode != 0:
            self.skipTest("no tmpfs can be mounted")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        subprocess.run([calls, "make", self.folder / "small", "20000"], check=True)
        subprocess.run([PENSTOCK, "profile", "run", "--trace", "-o", disk / "s", "--", calls, "small", self.folder / "small", "20000"],
                       check=True, capture_output=True)
        output = subprocess.run([PENSTOCK, "profile", "report", disk / "s"], check=True, capture_output=True, text=True).stdout
        self.assertIn(message("session-disk-full"), output)
        self.assertNotIn("--trace-limit", output)
        rows = subprocess.run([PENSTOCK, "profile", "report", "--json", disk / "s"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(json.loads(rows.splitlines()[0])["drops"]["no_room"], "No space left on device")
        (disk / "fill").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
        nothing = subprocess.run([PENSTOCK, "profile", "run", "-o", disk / "u", "--", calls, "small", self.folder / "small", "10"],
                                 capture_output=True, text=True)
        self.assertIn(message("no-space-left"), nothing.stderr)


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
