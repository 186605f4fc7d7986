"""Programs that do odd things under the profiler, and names and positions that exports must carry unchanged."""

import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

from messages import message
from penstock_cli import PENSTOCK
import penstock_cli
from profile_case import ProgramsTest

SIZE = 1_000_000
FORMATS = ("chrome", "csv", "darshan", "records")
BYTES_READ, MAX_BYTE_READ, MAX_BYTE_WRITTEN = 14, 16, 17  # positions of POSIX_... in a record of Darshan's POSIX module
COUNTERS, RECORD_BYTES = 69, 704
POSITIONS = """
import os
fd = os.open('f', os.O_RDWR)
os.read(fd, 4096)
for at in (1 << 31, 1585481707): assert os.pread(fd, 100, at) == b''
os.lseek(fd, 5 << 30, 0); os.read(fd, 10)
try: os.pread(fd, 1, -5)
except OSError: pass
"""


def posix_counters(log):
    """The counters of each file in a Darshan log of format 3.4x: each region is named by its place in the header, and is zlib streams."""
    def region(at):
        start, length = struct.unpack_from("<QQ", log, at)
        out, rest = b"", log[start : start + length]
        while rest:
            stream = zlib.decompressobj()
            out, rest = out + stream.decompress(rest), stream.unused_data
        return out

    names, at, text = {}, 0, region(32)
    while at < len(text):
        end = text.index(b"\0", at + 8)
        names[text[at : at + 8]] = text[at + 8 : end].decode()
        at = end + 1
    records = region(64)
    return {names[records[at : at + 8]]: struct.unpack_from(f"<{COUNTERS}q", records, at + 16) for at in range(0, len(records), RECORD_BYTES)}


