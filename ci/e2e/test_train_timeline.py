#!/usr/bin/env python3
"""`penstock train --timeline` from outside: the published columns, the trace for Chrome, what there is no room for, and ranks."""

import collections
import csv
import decimal
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from messages import message
import penstock_cli
from test_ranks import RanksTest, open_mpi

SAMPLES = 40
COLUMNS = ["Epoch", "Rank", "Action Name", "Action Description", "Start Time", "End Time", "Time Taken", "Process ID", "Current Thread"]
FIGURES = {"read_summed_s", "read_merged_s", "train_merged_s", "read_share", "read_train_overlap_s", "read_merged_bytes_per_s",
           "read_summed_bytes_per_s"}


def value(record, metric):
    return record["metrics"][metric]["value"]


def rows_of(path):
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        reader = csv.DictReader(file, strict=True)
        rows = list(reader)
        return reader.fieldnames, rows


def events_of(path):
    events = json.loads(path.read_text())["traceEvents"]
    return [event for event in events if event["ph"] == "X"], [event for event in events if event["ph"] == "M"]


class TimelineTest(RanksTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-timeline-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([penstock_cli.PENSTOCK, "generate", "imagenet", "--out", str(cls.made / "pictures"), "--samples", str(SAMPLES),
                        "--set", "median=8KiB", "--seed", "7", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def words(self, *args, data=None, batch=8, threads=3):
        return ("train", "alexnet", "--data", data or self.made / "pictures", "--seed", 3, "--batch", batch, "--threads", threads, *args)

    def train(self, *args, expect=0, **kwargs):
        return self.records(*self.words(*args, **kwargs), expect=expect)

    def checked(self, path):
        """The rows, of which each takes as long as it says."""
        columns, rows = rows_of(path)
        self.assertEqual(columns, COLUMNS)
        for row in rows:
            taken = decimal.Decimal(row["End Time"]) - decimal.Decimal(row["Start Time"])
            self.assertEqual(taken, decimal.Decimal(row["Time Taken"]), row)
            self.assertGreaterEqual(taken, 0)
        return rows

    def named(self, rows):
        by = collections.defaultdict(list)
        for row in rows:
            by[row["Action Name"]].append(row)
        return by


class Files(TimelineTest):
    def test_csv_has_every_sample_and_step_within_the_run(self):
        [record] = self.train("--epochs", "2", "--accelerator", "emulated:step=5ms", "--timeline", "run.csv")
        rows = self.checked(self.dir / "run.csv")
        by = self.named(rows)
        for action in ("File Read", "Load File", "Decode", "Resize"):
            self.assertEqual(len(by[action]), 2 * SAMPLES, action)
            used = collections.Counter((row["Epoch"], row["Action Description"]) for row in by[action])
            self.assertEqual(set(used.values()), {1})
        self.assertEqual(len(by["Training Iteration"]), value(record, "steps"))
        self.assertEqual(len(by["Training Step"]), value(record, "steps"))
        self.assertEqual(len(by["Global Shuffle"]), 2)
        self.assertEqual({row["Rank"] for row in rows}, {"0"})
        self.assertEqual(len({row["Process ID"] for row in rows}), 1)
        begin = min(decimal.Decimal(row["Start Time"]) for row in by["Training Iteration"])
        end = max(decimal.Decimal(row["End Time"]) for row in by["Training Iteration"])
        for row in rows:
            self.assertGreaterEqual(decimal.Decimal(row["Start Time"]), begin, row)
            self.assertLessEqual(decimal.Decimal(row["End Time"]), end, row)
        self.assertLessEqual(float(end - begin), value(record, "wall_s") + 1e-6)
        self.assertEqual(value(record, "timeline_spans"), len(rows))
        self.assertEqual(value(record, "timeline_dropped_spans"), 0)

    def test_what_is_read_is_within_what_is_loaded_in_the_same_thread(self):
        self.train("--epochs", "1", "--timeline", "run.csv")
        by = self.named(self.checked(self.dir / "run.csv"))
        loads = {row["Action Description"]: row for row in by["Load File"]}
        for action in ("File Read", "Decode", "Resize"):
            for row in by[action]:
                load = loads[row["Action Description"]]
                self.assertEqual(row["Current Thread"], load["Current Thread"])
                self.assertLessEqual(decimal.Decimal(load["Start Time"]), decimal.Decimal(row["Start Time"]))
                self.assertLessEqual(decimal.Decimal(row["End Time"]), decimal.Decimal(load["End Time"]))

    def test_the_figures_follow_from_the_rows(self):
        [record] = self.train("--epochs", "2", "--accelerator", "emulated:step=5ms", "--timeline", "run.csv")
        by = self.named(self.checked(self.dir / "run.csv"))

        def points(action):
            return sorted((decimal.Decimal(row["Start Time"]), decimal.Decimal(row["End Time"])) for row in by[action])

        def union(intervals):
            out = []
            for begin, end in intervals:
                if out and begin <= out[-1][1]:
                    out[-1][1] = max(out[-1][1], end)
                else:
                    out.append([begin, end])
            return out

        reads, steps = union(points("File Read")), union(points("Training Step"))
        both = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in reads for b in steps)
        merged = float(sum(end - begin for begin, end in reads))
        summed = float(sum(end - begin for begin, end in points("File Read")))
        self.assertAlmostEqual(value(record, "read_merged_s"), merged, 7)
        self.assertAlmostEqual(value(record, "read_summed_s"), summed, 7)
        self.assertAlmostEqual(value(record, "train_merged_s"), float(sum(end - begin for begin, end in steps)), 7)
        self.assertAlmostEqual(value(record, "read_train_overlap_s"), float(both), 7)
        self.assertAlmostEqual(value(record, "read_share"), merged / value(record, "wall_s"), 7)
        files = 2 * sum(path.stat().st_size for path in (self.made / "pictures").rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))
        self.assertAlmostEqual(value(record, "read_merged_bytes_per_s") * merged / files, 1, 6)
        self.assertAlmostEqual(value(record, "read_summed_bytes_per_s") * summed / files, 1, 6)

    def test_the_trace_has_the_same_spans(self):
        for name in ("run.csv", "run.json"):
            [record] = self.train("--epochs", "1", "--prefetch", "0", "--timeline", name, threads=1)
        rows = self.checked(self.dir / "run.csv")
        events, names = events_of(self.dir / "run.json")
        self.assertEqual(value(record, "timeline_spans"), len(events))
        counts = collections.Counter(event["name"] for event in events)
        by = self.named(rows)
        for event, action in (("read", "File Read"), ("load", "Load File"), ("decode", "Decode"), ("resize", "Resize"),
                              ("train", "Training Step"), ("iteration", "Training Iteration"), ("shuffle", "Global Shuffle")):
            self.assertEqual(counts[event], len(by[action]), event)
        self.assertEqual({event["pid"] for event in events}, {0})
        self.assertEqual({event["args"]["name"] for event in names if event["name"] == "thread_name"}, {"accelerator", "worker 0"})
        self.assertTrue(all(event["ts"] >= 0 and event["dur"] >= 0 for event in events))
        objects = {event["args"]["object"] for event in events if event["name"] == "read"}
        self.assertEqual(len(objects), SAMPLES)

    def test_names_with_commas_and_quotes(self):
        folder = self.dir / "odd"
        shutil.copytree(self.made / "pictures", folder)
        victim = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))[0]
        victim.rename(victim.with_name('a,"b" c' + victim.suffix))
        for name in ("run.csv", "run.json"):
            self.train("--scan", "--epochs", "1", "--timeline", name, data=folder)
        found = [row for row in self.checked(self.dir / "run.csv") if 'a,"b" c' in row["Action Description"]]
        self.assertEqual({row["Action Name"] for row in found}, {"File Read", "Load File", "Decode", "Resize"})
        self.assertTrue(any('a,"b" c' in event["args"].get("object", "") for event in events_of(self.dir / "run.json")[0]))

    def test_bad_samples_are_tried_and_counted(self):
        folder = self.dir / "bad"
        shutil.copytree(self.made / "pictures", folder)
        pictures = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))
        pictures[3].write_bytes(b"no picture")
        [record] = self.train("--scan", "--epochs", "1", "--on-error", "skip", "--timeline", "run.csv", data=folder, batch=4)
        self.assertEqual(value(record, "skipped_samples"), 1)
        by = self.named(self.checked(self.dir / "run.csv"))
        read, resized = ({row["Action Description"] for row in by[action]} for action in ("File Read", "Resize"))
        [bad] = read - resized
        self.assertIn(pictures[3].name, bad)
        self.assertEqual(len(by["File Read"]), len(read), "no sample is tried twice")
        self.assertEqual(len(by["Load File"]), len(read))

    def test_a_further_tier_has_a_file_of_its_own(self):
        other = self.dir / "copy"
        shutil.copytree(self.made / "pictures", other)
        self.train("--steps", "2", "--tier", f"fast=posix:{other}", "--timeline", "run.csv")
        for name in ("run.csv", "run.fast.csv"):
            self.assertEqual(len(self.named(self.checked(self.dir / name))["Training Step"]), 2)

    def test_without_it_there_is_nothing_of_it(self):
        [record] = self.train("--epochs", "1")
        self.assertFalse({name for name in record["metrics"] if "timeline" in name or name in FIGURES})


