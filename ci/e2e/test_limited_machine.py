"""Machines that hide or withhold something: no /proc, processor quotas, little locked memory; and an accelerator that is always busy."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from corpus_case import CorpusTest
from penstock_cli import PENSTOCK
import penstock_cli

QUICK = ("--threads", 1, "--min-time", "10ms", "--repeat", 1, "--no-baseline", "--no-ceiling")
CLOCKS = """#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec* at) {  /* runs PACE times as fast, and is AHEAD seconds ahead */
  static long long begin;
  syscall(SYS_clock_gettime, clock, at);
  long long now = at->tv_sec * 1000000000LL + at->tv_nsec;
  if (begin == 0) begin = now;
  now = begin + atof(getenv("PACE")) * (now - begin) + atof(getenv("AHEAD")) * 1e9;
  at->tv_sec = now / 1000000000;
  at->tv_nsec = now % 1000000000;
  return 0;
}
"""
GROUPS = pathlib.Path("/sys/fs/cgroup")
STAGES = r"\b(read|decode|resize|collate|queue|copy|input|tier)\b"


class LimitedMachine(CorpusTest):
    def setUp(self):
        super().setUp()
        self.run_cli("generate", "imagenet", "--samples", 8, "--seed", 1, "--set", "median=20000", "--out", "pics")

    def run_after(self, prepare, *words, expect=0):
        """Runs the words `prepare`, followed by `penstock WORDS`."""
        done = subprocess.run([*prepare, PENSTOCK, *map(str, words)], cwd=self.dir, check=False, capture_output=True, text=True, timeout=300)
        if expect is not None:
            self.assertEqual(done.returncode, expect, done.stderr)
        return done

    @unittest.skipIf(penstock_cli.SANITIZED, "a sanitizer's runtime wants to be the first library")
    def test_a_clock_of_another_pace_measures_nothing(self):
        compiler = shutil.which("cc") or self.skipTest("no C compiler")
        (self.dir / "clocks.c").write_text(CLOCKS)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.dir / "clocks.so", self.dir / "clocks.c"], check=True)

        def with_clock(pace, ahead, *words, expect):
            return self.run_after(["sh", "-c", f'export LD_PRELOAD=./clocks.so PACE={pace} AHEAD={ahead}; exec "$@"', "sh"], *words, expect=expect)

        for pace in (100, 1.25, 0.5, 0.001, 0):
            with self.subTest(pace):
                for words in (("read", "pics", *QUICK), ("train", "stream", "--data", "pics", "--batch", 4), ("checkpoint", "save", "kept", "--payload", "4KiB")):
                    failed = with_clock(pace, 0, *words, "--json", expect=77)
                    self.assertEqual(failed.stdout, "")
                    self.assertIn("clocks.so", failed.stderr)
                self.assertIn("clocks.so", with_clock(pace, 0, "describe", "pics", expect=0).stderr)
        for ahead in (0, -1000, 1e9):
            with self.subTest(ahead=ahead):
                done = with_clock(1, ahead, "read", "pics", *QUICK, "--json", expect=0)
                self.assertNotIn("clocks.so", done.stderr)
                self.assertGreater(min(json.loads(done.stdout)["metrics"]["samples_per_s"]["samples"]), 0)

    def test_profile_run_without_proc(self):
        if self.run_cli("profile", "run", "-o", "usual", "--", "true", expect=None).returncode != 0:
            self.skipTest("this build has no profiler")
        done = self.run_after(penstock_cli.without_proc(), "profile", "run", "-o", "hidden", "--", "true", expect=None)
        self.assertIn("/proc" if done.returncode != 0 else "coverage: unknown", done.stderr)

    @contextlib.contextmanager
    def limited_group(self, processors):
        """A control group with a quota of processors, and a group without one inside it."""
        if (GROUPS / "cpu" / "cgroup.procs").exists():
            base, limits = GROUPS / "cpu", {"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": int(processors * 100_000)}
        else:
            base, limits = GROUPS, {"cpu.max": f"{int(processors * 100_000)} 100000"}
        group = base / f"penstock-test-{os.getpid()}"
        inner = group / "inner"
        try:
            try:
                inner.mkdir(parents=True)
                for name, limit in limits.items():
                    (group / name).write_text(str(limit))
            except OSError as error:
                self.skipTest(f"no control group can be made here: {error}")
            yield group, inner
        finally:
            for folder in (inner, group):
                for _ in range(100):  # its last process may still be ending
                    try:
                        folder.rmdir()
                    except FileNotFoundError:
                        break
                    except OSError:
                        time.sleep(0.05)

    def in_group(self, group, *words):
        return self.run_after(["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"], *words)

    def test_a_quota_of_this_group_or_a_parent_is_found(self):
        for processors in (0.3, 1.5):
            with self.subTest(processors), self.limited_group(processors) as groups:
                for group in groups if (GROUPS / "cpu").exists() else groups[1:]:  # version 2 allows processes in the innermost group alone
                    [record] = map(json.loads, self.in_group(group, "read", "pics", *QUICK, "--json").stdout.splitlines())
                    self.assertAlmostEqual(record["environment"]["cgroup"]["cpus"], processors, delta=0.01)

    def test_steps_whose_work_was_measured_under_a_quota_are_no_steps(self):
        with self.limited_group(0.05) as (_, inner):
            done = self.in_group(inner, "train", "stream", "--data", "pics", "--batch", 4, "--epochs", 2, "--accelerator", "emulated:step=5ms,burn=cpu:1", "--json")
        record = json.loads(done.stdout)
        self.assertEqual(record["verdict"], "client_bound")
        if record["metrics"]["step_overshoot"]["value"] < -0.1:
            self.assertIn("early", record["reason"])

    def test_threads_by_default_are_no_more_than_the_quota(self):
        with self.limited_group(0.3) as (_, inner):
            done = self.in_group(inner, "train", "alexnet", "--data", "pics", "--batch", 4, "--steps", 2, "--accelerator", "emulated:step=10ms", "--json")
        self.assertEqual(json.loads(done.stdout)["parameters"]["threads"], 1)

    def without_rights(self):
        """What starts a program without root's rights, which has no limit of locked memory."""
        prepare = ["setpriv", f"--reuid={os.getuid() or 65534}", f"--regid={os.getgid() or 65534}", "--clear-groups"] if os.geteuid() == 0 else []
        if prepare and not shutil.which("setpriv"):
            self.skipTest("no setpriv here")
        self.dir.chmod(0o755)
        (self.dir / "res").mkdir()
        (self.dir / "res").chmod(0o777)
        return prepare

    def test_rings_without_registered_buffers_are_named(self):
        prepare = self.without_rights()
        words = ["read", f"uring:{self.dir}/pics", "--threads", 2, "--depth", 32, *QUICK[2:], "--no-config", "--results", self.dir / "res"]
        # The limit is that of the user, so other programs of the same user may leave too little for the ring itself.
        recorded = self.run_after([*prepare, "sh", "-c", 'ulimit -l 64 && exec "$@"', "sh"], *words, "--json", expect=None)
        if recorded.returncode != 0 or not re.search("regist", json.dumps(json.loads(recorded.stdout)["tiers"])):
            self.skipTest("buffers are registered here, or there is no io_uring")
        self.assertRegex(recorded.stderr, "regist")

    def wait_for(self, is_so):
        end = time.monotonic() + penstock_cli.PATIENCE_S
        while not is_so():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_stop_is_not_taken_for_the_work(self):
        process = self.start("train", "stream", "--data", "pics", "--batch", 1, "--steps", 60, "--accelerator", "emulated:step=50ms", "--json",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.wait_for(lambda: len(list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())) > 1)
        process.send_signal(signal.SIGSTOP)
        self.wait_for(lambda: ") T " in pathlib.Path(f"/proc/{process.pid}/stat").read_text())
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        [record] = map(json.loads, out.splitlines())
        self.assertEqual((record["verdict"], record["environment"]["continued"]), ("client_bound", 1), err)

    @unittest.skipIf(penstock_cli.SANITIZED, "a sanitizer's runtime locks memory of its own")
    def test_rings_without_memory_name_the_limit(self):
        prepare = self.without_rights()
        words = ["read", f"uring:{self.dir}/pics", "--threads", 8, "--depth", 256, *QUICK[2:], "--no-config", "--results", self.dir / "res"]
        done = self.run_after([*prepare, "sh", "-c", 'ulimit -l 16 && exec "$@"', "sh"], *words, expect=None)
        if done.returncode == 0 and "Cannot allocate memory" not in done.stderr:
            self.skipTest("rings take no locked memory here, or there is no io_uring")
        self.assertIn("ulimit -l", done.stderr)

    def test_no_stage_is_the_bottleneck_of_a_busy_accelerator(self):
        for _ in range(5):
            done = self.run_cli("train", "stream", "--data", "pics", "--steps", 5, "--batch", 1, "--threads", 1, "--prefetch", 10, "--accelerator",
                                "emulated:step=100ms", "--results", "res")
            [file] = (self.dir / "res").glob("*.jsonl")
            [record] = penstock_cli.stored(file)
            file.unlink()
            if record["metrics"]["accelerator_utilization"]["value"] > 0.97:
                break
        else:
            self.skipTest("the machine is too busy: the accelerator had to wait")
        blamed = [line for line in done.stdout.splitlines() if "bottleneck" in line and re.search(STAGES, line)]
        self.assertEqual([line for line in blamed if not re.search(r"accelerator is the bottleneck|\bno\b|\bnot\b", line, re.IGNORECASE)], [])


if __name__ == "__main__":
    penstock_cli.main()
