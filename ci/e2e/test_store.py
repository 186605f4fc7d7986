"""The results folder: complete files or none after any kill; many writers; a full disk; damage that is named; baselines."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

from messages import message
import penstock_cli


def named(err):
    """The record files that were acknowledged on stderr."""
    return [line.split("record: ", 1)[1] for line in err.splitlines() if "record: " in line]


class StoreTest(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.results = self.dir / "penstock-results"

    def corpus(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--set", "classes=2", "--out", "data", "--results", "of-generate")

    def quick(self, *more):
        """A short run that writes a record file of its own."""
        return ("read", "data", "--threads", 1, "--repeat", 1, "--min-time", "1ms", "--cache", "asis", "--no-baseline", "--no-ceiling", *more)

    def stored(self):
        """Every line of every file that reads as a record file."""
        return {file: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in self.results.glob("*.jsonl")}

    def report(self, *where, expect=0):
        return json.loads(self.run_cli("report", *(where or ["penstock-results"]), "--json", "-o", "r.html", expect=expect).stdout)


class Kills(StoreTest):
    def test_a_hundred_kills_leave_no_half_record_and_lose_no_acknowledged_one(self):
        self.corpus()
        begin = time.monotonic()
        self.run_cli(*self.quick())
        whole = time.monotonic() - begin
        acknowledged = list(self.results.glob("*.jsonl"))
        self.assertEqual(len(acknowledged), 1)
        rng = random.Random(7)
        killed = 0
        while killed < (20 if penstock_cli.SANITIZED else 100):
            process = self.start(*self.quick())
            time.sleep(rng.uniform(0, 1.1 * whole))  # where it is then does not matter: every instant must do
            process.send_signal(signal.SIGKILL)
            _, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
            killed += process.returncode == -signal.SIGKILL
            acknowledged += [self.dir / name for name in named(err)]
        self.assertEqual(len(set(acknowledged)), len(acknowledged))
        stored = self.stored()
        self.assertLessEqual(set(acknowledged), set(stored))
        for file, records in stored.items():
            self.assertEqual([(one["seal"]["line"], one["seal"]["of"]) for one in records], [(1, 1)], file)
        output = self.report()
        self.assertEqual((output["records"], output["problems"]), (len(stored), []))


class Writers(StoreTest):
    def test_two_hundred_at_once_on_one_folder(self):
        self.corpus()
        writers = 50 if penstock_cli.SANITIZED else 200
        processes, acknowledged = [self.start(*self.quick("--json")) for _ in range(writers)], []
        printed = set()
        for process in processes:
            out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
            self.assertEqual(process.returncode, 0, err)
            acknowledged += [self.dir / name for name in named(err)]
            printed |= {json.loads(line)["id"] for line in out.splitlines()}
        self.assertEqual(len(set(acknowledged)), writers)
        stored = self.stored()
        self.assertEqual(set(stored), set(acknowledged))
        self.assertEqual({record["id"] for records in stored.values() for record in records}, printed)
        self.assertEqual(len(printed), writers)
        self.assertEqual([path for path in self.results.iterdir() if path.suffix != ".jsonl"], [], "nothing else is left")
        self.assertEqual(self.report()["problems"], [])


class FullDisk(StoreTest):
    @unittest.skipUnless(os.geteuid() == 0, "mounting a small file system takes root")
    def test_what_does_not_fit_is_an_error_and_no_file(self):
        self.corpus()
        place = self.dir / "small"
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False).returncode != 0:
            self.skipTest("no file system may be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False)
        kept = 0
        while True:
            done = self.run_cli(*self.quick("--results", place), expect=None)
            if done.returncode != 0:
                break
            kept += len(named(done.stderr))
            self.assertLess(kept, 64, "the file system never gets full")
        self.assertIn(message("no-space-left"), done.stderr)
        self.assertEqual(named(done.stderr), [])
        self.assertGreater(kept, 0)
        output = self.report(place)
        self.assertEqual((output["records"], output["problems"]), (kept, []))
        self.assertEqual(len(list(place.iterdir())), kept, "nothing unfinished is left")


class Damage(StoreTest):
    def setUp(self):
        super().setUp()
        self.corpus()
        self.run_cli("read", "data", "--threads", "1,2,4", "--repeat", 1, "--min-time", "1ms", "--cache", "asis", "--no-baseline", "--no-ceiling")
        self.file, = self.results.glob("*.jsonl")
        self.lines = self.file.read_text(encoding="utf-8").splitlines()

    def test_every_line_is_a_record_with_its_seal(self):
        self.assertEqual([json.loads(line)["seal"]["line"] for line in self.lines], [1, 2, 3])
        for line in self.lines:
            self.assertEqual(json.loads(line)["schema"], 1)

    def test_stdout_has_records_alone(self):
        for record in self.records(*self.quick()):
            self.assertNotIn("seal", record)

    def test_what_changed_is_named_and_left_out(self):
        self.file.write_text("\n".join([self.lines[0], self.lines[1].replace('"threads":2', '"threads":3'), self.lines[2]]) + "\n", encoding="utf-8")
        output = self.report()
        self.assertEqual(output["records"], 2)
        self.assertEqual(len(output["problems"]), 1)
        self.assertIn(message("record-line-changed", name=self.file.name, n=2), output["problems"][0])
        self.assertIn(message("record-changed-in-page"), (self.dir / "r.html").read_text(encoding="utf-8"))

    def test_what_is_missing_is_named(self):
        self.file.write_text(self.lines[0] + "\n", encoding="utf-8")
        output = self.report()
        self.assertEqual(output["records"], 1)
        self.assertIn(message("record-lines-missing", name=self.file.name, n=2, n2=3), output["problems"][0])

    def test_joined_files_and_those_of_earlier_versions_are_read(self):
        text = self.file.read_text(encoding="utf-8")
        self.file.write_text(text + text, encoding="utf-8")
        self.assertEqual(self.report()["problems"], [])
        bare = []
        for line in self.lines:
            record = json.loads(line)
            del record["seal"]
            bare.append(json.dumps(record))
        self.file.write_text("\n".join(bare) + "\n", encoding="utf-8")
        output = self.report()
        self.assertEqual((output["records"], output["problems"]), (3, []))


class Baselines(StoreTest):
    def setUp(self):
        super().setUp()
        self.corpus()
        self.run_cli(*self.quick("--label", "run=one"))
        self.file, = self.results.glob("*.jsonl")

    def test_is_read_wherever_records_are(self):
        done = self.run_cli("baseline", "set", "main")
        self.assertIn(message("baseline-file-count", name="main", n=1), done.stdout)
        self.run_cli(*self.quick("--label", "run=two"))
        self.assertEqual(self.report("baseline:main")["records"], 1)
        self.assertEqual(self.report()["records"], 2)
        self.assertEqual(self.report(self.results / "baseline:main")["records"], 1)
        self.run_cli("baseline", "set", "main", self.results)
        self.assertEqual(self.report("baseline:main")["records"], 2)

    def test_is_listed_with_what_does_not_hold(self):
        self.run_cli("baseline", "set", "main", self.file)
        row, = [json.loads(line) for line in self.run_cli("baseline", "list", "--json").stdout.splitlines()]
        self.assertEqual((row["baseline"], row["files"], row["holds"]), ("main", [self.file.name], True))
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("\n")
        done = self.run_cli("baseline", "list", expect=1)
        self.assertIn("main", done.stdout)
        self.assertIn(message("record-file-changed", name=self.file.name), done.stderr)
        self.file.unlink()
        done = self.run_cli("report", "baseline:main", "-o", "r.html", expect=1)
        self.assertIn(message("baseline-is-stale", name="main"), done.stderr)
        self.assertIn(message("record-file-gone"), done.stderr)

    def test_is_removed_and_its_files_stay(self):
        self.run_cli("baseline", "set", "main", self.file)
        self.run_cli("baseline", "remove", "main")
        self.assertTrue(self.file.exists())
        self.assertIn(message("no-such-baseline", name="main"), self.run_cli("baseline", "remove", "main", expect=1).stderr)
        self.assertIn(message("no-such-baseline", name="main"), self.run_cli("report", "baseline:main", "-o", "r.html", expect=1).stderr)

    def test_wrong_arguments(self):
        self.assertIn(message("did-you-mean", name="set"), self.run_cli("baseline", "sett", "main", expect=2).stderr)
        self.assertIn("NAME", self.run_cli("baseline", "set", expect=2).stderr)
        self.assertIn(message("bad-baseline-name"), self.run_cli("baseline", "set", "a/b", self.file, expect=2).stderr)

    def test_setting_is_all_or_nothing(self):
        self.run_cli("baseline", "set", "main", self.file)
        before = (self.results / "baselines" / "main").read_bytes()
        rng = random.Random(3)
        for _ in range(30):
            process = self.start("baseline", "set", "main", self.file)
            time.sleep(rng.uniform(0, 0.03))
            process.kill()
            process.communicate()
            self.assertEqual(json.loads((self.results / "baselines" / "main").read_text())["files"], json.loads(before)["files"])
        self.run_cli("baseline", "list")


if __name__ == "__main__":
    penstock_cli.main()