class Room(TimelineTest):
    def test_what_there_is_no_room_for_is_said(self):
        done = self.run_cli(*self.words("--epochs", "2", "--timeline", "run.csv", "--timeline-memory", "3k", "--json"))
        [record] = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertIn(message("timeline-memory-full"), done.stderr)
        dropped, kept = value(record, "timeline_dropped_spans"), value(record, "timeline_spans")
        self.assertGreater(dropped, 0)
        self.assertEqual(len(self.checked(self.dir / "run.csv")), kept)
        self.assertGreaterEqual(kept + dropped, 4 * 2 * SAMPLES)
        self.assertFalse(FIGURES & record["metrics"].keys(), "part of the spans says nothing about the run")
        self.assertEqual(record["verdict"], "ok", record["reason"])

    def test_the_report_says_what_it_came_to(self):
        self.train("--epochs", "1", "--prefetch", "2", "--accelerator", "emulated:step=2ms", "--timeline", "run.csv")
        self.run_cli("report", "penstock-results", "-o", "report.html")
        page = (self.dir / "report.html").read_text()
        self.assertIn(message("page-timeline-of-alexnet"), page)
        self.assertIn(message("waits-are-not-device-time"), page)


class Ends(TimelineTest):
    def test_a_run_that_is_stopped_leaves_its_timeline(self):
        process = self.start(*self.words("--epochs", 100000, "--accelerator", "emulated:step=10ms", "--timeline", "run.csv",
                                         "--timeline-memory", "4MiB", "--sample-log", "log", "--json"))
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        log = self.dir / "log"
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while not (log.exists() and log.stat().st_size > 0) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        [record] = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(record["verdict"], "interrupted")
        self.assertEqual(len(self.named(self.checked(self.dir / "run.csv"))["Training Step"]), value(record, "steps"))

    def test_so_does_one_that_is_stopped_before_its_training(self):
        process = self.start(*self.words("--epochs", 100000, "--accelerator", "emulated:step=10ms", "--cache", "warm", "--timeline", "run.csv",
                                         "--timeline-memory", "4MiB", "--progress", "always", "--json"))
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        output = ""
        while message("measuring-input-alone") not in output:  # it is measured for ten seconds
            more = os.read(process.stderr.fileno(), 4096).decode()
            self.assertTrue(more, output)
            output += more
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        [record] = [json.loads(line) for line in out.splitlines()]
        self.assertIn(message("failed-in-input-measurement"), record["reason"])
        self.assertEqual(self.checked(self.dir / "run.csv"), [], "a table without rows")

    def test_so_does_one_whose_back_end_hangs(self):
        [_, record] = self.train("--steps", "3", "--stall-timeout", "2s", "--tier", f"slow=posix:{self.made / 'pictures'},latency=1h",
                                 "--timeline", "run.csv", expect=1)
        self.assertEqual(record["verdict"], "timed_out", record["reason"])
        self.assertEqual(len(self.named(self.checked(self.dir / "run.csv"))["Training Step"]), 3)
        self.assertEqual(set(self.named(self.checked(self.dir / "run.slow.csv"))), {"Global Shuffle"}, "no sample came")


