#!/usr/bin/env python3
"""Records that differ in one option of role work: report shows both, and compare names the option. Records of 626686a do not list their work:
report and compare read them as before."""

import copy
import csv
import json
import shutil

import synthetic_records as synthetic
from penstock_cli import SOURCE, CliTest, main, stored

KEPT = SOURCE / "ci" / "e2e" / "kept_records"


def other(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, list):
        return [*value, value[-1] + 1 if value and isinstance(value[0], int) else "other"]
    return 7 if value is None else value + "-other"


class Work(CliTest):
    def corpus(self):
        self.run_cli("generate", "imagenet", "--out", "data", "--samples", 12, "--seed", 3)

    def one_record(self, command, *words):
        self.run_cli(command, *words, "--seed", 3, "--results", f"of-{command}")
        return stored(*(self.dir / f"of-{command}").glob("*.jsonl"))[0]

    def numbers_of(self, *records):
        """How many numbers the report's charts and tables hold, without the list of all records."""
        synthetic.write(self.dir / "set", list(records))
        if records[0]["command"] == "tiers":  # they have no chart: each is a row
            self.run_cli("report", "set", "-o", "r.html")
            return (self.dir / "r.html").read_text(encoding="utf-8").count("<td")
        shutil.rmtree(self.dir / "csv", ignore_errors=True)
        self.run_cli("report", "set", "--to", "csv", "-o", "csv")
        count = 0
        for path in (self.dir / "csv").glob("*.csv"):
            if path.stem != "records":
                with open(path, encoding="utf-8", newline="") as file:
                    count += sum(1 for row in list(csv.reader(file))[1:] for field in row if field)
        return count

    def compared(self, one, two):
        """What compare prints about two records."""
        for side, record in (("one", one), ("two", two)):
            synthetic.write(self.dir / side, [record])
        done = self.run_cli("compare", "one", "two", "--json", expect=None)
        return done.stdout + done.stderr

    def check_each(self, record):
        work = record["work"]
        self.assertGreater(len(work), 5)
        alone = self.numbers_of(record)
        same = self.compared(record, record)
        for name in work:
            changed = copy.deepcopy(record)
            changed["id"] = record["id"].rpartition("-")[0] + "-77"
            changed["parameters"][name] = other(record["parameters"][name])
            with self.subTest(command=record["command"], option=name):
                self.assertGreater(self.numbers_of(record, changed), alone)
                self.assertGreater(self.compared(record, changed).count(name), same.count(name))

    def test_of_read(self):
        self.corpus()
        self.check_each(self.one_record("read", "data", "--threads", 1, "--repeat", 1, "--min-time", "10ms"))

    def test_of_train(self):
        self.corpus()
        self.check_each(self.one_record("train", "alexnet", "--data", "data", "--steps", 2, "--batch", 4, "--accelerator", "emulated:step=1ms"))

    def test_of_tiers(self):
        (self.dir / "tier").mkdir()
        self.check_each(self.one_record("tiers", "--tier", "tier", "--probe", "--min-time", "10ms", "--repeat", 1, "--probe-size", "1MiB",
                                        "--blocks", "64KiB", "--depths", 1, "--threads", 1))

    def test_of_checkpoint(self):
        self.check_each(self.one_record("checkpoint", "bench", "slow", "--burst-buffer", "fast", "--payload", "1MiB", "--steps", 2, "--every", 2,
                                        "--step-time", "1ms", "--repeat", 1))

    def test_of_a_save(self):
        self.check_each(self.one_record("checkpoint", "save", "slow", "--burst-buffer", "fast", "--payload", "64KiB"))


class Older(CliTest):
    def test_are_read_as_they_were(self):
        paths = sorted(KEPT.glob("*.jsonl"))
        self.assertGreater(len(paths), 0)
        for path in paths:
            records = stored(path)
            self.assertNotIn("work", records[0])
            with self.subTest(command=records[0]["command"]):
                line = json.loads(self.run_cli("report", path, "-o", "r.html", "--json").stdout)
                self.assertEqual((line["records"], line["problems"]), (len(records), []))
                for side in ("one", "two"):
                    synthetic.write(self.dir / side, [{**record, "id": f"{side}-{number}"} for number, record in enumerate(records)])
                done = self.run_cli("compare", "one", "two", "--json", expect=None)
                lines = [json.loads(line) for line in done.stdout.splitlines()]
                compared = [line for line in lines if line["kind"] == "row"]
                self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: too few samples to tell
                self.assertGreater(len(compared), 0)
                self.assertNotIn("missing", {line["outcome"] for line in compared})

    def test_options_of_other_subcommands_tell_nothing(self):
        """Records of `checkpoint bench` once had the options of all subcommands."""
        older, = stored(KEPT / "checkpoint.jsonl")[:1]
        others = {"wait": "durable", "step": None, "timeout_s": None}
        self.assertEqual(older["parameters"]["wait"], others["wait"])
        newer = copy.deepcopy(older)
        del newer["parameters"]["wait"]
        newer["work"] = [name for name in newer["parameters"] if name not in ("burst_buffer", "repeat")]
        between = copy.deepcopy(newer)
        between["parameters"] |= others
        between["work"] = [*newer["work"], *others]
        for first in (older, between):
            for one, two in ((first, newer), (newer, first)):
                for side, record in (("one", one), ("two", two)):
                    synthetic.write(self.dir / side, [{**record, "id": f"{side}-0"}])
                done = self.run_cli("compare", "one", "two", "--json", expect=None)
                rows = [line for line in map(json.loads, done.stdout.splitlines()) if line["kind"] == "row"]
                self.assertGreater(len(rows), 0)
                self.assertNotIn("missing", {row["outcome"] for row in rows})
                for name in others:
                    self.assertNotIn(name.removesuffix("_s"), done.stdout + done.stderr)


if __name__ == "__main__":
    main()