class OddPrograms(ProgramsTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "f"
        self.file.write_bytes(os.urandom(SIZE))

    def run_penstock(self, *words, **kwargs):
        return subprocess.run([PENSTOCK, *map(str, words)], check=False, capture_output=True, **{"cwd": self.folder, "timeout": 300, **kwargs})

    def export(self, form, session="session", expect=0):
        out = self.folder / f"{session}.{form}"
        done = self.run_penstock("profile", "export", "--to", form, session, "-o", out)
        self.assertEqual(done.returncode, expect, done.stderr)
        return out

    def test_programs_that_end_or_begin_in_odd_ways(self):
        read = "import os\nopen('f', 'rb').read()\n"
        forks = read + "if os.fork() == 0:\n  open('f', 'rb').read(); os._exit(0)\nos.wait()\n"
        scripts = {  # name -> the script, its exit code, how often f is read
            "all descriptors closed": ("import os\nos.closerange(3, 1024)\n" + forks, 0, 2),
            "no environment": ("import os\nos.execve('/bin/cat', ['cat', 'f'], {})", 0, 1),
            "children": ("import subprocess\nfor _ in range(10): subprocess.run(['cat', 'f'], stdout=-3)", 0, 10),
            "at once": (read + "os._exit(3)", 3, 1),
            "abort": (read + "os.abort()", 134, 1),
            "killed": (read + "os.kill(os.getpid(), 9)", 137, 1),
            "no rights to new files": ("import os\nos.umask(0o777)\n" + forks, 0, 2),
        }
        for name, (script, code, times) in scripts.items():
            with self.subTest(name):
                done = self.run_penstock("profile", "run", "-o", name, "--", sys.executable, "-S", "-c", script)
                self.assertEqual(done.returncode, code, done.stderr)
                report = self.run_penstock("profile", "report", "--json", "--all", name)
                rows = [json.loads(line) for line in report.stdout.splitlines()]
                self.assertEqual(sum(row["bytes_read"] for row in rows if row["kind"] == "file" and row["path"] == str(self.file)), times * SIZE)

    def test_paths_that_are_too_long_are_refused_before_the_program_runs(self):
        folder = self.folder
        while len(str(folder)) < 1024:
            folder /= "d" * 100
        folder.mkdir(parents=True)
        for session, cwd in ((folder / "s", self.folder), ("s", folder)):
            done = self.run_penstock("profile", "run", "-o", session, "--", "touch", self.folder / "has-run", cwd=cwd)
            if (self.folder / "has-run").exists():  # then it has been recorded
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.run_penstock("profile", "report", session, cwd=cwd).returncode, 0)
            else:
                self.assertEqual(done.returncode, 2, done.stderr)

    def test_reads_that_moved_nothing_have_no_position(self):
        (self.folder / "empty").write_bytes(b"")
        self.profiled([sys.executable, "-S", "-c", "open('empty').read()\n" + POSITIONS], cwd=self.folder)
        counters = posix_counters(self.export("darshan").read_bytes())
        self.assertIn(counters[str(self.folder / "empty")][MAX_BYTE_READ], (0, -1))
        self.assertEqual((counters[str(self.file)][BYTES_READ], counters[str(self.file)][MAX_BYTE_READ]), (4096, 4095))
        self.assertIn(counters[str(self.file)][MAX_BYTE_WRITTEN], (0, -1))

    def test_offsets_are_signed(self):
        done = self.run_penstock("profile", "run", "--trace", "-o", "session", "--", sys.executable, "-S", "-c", POSITIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.export("chrome").read_text()
        offsets = [event["args"]["offset"] for event in json.loads(text)["traceEvents"] if "offset" in event.get("args", {})]
        self.assertIn(5 << 30, offsets)
        self.assertLessEqual(max(offsets), 5 << 30)

    def test_a_profile_of_nothing_is_no_export(self):
        self.profiled(["true"])
        for form in FORMATS:
            self.export(form, expect=1)

    def test_names_that_are_not_utf8(self):
        names = [b"l\xe9.txt", b"l\xe8.txt", b"\xff\xfe", b"\xed\xa0\x80", b"cut\xc3"]
        (self.folder / "l").mkdir()
        for size, name in enumerate(names, 1):
            with open(os.fsencode(self.folder) + b"/l/" + name, "wb") as file:
                file.write(b"x" * size)
        done = self.run_penstock("profile", "run", "--trace", "-o", "session", "--", "sh", "-c", "cat l/*")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = {form: self.export(form).read_text(encoding="utf-8") for form in ("chrome", "csv")}
        for file in self.export("records").rglob("*.jsonl"):
            file.read_text(encoding="utf-8")
        report = self.run_penstock("profile", "report", "session", "--json", "--all").stdout.decode("utf-8")
        rows = {row["path"].rpartition("/")[2]: row["bytes_read"] for row in map(json.loads, report.splitlines()) if row.get("kind") == "file"}
        self.assertEqual(sorted(read for name, read in rows.items() if not name.isascii() or "\\" in name), list(range(1, len(names) + 1)))
        for name in (name for name in rows if "\\" in name):
            self.assertIn(name, text["csv"])

    def test_staging_advice_names_what_it_cannot_stage(self):
        for folder in ("l", "fast"):
            (self.folder / folder).mkdir()
        for number in (0xE8, 0xE9):
            with open(os.fsencode(self.folder) + b"/l/l" + bytes([number]) + b".txt", "wb") as file:
                file.write(b"x" * 1000)
        self.profiled(["sh", "-c", "cat l/*"], cwd=self.folder)
        done = self.run_penstock("stage", "advise", "session", "--slow", self.folder / "l", "--fast", self.folder / "fast", "--capacity", "1MB",
                                 "--cache", "cold", "--min-time", "10ms", "--repeat", 1)
        if done.returncode != 0:
            self.assertIn(message("names-not-utf8"), done.stderr.decode())

    def test_a_binary_without_its_modules_names_them(self):
        (self.folder / "alone").mkdir()
        alone = self.folder / "alone" / "penstock"
        shutil.copy2(PENSTOCK, alone)
        done = subprocess.run([alone, "--version", "--json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("the program does not start alone")
        rows = {row.get("name"): row for row in map(json.loads, done.stdout.splitlines())}
        for name in ("mpi", "onednn"):
            if name in rows:
                self.assertFalse(rows[name]["present"], name)
                self.assertTrue(rows[name]["reason"], name)


if __name__ == "__main__":
    penstock_cli.main()
