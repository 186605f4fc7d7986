"""Limits of a process or a file system: threads, descriptors, the size of a file, memory, inodes, the umask, forbidden calls. What they end
names the object, the limit and what helps, and leaves nothing half-made."""

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time
import unittest

from checkpoint_case import CheckpointTest, NOT_DURABLE
from messages import message
import penstock_cli

SMALL = ("--payload", "1MiB")
BENCH = ("--steps", 4, "--every", 2, "--step-time", "1ms", "--repeat", 1, "--burn", 0)
PIDS = [folder for folder in (pathlib.Path("/sys/fs/cgroup/pids"), pathlib.Path("/sys/fs/cgroup")) if (folder / "cgroup.procs").exists()]
RENAMEAT2, LINK, LINKAT, CLOCK_GETTIME = {"x86_64": (316, 86, 265, 228), "aarch64": (276, 37, 37, 113)}.get(os.uname().machine, (0, 0, 0, 0))


def denied_calls():
    """The module ci/testbed/denied, whose deny() forbids system calls."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("denied", str(penstock_cli.SOURCE / "ci" / "testbed" / "denied"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("denied", loader))
    loader.exec_module(module)
    return module


@unittest.skipIf(penstock_cli.SANITIZED, "a sanitizer's own threads, memory and files would meet the limits first")
class Limits(CheckpointTest):
    def setUp(self):
        super().setUp()
        self.dir.chmod(0o777)

    def limited(self, *words, user=None, umask=None, deny=(), expect=None, timeout=120, **limits):
        """Runs `penstock WORDS` with limits (nproc=2), as the user of that number."""
        module = denied_calls() if deny else None

        def prepare():
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            for name, value in limits.items():
                resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))
            if umask is not None:
                os.umask(umask)
            if module is not None:
                module.deny(deny)

        return self.run_cli(*words, expect=expect, timeout=timeout, preexec_fn=prepare)

    def with_threads(self, threads, *words, **kwargs):
        """Runs as a user who has no other process, with that number of threads."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to run as a user without processes")
        done = self.limited(*words, user=100_000 + os.getpid() % 30_000, nproc=threads, **kwargs)
        self.assertNotIn("internal error", done.stderr)
        return done

    @contextlib.contextmanager
    def pids_group(self, most):
        """A control group with a limit of threads, as a function that runs the program in it."""
        group = PIDS[0] / f"penstock-test-{os.getpid()}" if PIDS else self.skipTest("no control groups here")
        try:
            group.mkdir()
            (group / "pids.max").write_text(str(most))
        except OSError as error:
            self.skipTest(f"no control group for threads can be made here: {error}")
        try:
            yield lambda *words: subprocess.run(["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", penstock_cli.PENSTOCK, *map(str, words)],
                                                cwd=self.dir, check=False, capture_output=True, text=True, timeout=120)
        finally:
            for _ in range(100):  # its last process may still be ending
                with contextlib.suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.05)

    def mounted(self, options, name="mount"):
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a file system")
        mount = self.dir / name
        mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", mount], capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine does not let us mount a tmpfs")
        self.addCleanup(subprocess.run, ["umount", mount], check=False)
        return mount

    def test_without_a_thread_for_the_drain_no_store_is_made(self):
        done = self.with_threads(1, "checkpoint", "save", "slow", "--burst-buffer", "fast", *SMALL, expect=1)
        self.assertIn("ulimit -u (now 1)", done.stderr)
        self.assertNotIn("fewer", done.stderr, "one thread is the least")
        self.assertEqual([name for name in ("slow", "fast") if (self.dir / name).exists()], [])

    def test_a_drain_without_threads_ends_the_save(self):
        done = self.with_threads(2, "checkpoint", "save", "slow", "--burst-buffer", "fast", *SMALL, "--on-full-timeout", "100ms", expect=NOT_DURABLE)
        self.assertIn(message("drain-tried-again", n=0), done.stderr)
        self.assertIn("ulimit -u (now 2)", done.stderr)
        again = self.subcommand("drain", "fast", "slow", "--run", "default")
        self.assertEqual([line["copied"] for line in again], [1])

    def test_a_bench_without_threads_ends_and_names_no_data_that_it_removes(self):
        for threads in (1, 2, 3):
            with self.subTest(threads):
                done = self.with_threads(threads, "checkpoint", "bench", "slow", "--burst-buffer", "fast", *SMALL, *BENCH, "--on-full-timeout", "100ms")
                if done.returncode == 0:
                    continue  # they are enough
                self.assertEqual(done.returncode, 1)
                self.assertIn("ulimit -u", done.stderr)
                self.assertNotIn("checkpoint drain", done.stderr)
                for store in ("slow", "fast"):
                    self.assertEqual(list((self.dir / store).glob("ckpt/*")), [])

    def test_a_control_group_without_threads_is_named(self):
        for most in (1, 2, 3):
            with self.subTest(most), self.pids_group(most) as run:
                done = run("checkpoint", "bench", "slow", "--burst-buffer", "fast", *SMALL, *BENCH, "--on-full-timeout", "100ms")
                self.assertNotIn("internal error", done.stderr)
                self.assertNotIn("checkpoint drain", done.stderr)
                if done.returncode != 0:
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("pids.max", done.stderr)

    def test_too_few_threads_name_the_option_for_fewer(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--seed", 1, "--set", "median=20000", "--out", "pics")
        (self.dir / "penstock-results").mkdir(exist_ok=True)
        (self.dir / "penstock-results").chmod(0o777)
        probe = ("tiers", "--tier", ".", "--probe", "--probe-size", "1MiB", "--min-time", "20ms", "--repeat", 1, "--threads", 1)
        read = ("read", "pics", "--min-time", "10ms", "--repeat", 1, "--no-baseline", "--no-ceiling")
        for words, option in ((probe, "--depths"), ((*read, "--threads", 8), "--threads"), ((*read, "--threads", 1, "--depth", 8), "--depth")):
            with self.subTest(words):
                done = self.with_threads(5, *words, "--json", expect=1)
                self.assertIn(option, done.stdout + done.stderr)
                self.assertIn("ulimit -u (now 5)", done.stdout + done.stderr)
        self.with_threads(5, *probe, "--depths", 1, expect=0)

    def test_a_limit_of_file_sizes_is_no_full_tier(self):
        for number, words in enumerate(((), ("--on-full", "skip"), ("--on-full", "writethrough"), ("--on-full-timeout", "1h"))):
            with self.subTest(words):
                done = self.limited("checkpoint", "save", f"slow{number}", "--burst-buffer", f"fast{number}", *SMALL, *words, fsize=100_000, expect=1)
                self.assertIn("ulimit -f (now 100000 bytes)", done.stderr)
                self.assertNotIn("full", done.stderr.replace("--on-full", ""))
        self.run_cli("generate", "imagenet", "--samples", 4, "--seed", 1, "--out", "pics")
        for words in (("generate", "imagenet", "--samples", 4, "--seed", 1, "--out", "more"), ("copy", "pics", "--to", "copied")):
            with self.subTest(words):
                done = self.limited(*words, fsize=20_000)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("ulimit -f", done.stderr)

    def test_a_limit_of_memory_is_named(self):
        done = self.limited("checkpoint", "bench", "slow", "--burst-buffer", "fast", "--payload", "400MiB", *BENCH, data=60_000_000, expect=1)
        self.assertIn("ulimit -d (now 60000000 bytes)", done.stderr)
        self.assertNotIn("available", done.stderr)
        self.assertIn("--payload SIZE", done.stderr)

    def test_too_few_descriptors_name_what_could_not_be_opened(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--seed", 1, "--set", "median=20000", "--out", "pics")
        for files in range(4, 12):
            for words in (("copy", "pics", "--to", f"copied{files}", "--threads", 8), ("checkpoint", "save", f"slow{files}", "--burst-buffer", f"fast{files}", *SMALL)):
                with self.subTest(words):
                    done = self.limited(*words, "--on-full-timeout", "100ms", nofile=files) if words[0] == "checkpoint" else self.limited(*words, nofile=files)
                    self.assertNotIn("cannot close", done.stderr)
                    self.assertNotEqual(done.returncode, 2, done.stderr)
                    if "Too many open files" in done.stderr:
                        self.assertIn("ulimit -n", done.stderr)

    def test_where_renaming_without_replacing_is_forbidden(self):
        if RENAMEAT2 == 0:
            self.skipTest("the numbers of the calls are not known here")
        self.run_cli("generate", "imagenet", "--samples", 4, "--seed", 1, "--set", "median=20000", "--out", "pics")
        for number, deny in enumerate(((RENAMEAT2,), (LINK, LINKAT), (RENAMEAT2, LINK, LINKAT))):
            with self.subTest(deny):
                self.limited("checkpoint", "save", f"slow{number}", "--burst-buffer", f"fast{number}", *SMALL, "--results", f"results{number}", deny=deny, expect=0)
                self.assertEqual(len(list((self.dir / f"results{number}").glob("*.jsonl"))), 1)
                self.assertEqual(self.states(f"slow{number}"), {("default", 0, 0): "durable"})
                self.limited("copy", "pics", "--to", f"copied{number}", deny=deny, expect=0)
                self.assert_same_tree("pics", f"copied{number}")

    def test_used_up_inodes_are_named(self):
        mount = self.mounted("size=50m,nr_inodes=12")
        done = self.run_cli("checkpoint", "save", mount / "slow", *SMALL, expect=1)
        self.assertIn("inodes", done.stderr)

    def test_used_up_inodes_of_the_fast_tier_are_named(self):
        ends = set()
        for inodes in (4, 8, 12, 14, 16, 60):
            fast = self.mounted(f"size=50m,nr_inodes={inodes}", name=f"fast{inodes}")
            done = self.run_cli("checkpoint", "save", f"slow{inodes}", "--burst-buffer", fast, "--on-full", "block", "--on-full-timeout", "100ms", *SMALL, expect=None)
            ends.add(done.returncode)
            if done.returncode != 0:
                self.assertIn("inodes", done.stderr, inodes)
        self.assertIn(0, ends)
        self.assertGreater(len(ends), 1)

    def test_a_snapshot_without_inodes_ends(self):
        named = 0
        for inodes, timeouts in ((14, ("0s", "300ms")), (16, ("0s", "300ms")), (18, ("0s", "300ms")), (60, ("50s",))):
            for timeout in timeouts:
                with self.subTest(inodes=inodes, timeout=timeout):
                    fast = self.mounted(f"size=50m,nr_inodes={inodes}", name=f"fast{inodes}-{timeout}")
                    done = self.run_cli("checkpoint", "bench", f"slow{inodes}-{timeout}", "--burst-buffer", fast, "--arms", "snapshot", *SMALL, *BENCH,
                                        "--on-full-timeout", timeout, expect=None, timeout=60)
                    if done.returncode != 0 and "on-full-timeout" in done.stderr:
                        self.assertIn("inodes", done.stderr)
                        named += 1
                    self.assertTrue(done.returncode == 0 or inodes < 60, done.stderr)
        self.assertGreater(named, 0)

    def test_a_clock_that_cannot_be_compared_is_said(self):
        if CLOCK_GETTIME == 0:
            self.skipTest("the numbers of the calls are not known here")
        done = self.limited("checkpoint", "save", "slow", *SMALL, deny=(CLOCK_GETTIME,), expect=0)
        self.assertIn("clock", done.stderr)

    def test_a_umask_that_denies_own_files_is_named(self):
        if os.geteuid() == 0:
            user = 100_000 + os.getpid() % 30_000
        else:
            user = None
        done = self.limited("checkpoint", "save", "slow", *SMALL, user=user, umask=0o777)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("umask 0777", done.stderr)

    def test_a_probe_of_a_tier_that_cannot_be_written_removes_nothing(self):
        mount = self.mounted("size=50m")
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        done = self.run_cli("tiers", "--tier", mount, "--probe", "--probe-size", "1MiB", "--min-time", "20ms", "--repeat", 1, expect=None)
        self.assertNotIn("could not remove", done.stderr)

    def test_only_files_are_saved_from_a_folder(self):
        for name, make in (("pipe", os.mkfifo), ("null", lambda path: os.symlink("/dev/null", path)), ("nothing", lambda path: os.symlink("nowhere", path))):
            with self.subTest(name):
                state = self.dir / "state"
                state.mkdir()
                (state / "weights").write_bytes(b"x" * 1000)
                make(state / name)
                done = self.fails(2, "save", "slow", "--from", "state", words=[name])
                self.assertNotIn("weights", done.stderr)
                shutil.rmtree(state)

    def test_a_wrong_byte_is_named_by_its_block(self):
        for bytes_saved, at, block in (("5MiB", 1000, "4.0 MiB from byte 0 on"), ("5MiB", (4 << 20) + 9, "1.0 MiB from byte 4194304 on"),
                                       ("1000", 7, "1000 B from byte 0 on")):
            with self.subTest(bytes_saved, at=at):
                self.run_cli("checkpoint", "save", "slow", "--payload", bytes_saved)
                path = self.file("slow", 0)
                data = bytearray(path.read_bytes())
                data[at] ^= 1
                path.write_bytes(data)
                wrong = self.run_cli("checkpoint", "verify", "slow", "--json", expect=1)
                self.assertIn(block, json.dumps([json.loads(line) for line in wrong.stdout.splitlines()]) + wrong.stderr)
                shutil.rmtree(self.dir / "slow")


if __name__ == "__main__":
    penstock_cli.main()
