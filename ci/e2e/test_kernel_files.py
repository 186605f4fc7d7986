"""Every file of /proc and /sys that the program reads, replaced by every kind of wrong one: what it tells is then unknown."""

import json
import os
import pathlib
import re
import subprocess

from penstock_cli import HIDE_PROC, PENSTOCK, CliTest, main

FILES = ("/proc/meminfo", "/proc/cpuinfo", "/proc/self/status", "/proc/self/io", "/proc/self/cgroup", "/proc/self/mountinfo",
         "/proc/sys/kernel/random/boot_id", "/proc/sys/vm/drop_caches", "/sys/devices/system/node/node0/cpulist",
         "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max",
         "/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
FOLDERS = ("/proc", "/sys", "/sys/fs/cgroup", "/proc/sys", "/sys/devices")
HUGE = 10**30


def hide_folder(path):
    return HIDE_PROC if path == "/proc" else f"mount -t tmpfs none {path}"


def contents(real):
    """Wrong contents for a file that has these bytes."""
    digits = re.sub(rb"[0-9]+", str(HUGE).encode(), real[:5000])
    return {"empty": b"", "garbage": b"lorem ipsum\n::\n\n-1 -1\n", "binary": bytes(range(256)) * 4, "huge numbers": digits,
            "huge": f"MemAvailable: {HUGE} kB\nread_bytes: {HUGE}\n0::/{HUGE}\n{HUGE} {HUGE}\n".encode(), "cut": real[: len(real) // 3],
            "negative": b"MemAvailable: -5 kB\nread_bytes: -5\n-5 -5\n"}


class KernelFiles(CliTest):
    def setUp(self):
        super().setUp()
        self.run_cli("generate", "imagenet", "--samples", 6, "--out", self.dir / "data")
        self.count = 0

    def hide(self, commands, *args, expect=0):
        """Runs `penstock ARGS` in a mount namespace of its own after these shell commands."""
        done = subprocess.run(["unshare", "-m", "sh", "-c", commands + ' && exec "$@"', "sh", PENSTOCK, *map(str, args)], cwd=self.dir,
                              capture_output=True, check=False, timeout=300)
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")  # fails if stdout is no UTF-8
        self.assertEqual(done.returncode, expect, out + err)
        return out

    def read(self, commands):
        self.count += 1
        out = self.hide(commands, "read", self.dir / "data", "--threads", 1, "--min-time", "20ms", "--repeat", 1, "--no-baseline",
                        "--no-ceiling", "--json", "--results", f"r{self.count}")
        return [json.loads(line) for line in out.splitlines()][-1]

    def check(self, commands, real):
        record = self.read(commands)
        for name in ("cpu", "cpus", "numa", "governor", "os"):
            self.assertIn(record["environment"].get(name, ""), (real["environment"].get(name, ""), ""), name)
        for name, limit in record["environment"]["cgroup"].items():
            if name in ("memory_bytes", "cpus"):
                self.assertEqual(limit, real["environment"]["cgroup"].get(name, limit))
                self.assertLess(limit, HUGE)
        self.assertEqual(record["environment"]["cpu_count"], real["environment"]["cpu_count"])
        self.assertGreater(record["metrics"]["payload_bytes_per_s"]["value"], 0)
        self.assertIn(record["cache"]["host"], (real["cache"]["host"], "unknown"))
        tier, real_tier = record["tiers"]["data"], real["tiers"]["data"]
        self.assertIn(tier.get("network", False), (real_tier.get("network", False),))
        for line in self.hide(commands, "tiers", "--json").splitlines():
            json.loads(line)
        self.hide(commands, "verify", self.dir / "data")
        if "cgroup/memory" not in commands:  # a smaller number there is a limit like any other
            self.hide(commands, "train", "stream", "--data", self.dir / "data", "--steps", 2, "--batch", 2,
                      "--json", "--results", "t")

    def test_files(self):
        real = self.read("true")
        bad = self.dir / "bad"
        for path in FILES:
            if not os.path.exists(path):
                continue
            try:
                original = pathlib.Path(path).read_bytes()
            except OSError:
                original = b""
            for name, content in contents(original).items():
                with self.subTest(path=path, content=name):
                    bad.write_bytes(content)
                    self.check(f"mount --bind {bad} {path.replace('self', '$$')}", real)

    def test_folders(self):
        real = self.read("true")
        for path in FOLDERS:
            if os.path.isdir(path):
                with self.subTest(path=path):
                    self.check(hide_folder(path), real)

    def test_the_host_cache_of_an_unknown_machine(self):
        for path in ("/proc/cpuinfo", "/proc", "/sys"):
            (self.dir / "bad").write_bytes(b"")
            hidden = f"mount --bind {self.dir / 'bad'} {path}" if path.endswith("info") else hide_folder(path)
            record = self.read(hidden)
            self.assertEqual(record["cache"]["host"], "unknown", path)

    def test_numa_nodes_without_sys(self):
        out = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh", PENSTOCK,
                              "read", str(self.dir / "data"), "--numa", "0", "--no-baseline", "--no-ceiling", "--repeat", "1"], cwd=self.dir,
                             capture_output=True, text=True, check=False)
        self.assertNotEqual(out.returncode, 0)
        self.assertIn("/sys/devices/system/node", out.stderr)


def lacking():
    """Why none of this can run here, or None."""
    done = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr or "no mount namespaces"


if __name__ == "__main__":
    main(lacking)