class Refused(TimelineTest):
    def refused(self, *args, words):
        done = self.run_cli(*self.words(*args), expect=None)
        self.assertIn(done.returncode, (1, 2))
        for word in words:
            self.assertIn(word, done.stderr)

    def test_names_that_say_no_format(self):
        self.refused("--timeline", "run.txt", words=("run.txt", ".csv", ".json"))
        self.assertFalse((self.dir / "run.txt").exists())

    def test_a_search(self):
        self.refused("--find-accelerators", "--accelerator", "emulated:step=2ms", "--timeline", "run.csv", words=("--find-accelerators",))

    def test_a_folder_that_is_not_there(self):
        self.refused("--steps", "2", "--timeline", "nowhere/run.csv", words=("nowhere/run.csv",))


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class Ranks(TimelineTest):
    def test_one_file_has_all_ranks(self):
        for name in ("run.csv", "run.json"):
            done = self.over(2, *self.words("--epochs", "1", "--accelerator", "emulated:step=3ms", "--timeline", name, "--json", batch=SAMPLES // 4))
            [record] = [json.loads(line) for line in done.stdout.splitlines()]
        rows = self.checked(self.dir / "run.csv")
        for rank in ("0", "1"):
            own = self.named([row for row in rows if row["Rank"] == rank])
            self.assertEqual(len(own["Training Step"]), value(record, "steps"))
            self.assertEqual(len({row["Process ID"] for rows_of_action in own.values() for row in rows_of_action}), 1)
        reads = self.named(rows)["File Read"]
        self.assertEqual(len(reads), SAMPLES)
        self.assertEqual(len({row["Action Description"] for row in reads}), SAMPLES)
        # One machine, one clock: the ranks' steps lie within a fraction of the run of each other.
        begins = [min(decimal.Decimal(row["Start Time"]) for row in rows if row["Rank"] == rank) for rank in ("0", "1")]
        self.assertLess(abs(begins[0] - begins[1]), 1)
        events, names = events_of(self.dir / "run.json")
        self.assertEqual({event["pid"] for event in events}, {0, 1})
        self.assertEqual(len(events), value(record, "timeline_spans"))
        self.assertEqual(len([event for event in names if event["name"] == "process_name"]), 2)
        self.assertIn("read_merged_s", record["metrics"])


if __name__ == "__main__":
    penstock_cli.main()
