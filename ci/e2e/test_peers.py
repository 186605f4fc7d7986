"""The commands of docs/explanation/why-numbers-differ.md run unchanged, ours and fio's; benchmarks/self/peers do what they say."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from messages import message
import penstock_cli

IO_URING_SETUP = 425  # the number of the call on every architecture that is not alpha
IO_URING_PARAMS_BYTES = 120
PAGE = penstock_cli.SOURCE / "docs" / "explanation" / "why-numbers-differ.md"


def commands(program):
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith(program + " ")]


def has_io_uring():
    """Asks for a ring of one entry: containers and kernels may refuse any."""
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(IO_URING_PARAMS_BYTES))
    if ring < 0:
        return False
    os.close(ring)
    return True


class Peers(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        (self.dir / "fio").mkdir()
        (self.dir / "random.bin").write_bytes(os.urandom(4 << 20))
        program = pathlib.Path(penstock_cli.PENSTOCK).resolve()
        self.env = {**os.environ, "D": str(self.dir), "S": "2MiB", "N": "2", "T": "1", "PATH": f"{program.parent}:{os.environ['PATH']}"}

    def shell(self, line):
        done = subprocess.run(["sh", "-c", line], cwd=self.dir, env={**self.env, "T": "0.05"}, capture_output=True, text=True, check=False,
                              timeout=penstock_cli.PATIENCE_S)
        # The tier may lack direct I/O: that is said, and no fault of the page. (Without io_uring, threads read.)
        if done.returncode != 0 and "direct=1" in line and not self.has_direct_io():
            self.assertIn(message("no-direct-io"), done.stdout + done.stderr)
            self.skipTest(f"no direct I/O here: {line}")
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}\n{done.stderr}")

    def has_direct_io(self):
        try:
            os.close(os.open(self.dir / "random.bin", os.O_RDONLY | os.O_DIRECT))
        except OSError:
            return False
        return True

    def test_ours(self):
        ours = commands("penstock")
        self.assertGreaterEqual(len(ours), 6)
        for line in ours:
            with self.subTest(line):
                shorter = {"read": " --repeat 1 --min-time 50ms --no-ceiling", "tiers": " --repeat 1"}
                self.shell(line + shorter.get(line.split()[1], ""))

    @unittest.skipUnless(shutil.which("fio"), "no fio here")
    def test_fios(self):
        theirs = commands("fio")
        self.assertGreaterEqual(len(theirs), 3)
        for line in theirs:
            with self.subTest(line):
                done = subprocess.run(["sh", "-c", line], cwd=self.dir, env=self.env, capture_output=True, text=True, check=False)
                if done.returncode != 0 and "--direct=1" in line and not self.has_direct_io():
                    self.skipTest(f"no direct I/O here: {line}")
                if done.returncode != 0 and "io_uring" in line and not has_io_uring():
                    self.skipTest(f"no io_uring here: {line}")
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}\n{done.stderr}")

    def skip_without_direct(self, done):
        """A folder for temporary files may be in memory, where some kernels let nothing go past the page cache."""
        if done.returncode == 1 and message("tier-without-direct-io") in done.stderr:
            self.skipTest(done.stderr)

    @unittest.skipUnless(shutil.which("fio"), "no fio here")
    def test_the_comparison_measures_both(self):
        script = penstock_cli.SOURCE / "benchmarks" / "self" / "peers" / "fio"
        there = sorted(os.listdir(self.dir))
        done = subprocess.run([script, "--dir", self.dir, "--size", "2MiB", "--pairs", "1", "--seconds", "1", "--block", "4KiB", "--depth",
                               "2", "--json", "--no-processor", "posix"], cwd=self.dir,
                              env={**self.env, "PENSTOCK": str(pathlib.Path(penstock_cli.PENSTOCK).resolve())},
                              capture_output=True, text=True, check=False)
        self.skip_without_direct(done)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(done.stdout)
        self.assertGreater(row["ours"], 0)
        self.assertGreater(row["theirs"], 0)
        self.assertEqual(sorted(os.listdir(self.dir)), there)

    @unittest.skipUnless(os.access("/proc/sys/vm/drop_caches", os.W_OK), "only root drops the page cache")
    def test_cold_files_compares_every_side(self):
        script = penstock_cli.SOURCE / "benchmarks" / "self" / "peers" / "cold_files"
        there = sorted(os.listdir(self.dir))
        before = penstock_cli.slabs_dropped()
        done = subprocess.run([script, "--dir", self.dir, "--files", "32", "--file-size", "8KiB", "--rounds", "1", "--passes", "1",
                               "--json"], cwd=self.dir,
                              env={**self.env, "PENSTOCK": str(pathlib.Path(penstock_cli.PENSTOCK).resolve())},
                              capture_output=True, text=True, check=False)
        self.skip_without_direct(done)
        self.assertEqual(done.returncode, 0, done.stderr)
        sides = {row["side"]: row["theirs"] for row in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(set(sides), {"uring", "baseline"} | ({"fio", "device"} if shutil.which("fio") else set()))
        self.assertGreater(min(sides.values()), 0)
        # In each of two rounds: once before uring's pass and before fio's, twice (again after the proof) before each of the baseline's two passes.
        self.assertGreaterEqual(penstock_cli.slabs_dropped() - before, 2 * (1 + 4 + ("fio" in sides)))
        self.assertEqual(sorted(os.listdir(self.dir)), there)

    def test_dlio_says_what_is_wrong(self):
        script = penstock_cli.SOURCE / "benchmarks" / "self" / "peers" / "dlio"
        for words, expected in ((("--dir", "nowhere"), "there is no folder 'nowhere'"), (("fast", "--dir", "."), "no comparison 'fast'"),
                            (("--dir", ".", "--cpus", "0"), "--cpus is from 1 to"), (("--dir", ".", "--rounds", "0"), "--rounds"),
                            (("--dir", ".", "--read-threads", "1,x"), "--read-threads is a list"), ((), "--dir"),
                            (("--dir", ".", "--wanted-au", "1"), "--wanted-au"), (("--dir", ".", "--workload", "bert"), "bert")):
            with self.subTest(words):
                done = subprocess.run([script, *words], cwd=self.dir, env=self.env, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(expected, done.stderr)

    def test_dlio_is_skipped_where_it_cannot_be_had(self):
        venv = self.dir / "venv"
        (venv / "bin").mkdir(parents=True)
        pip = venv / "bin" / "pip"
        pip.write_text("#!/bin/sh\necho no network >&2\nexit 1\n", encoding="utf-8")
        pip.chmod(0o755)
        script = penstock_cli.SOURCE / "benchmarks" / "self" / "peers" / "dlio"
        there = sorted(os.listdir(self.dir))
        done = subprocess.run([script, "sustained", "--dir", self.dir, "--venv", venv], cwd=self.dir,
                              env={**self.env, "PENSTOCK": str(pathlib.Path(penstock_cli.PENSTOCK).resolve())},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn(message("pypi-unreachable"), done.stderr)
        self.assertEqual(sorted(os.listdir(self.dir)), there)


if __name__ == "__main__":
    penstock_cli.main()
