"""`penstock demo --quick` from outside: it ends with a report, and leaves what it says and nothing else."""

import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest

from messages import message
import penstock_cli


WHERE = ("/dev/shm", "/var/tmp", "/tmp")


def is_locked(folder):
    """Whether a process has the lock of a temporary folder."""
    try:
        with open(folder / "lock", "r+", encoding="utf-8") as file:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except BlockingIOError:
        return True
    except OSError:
        return False  # without its lock, or removed meanwhile
    return False


def leftovers(*more):
    """What demos left that run no more: somebody else's may run meanwhile."""
    found = (path for folder in (*WHERE, *more) for path in pathlib.Path(folder).glob("penstock-demo-*"))
    return {str(path) for path in found if not is_locked(path) and path.exists()}


class Demo(penstock_cli.CliTest):
    SMALL = ("demo", "--quick", "--samples", "128", "--progress", "never")

    def test_ends_with_a_report_and_a_tidy_folder(self):
        before = leftovers()
        done = self.run_cli(*self.SMALL, "--out", "demo", expect=None)
        self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: a busy machine may fail to be cold or warm
        out = pathlib.Path(self.dir, "demo")
        self.assertEqual({path.name for path in out.iterdir()}, {"report.html", "records", "commands.sh"})
        self.assertIn("<html", out.joinpath("report.html").read_text(encoding="utf-8"))
        records = [json.loads(line) for file in out.joinpath("records").glob("*.jsonl") for line in file.read_text().splitlines()]
        self.assertLessEqual({"generate", "read", "train"}, {record["command"] for record in records})
        self.assertEqual(leftovers() - before, set())
        self.assertIn("Report:", done.stdout)
        for line in ("penstock generate", "penstock read", "penstock train", "penstock report"):
            self.assertIn(line, out.joinpath("commands.sh").read_text(encoding="utf-8"))

    def test_refuses_a_folder_that_holds_something_else(self):
        pathlib.Path(self.dir, "mine").mkdir()
        pathlib.Path(self.dir, "mine", "thesis.txt").write_text("precious", encoding="utf-8")
        done = self.run_cli(*self.SMALL, "--out", "mine", expect=1)
        self.assertIn("--out", done.stderr)
        self.assertEqual([path.name for path in pathlib.Path(self.dir, "mine").iterdir()], ["thesis.txt"])

    def test_refuses_a_file(self):
        pathlib.Path(self.dir, "thesis.txt").write_text("precious", encoding="utf-8")
        for out in ("thesis.txt", "thesis.txt/below", "thesis.txt/far/below"):
            self.assertIn(message("out-is-a-file"), self.run_cli(*self.SMALL, "--out", out, expect=2).stderr)
        self.assertEqual(pathlib.Path(self.dir, "thesis.txt").read_text(encoding="utf-8"), "precious")

    def test_control_c_takes_the_data_away(self):
        before = leftovers()
        process = self.start("demo", "--samples", "500", "--progress", "never", "--out", "demo")
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(leftovers() - before, set())
        self.assertEqual(leftovers(pathlib.Path(self.dir, "demo")) - before, set())

    def test_what_a_killed_demo_left_is_removed_by_the_next(self):
        out = pathlib.Path(self.dir, "demo")
        before = leftovers()
        for _ in range(3):  # at any moment, also while the data are removed
            process = self.start("demo", "--quick", "--samples", "200", "--progress", "never", "--out", "demo", stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0.05, 4))
            process.kill()
            process.wait()
        done = self.run_cli(*self.SMALL, "--out", "demo", expect=None)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(leftovers(out) - before, set())
        self.assertEqual({path.name for path in out.iterdir()}, {"report.html", "records", "commands.sh"})

    def test_what_is_kept_is_not_removed_by_the_next_demo(self):
        self.run_cli(*self.SMALL, "--out", "demo", "--keep-data", "--time-limit", "1h", expect=None)
        kept = leftovers(pathlib.Path(self.dir, "demo"))
        ours = {path for path in kept if pathlib.Path(path, "data").exists()}
        self.addCleanup(lambda: [shutil.rmtree(path, ignore_errors=True) for path in ours])
        self.assertTrue(ours)
        self.run_cli(*self.SMALL, "--out", "demo", expect=None)
        self.assertTrue(all(pathlib.Path(path, "data").exists() for path in ours))

    def test_a_time_limit_leaves_steps_out_or_refuses(self):
        done = self.run_cli(*self.SMALL, "--out", "demo", "--time-limit", "1s", expect=2)
        self.assertRegex(done.stderr, r"give --time-limit \d+s")
        self.assertEqual(leftovers(pathlib.Path(self.dir, "demo")), leftovers())

    @unittest.skipIf(penstock_cli.SANITIZED, "one whole demo is enough there")
    def test_json_is_one_object(self):
        done = self.run_cli(*self.SMALL, "--out", "demo", "--json", expect=None)
        line = json.loads(done.stdout)
        self.assertTrue(os.path.exists(line["report"]))


if __name__ == "__main__":
    penstock_cli.main()
