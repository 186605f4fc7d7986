"""A network file system of several hosts on this machine (ci/testbed/moosefs). Skipped where that is not available."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from messages import message
import penstock_cli

TESTBED = penstock_cli.SOURCE / "ci" / "testbed"
MOOSEFS = TESTBED / "moosefs"
MPI_HOSTS = TESTBED / "mpi_hosts"
MODULE = pathlib.Path(penstock_cli.PENSTOCK).resolve().parent / "libpenstock_mpi.so"


def mounted(path):
    return f" {path} " in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8")


class MooseFs(penstock_cli.CliTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="penstock-test-")
        pathlib.Path(folder.name).chmod(0o755)
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(subprocess.run, [MOOSEFS, "down", folder.name], check=False)
        done = subprocess.run([MOOSEFS, "up", folder.name], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.mount = pathlib.Path(done.stdout.strip())

    def test_tiers_says_what_it_is(self):
        tier, = self.records("tiers", "--tier", self.mount)
        self.assertTrue(tier["network"])
        self.assertFalse(tier["memory"])
        self.assertEqual((tier["fs_type"], tier["device"], tier["mount_point"]), ("fuse.mfs", "10.77.0.1:9421", str(self.mount)))
        self.assertIn("rw", tier["mount_options"].replace(";", ",").split(","))
        self.assertIn("network", self.run_cli("tiers", "--tier", self.mount).stdout)

    def test_what_was_made_there_is_right(self):
        self.run_cli("generate", "imagenet", "--samples", 40, "--seed", 5, "--out", self.mount / "made")
        self.run_cli("generate", "imagenet", "--samples", 40, "--seed", 5, "--out", self.dir / "local")
        self.assert_same_tree("local", self.mount / "made")
        self.assertIn("40 right", self.run_cli("verify", f"uring:{self.mount}/made,direct=1").stdout)
        self.run_cli("copy", self.dir / "local", "--to", self.mount / "copy")
        self.assert_same_tree("local", self.mount / "copy")

    def test_the_back_ends_own_tests(self):
        folder = penstock_cli.BUILD / "io_backends"
        commands = [[folder / "backend_contract_test", name, "--gtest_filter=*/plain"] for name in ("posix", "uring")]
        quick = "FileFaults.*:Posix.*-*AStormOfSignals*:*FreeSpace*"  # the last sees what the others write meanwhile
        commands.append([folder / "io_backends_test", f"--gtest_filter={quick}"])
        if not all(os.access(command[0], os.X_OK) for command in commands):
            self.skipTest("the tests are not built")
        there = {**os.environ, "TMPDIR": str(self.mount)}
        running = [subprocess.Popen(command, env=there, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for command in commands]
        for command, process in zip(commands, running):
            out, _ = process.communicate(timeout=penstock_cli.PATIENCE_S)
            self.assertIn(process.returncode, (0, 77), f"{command[0].name} {command[1]}\n{out[-4000:]}")

    @unittest.skipIf(penstock_cli.SANITIZED, "the launcher's own libraries do not pass the sanitizers")
    def test_a_sweep_over_ranks_and_threads(self):
        self.run_cli("generate", "imagenet", "--samples", 32, "--out", self.mount / "swept")
        done = subprocess.run([TESTBED / "rank_sweep", "1,2", self.mount / "swept", "--threads", "1,2", "--min-time", "30ms", "--repeat", "1",
                               "--no-ceiling", "--results", self.dir / "records"], capture_output=True, text=True, cwd=self.dir,
                              timeout=penstock_cli.PATIENCE_S, check=False)
        if done.returncode == 77:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        cells = [line.split()[1:3] for line in done.stdout.splitlines()[1:]]
        self.assertEqual(cells, [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]])
        self.assertEqual(len(list((self.dir / "records").iterdir())), 2)

    @unittest.skipIf(penstock_cli.SANITIZED, "the launcher's own libraries do not pass the sanitizers")
    def test_a_sweep_over_hosts(self):
        """mpirun over two hosts, each with a client of its own, started, killed in the middle and resumed by `penstock sweep`."""
        probe = subprocess.run([MPI_HOSTS, "check"], capture_output=True, text=True, check=False)
        if probe.returncode == 77 or not MODULE.exists():
            self.skipTest(probe.stderr.strip() or "the MPI module is not built")
        self.run_cli("generate", "imagenet", "--samples", 32, "--out", self.mount / "hosts", "--set", "median=12KB")
        self.run_cli("copy", self.mount / "hosts", "--to", self.mount / "copied")
        (self.dir / "sweep.yaml").write_text(f"""
name: hosts
command: read
nouns: ["{self.mount}/hosts"]
fixed: {{min-time: 30ms, repeat: 1, no-baseline: true, no-ceiling: true, cache: asis, only-tiers: true}}
grid: {{threads: [1, 2, 4], tier: ["one=posix:{self.mount}/hosts", "two=posix:{self.mount}/copied"]}}
ranks: [1, 2]
launcher: mpirun --map-by node -np {{ranks}}
seed: 7
""", encoding="utf-8")
        (self.dir / "train.yaml").write_text(f"""
name: train
command: train
nouns: [alexnet]
fixed: {{data: "{self.mount}/hosts", steps: 2, batch: 4}}
ranks: [2]
launcher: mpirun --map-by node -np {{ranks}}
seed: 7
""", encoding="utf-8")
        words = [MPI_HOSTS, self.mount.parent, penstock_cli.PENSTOCK, "sweep"]
        results = self.dir / "penstock-results"
        journal = results / "sweep-hosts.state"
        killed = subprocess.Popen([*words, "sweep.yaml"], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  start_new_session=True)
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while not journal.exists() or journal.read_text(encoding="utf-8").count('"kind":"done"') < 3:
            if killed.poll() is not None:
                self.fail(killed.stdout.read())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        for file in ("sweep.yaml", "train.yaml"):
            done = subprocess.run([*words, file], cwd=self.dir, capture_output=True, text=True, timeout=penstock_cli.PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        records = [json.loads(line) for file in results.glob("*.jsonl") for line in file.read_text(encoding="utf-8").splitlines()]
        cells = [(record["parameters"]["threads"], record["tiers"]["data"]["name"], record["parameters"]["ranks"])
                 for record in records if record["command"] == "read"]
        self.assertEqual(sorted(cells), sorted((threads, tier, ranks) for threads in (1, 2, 4) for tier in ("one", "two") for ranks in (1, 2)))
        for record in records:
            self.assertEqual(record["verdict"], "ok", record["reason"])
            self.assertEqual(record["tiers"]["data"]["fs_type"], "fuse.mfs")
            if record["parameters"]["ranks"] == 2:
                self.assertEqual([rank["host"] for rank in record["environment"]["ranks"]], ["mpi1", "mpi2"])
        trained, = [record for record in records if record["command"] == "train"]
        self.assertEqual(trained["parameters"]["ranks"], 2)
        self.run_cli("report", results, "-o", "report.html")

    def test_down_and_up_again(self):
        """What is stored stays, and nothing runs in between."""
        folder = self.mount.parent
        (self.mount / "kept").write_bytes(b"water" * 1000)
        subprocess.run([MOOSEFS, "down", folder], check=True)
        self.assertFalse(mounted(self.mount))
        self.assertFalse((folder / "pid").exists())
        subprocess.run([MOOSEFS, "up", folder], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual((self.mount / "kept").read_bytes(), b"water" * 1000)

    def test_what_does_not_end_is_killed(self):
        folder = self.mount.parent
        pid = int((folder / "pid").read_text(encoding="utf-8"))
        os.kill(pid, signal.SIGSTOP)
        try:
            done = subprocess.run([MOOSEFS, "down", folder], capture_output=True, text=True, timeout=60, check=False)
        finally:
            if pathlib.Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(message("program-on-mount-killed"), done.stderr)
        self.assertFalse(mounted(self.mount))
        self.assertFalse((folder / "pid").exists())
        subprocess.run([MOOSEFS, "up", folder], check=True, stdout=subprocess.DEVNULL)
        self.assertTrue(mounted(self.mount))

    def test_an_interrupt_leaves_nothing(self):
        command = [MOOSEFS, "run", sys.executable, "-u", "-c",
                   "import os, time; print(os.environ['PENSTOCK_TEST_MFS']); time.sleep(600)"]
        process = subprocess.Popen(command, cwd=self.dir, env={**os.environ, "TMPDIR": str(self.dir)}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        mount = pathlib.Path(process.stdout.readline().strip())
        self.assertTrue(mounted(mount))
        pid = int((mount.parent / "pid").read_text(encoding="utf-8"))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal's Ctrl-C does
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(mounted(mount))
        self.assertFalse(mount.parent.exists())
        for _ in range(50):
            if not pathlib.Path(f"/proc/{pid}").exists():
                break
            time.sleep(0.1)
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())


def lacking():
    """Why none of this can run here, or None."""
    probe = subprocess.run([MOOSEFS, "check"], capture_output=True, text=True, check=False)
    return probe.stderr if probe.returncode == 77 else None


if __name__ == "__main__":
    penstock_cli.main(lacking)
