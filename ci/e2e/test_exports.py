"""penstock report --to csv, bmf, gha, openmetrics, parquet: what other programs read."""

import csv
import importlib.util
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import unittest

from messages import message
import penstock_cli
import synthetic_records as synthetic

METRICS = ("payload_bytes_per_s", "latency_ns_p99")  # of each synthetic record of `read`
NOTEBOOK = """
import pandas, matplotlib; matplotlib.use("agg")
frame = pandas.read_csv("numbers/records.csv")
reads = frame[(frame.command == "read") & (frame.verdict == "ok") & (frame.cache == "cold")]
table = reads.pivot(index="threads", columns="tier", values="payload_bytes_per_s_median") / 2**20
table.plot(marker="o", logx=True, ylabel="MiB/s").figure.savefig("bandwidth.png")
"""


def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


def python_with(*modules):
    """A Python that has these modules: this one, or that of ci/interop. None if there is none."""
    if all(importlib.util.find_spec(module) for module in modules):
        return sys.executable
    other = penstock_cli.SOURCE / "build" / "interop" / "bin" / "python"
    if other.exists() and subprocess.run([other, "-c", "import " + ", ".join(modules)], capture_output=True, check=False).returncode == 0:
        return str(other)
    return None


def samples_of(text):
    """Family -> its samples: (labels, value, time). Checks the form of each line of OpenMetrics text as it goes."""
    lines = text.split("\n")
    if lines[-2:] != ["# EOF", ""]:
        raise AssertionError("it does not end with # EOF")
    families, family = {}, None
    for line in lines[:-2]:
        if line.startswith("# "):
            _, kind, name, _ = line.split(" ", 3)
            if kind == "TYPE":
                if name in families:
                    raise AssertionError(f"{name} occurs twice")
                family = families[name] = []
            continue
        found = re.fullmatch(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)(?: (\d+))?', line)
        labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
        family.append((labels, float(found[3]), found[4] and int(found[4])))
    for name, family in families.items():
        if len({(labels, time) for labels, _, time in family}) != len(family):
            raise AssertionError(f"{name} has a sample twice")
    return families


class Exports(penstock_cli.CliTest):
    def export(self, to, records, *words, **kwargs):
        synthetic.write(self.dir / "runs", records)
        return self.run_cli("report", "runs", "--to", to, *words, **kwargs)

    def tables(self, records):
        self.export("csv", records, "-o", "numbers")
        return rows(self.dir / "numbers" / "records.csv"), rows(self.dir / "numbers" / "repeats.csv")

    def test_records_and_repeats_hold_the_figures_of_the_records(self):
        records = synthetic.whole_experiment() + synthetic.saving_experiment()
        table, repeats = self.tables(records)
        self.assertEqual([row["verdict"] for row in table], [record["verdict"] for record in records])
        for row, record in zip(table, records):
            for name in METRICS:
                metric = record["metrics"].get(name)
                if metric is None:
                    self.assertEqual(row[f"{name}_median"], "")
                    continue
                self.assertTrue(math.isclose(float(row[f"{name}_median"]), metric["value"]))
                self.assertEqual(float(row[f"{name}_low"]), min(metric["samples"]))
                self.assertEqual(int(row[f"{name}_n"]), len(metric["samples"]))
                self.assertEqual(row[f"{name}_unit"], metric["unit"])
                mine = [one for one in repeats if (one["record"], one["metric"]) == (record["id"], name)]
                self.assertEqual([float(one["value"]) for one in mine], metric["samples"])
                self.assertEqual([int(one["index"]) for one in mine], list(range(len(mine))))
                self.assertEqual({one["threads"] for one in mine}, {str(record["parameters"]["threads"])})
        read = table[0]
        self.assertEqual((read["tier"], read["threads"], read["cache"], read["cache_state"], read["host"], read["version"], read["command"]),
                         ("disk", "1", "cold", "cold", "bench-1", "0.1.0", "read"))
        self.assertEqual(table[-1]["tier_burst_buffer"], "fast")
        for heading in [*table[0], *repeats[0]]:
            self.assertNotRegex(heading, "disk|fast")

    def test_files_keep_their_names_when_other_sections_appear(self):
        self.export("csv", synthetic.whole_experiment(), "-o", "few")
        self.export("csv", synthetic.saving_experiment() + synthetic.rank_experiment()[:1] + synthetic.whole_experiment(), "-o", "more")
        few, more = ({path.name for path in (self.dir / folder).iterdir()} for folder in ("few", "more"))
        stable = {name for name in few if "latency" in name or "payload-over-time" in name}
        self.assertGreaterEqual(len(stable), 2)
        self.assertLessEqual(stable, more)
        self.assertFalse([name for name in more if re.match(r"(chart|table)-\d", name)])

    def test_records_without_any_chart_are_written(self):
        done = self.export("csv", [synthetic.record("generate", 1, {"recipe": "imagenet"}, {"payload_bytes_per_s": synthetic.metric("B/s", "higher", "run", 7.0)})])
        self.assertEqual({path.name for path in (self.dir / "report-csv").iterdir()}, {"records.csv", "repeats.csv"})
        self.assertIn("2 files", done.stdout)
        row, = rows(self.dir / "report-csv" / "records.csv")
        self.assertEqual(float(row["payload_bytes_per_s_median"]), 7)
        (self.dir / "empty").mkdir()
        done = self.run_cli("report", "empty", "--to", "csv", "-o", "none", expect=1)
        self.assertIn("empty", done.stderr)
        self.assertFalse((self.dir / "none").exists())

    def test_a_record_of_another_version_or_hostile_text_breaks_no_row(self):
        text = 'a,"b"\r\nc\x01'
        record = {**synthetic.read(0, "disk", 1, "cold", 400, 1200), "label": {text: text}, "reason": text}
        record["parameters"]["verdict"] = "of an option that this version does not have"
        record["metrics"]["future_s"] = synthetic.metric("s", "lower", "repeat", 1.0)
        table, _ = self.tables([record])
        self.assertEqual(table[0]["label_" + text], text)
        self.assertEqual(table[0]["reason"], text)
        self.assertEqual((table[0]["verdict"], table[0]["parameter_verdict"]), ("ok", record["parameters"]["verdict"]))

    def test_bencher(self):
        records = synthetic.whole_experiment()
        done = self.export("bmf", records)
        self.assertRegex(done.stderr, r"\b3 records .*:24: not_cold: still 14% resident", "what is left out is counted, and the first is named")
        benchmarks = json.loads((self.dir / "bmf.json").read_text(encoding="utf-8"))
        rate = next(one for one in records if one["parameters"].get("threads") == 4 and one["parameters"]["cache"] == "cold")["metrics"]["payload_bytes_per_s"]
        name, = [name for name in benchmarks if name.startswith("read/disk/threads:4/cache:cold")]
        measure = benchmarks[name]["payload_bytes_per_s"]
        self.assertTrue(math.isclose(measure["value"], rate["value"]))
        self.assertEqual((measure["lower_value"], measure["upper_value"]), (min(rate["samples"]), max(rate["samples"])))
        for measures in benchmarks.values():
            for measure in measures.values():
                self.assertLessEqual(set(measure), {"value", "lower_value", "upper_value"})
                self.assertLessEqual(measure.get("lower_value", measure["value"]), measure["value"])
                self.assertGreaterEqual(measure.get("upper_value", measure["value"]), measure["value"])

    def test_github_action_benchmark(self):
        def files():
            return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (self.dir / "report-gha").iterdir()}

        self.export("gha", synthetic.saving_experiment() + synthetic.whole_experiment())
        entries = files()
        self.assertEqual(set(entries), {"bigger-is-better.json", "smaller-is-better.json"})
        bigger, smaller = ({entry["name"].rsplit("/", 1)[1] for entry in entries[f"{side}-is-better.json"]} for side in ("bigger", "smaller"))
        self.assertIn("payload_bytes_per_s", bigger)
        self.assertIn("checkpoint_block_s", smaller)
        self.assertFalse(bigger & smaller)
        self.assertFalse((bigger | smaller) & {"checkpoint_bytes", "steps"}, "there is no better value of these")
        for entry in entries["bigger-is-better.json"] + entries["smaller-is-better.json"]:
            self.assertLessEqual({"name", "unit", "value", "extra"}, set(entry))
            self.assertIsInstance(entry["value"], float)
        self.export("gha", [synthetic.read(0, "disk", 1, "cold", 400, 1200)])
        self.assertEqual(set(files()), {"bigger-is-better.json"}, "the action fails on an empty or an old file")

    def test_failures_alone_give_no_empty_benchmarks(self):
        failed = {**synthetic.read(0, "disk", 1, "cold", 400, 1200), "verdict": "failed", "reason": "cannot open 'x'"}
        for to in ("bmf", "gha"):
            done = self.export(to, [failed], "-o", "out", expect=1)
            self.assertIn(message("no-headline-with-figures"), done.stderr)
            self.assertIn("cannot open 'x'", done.stderr)
            self.assertFalse((self.dir / "out").exists())

    def test_openmetrics(self):
        records = synthetic.whole_experiment() + synthetic.many(40)
        records[0]["label"] = {"a.b": 'quoted "text" \\ and\nlines'}
        self.export("openmetrics", records)
        text = (self.dir / "openmetrics.txt").read_text(encoding="utf-8")
        families = samples_of(text)
        self.assertEqual(len(families["penstock_result_usable"]), len({(one["id"], one["started"]) for one in records}))
        for suffix, pick in (("", lambda metric: metric["value"]), ("_low", lambda metric: min(metric["samples"]))):
            shown = sorted(value for _, value, _ in families["penstock_result_payload_bytes_per_s" + suffix])
            stored = sorted(pick(one["metrics"]["payload_bytes_per_s"]) for one in records
                            if one["verdict"] == "ok" and "payload_bytes_per_s" in one["metrics"])
            self.assertEqual(len(shown), len(stored))
            for left, right in zip(shown, stored):
                self.assertTrue(math.isclose(left, right))
        python = python_with("prometheus_client")
        if python is None:
            self.skipTest("there is no prometheus_client")
        parse = ("import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n"
                 "print(sum(len(family.samples) for family in parse(open('openmetrics.txt').read())))")
        done = subprocess.run([python, "-c", parse], cwd=self.dir, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(int(done.stdout), sum(map(len, families.values())))

    def test_parquet_is_not_pretended(self):
        done = self.export("parquet", synthetic.whole_experiment(), expect=77)
        self.assertIn(message("parquet-not-written"), done.stderr)
        self.assertEqual([path.name for path in self.dir.iterdir()], ["runs"])
        line, = re.findall(r"penstock report runs --to csv .*", done.stderr)
        csv_part, convert = line.split(" && ", 1)
        self.run_cli(*csv_part.split()[1:])
        python = python_with("pandas", "pyarrow")
        if python is None:
            self.skipTest("there is no pandas with pyarrow")
        script = re.fullmatch(r'python3 -c "(.*)"', convert)[1]
        subprocess.run([python, "-c", script], cwd=self.dir, check=True)
        self.assertEqual((self.dir / "records.parquet").read_bytes()[:4], b"PAR1")

    def test_a_notebook_draws_bandwidth_in_five_lines(self):
        python = python_with("pandas", "matplotlib")
        if python is None:
            self.skipTest("there is no pandas with matplotlib")
        self.tables(synthetic.whole_experiment())
        script = NOTEBOOK + 'print(table.loc[8, "disk"], table.shape)'
        done = subprocess.run([python, "-c", script], cwd=self.dir, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rate, shape = done.stdout.split(" ", 1)
        record = next(one for one in synthetic.whole_experiment()
                      if (one["parameters"].get("tier"), one["parameters"]["threads"], one["parameters"]["cache"]) == ("disk", 8, "cold"))
        self.assertTrue(math.isclose(float(rate), record["metrics"]["payload_bytes_per_s"]["value"] / 2**20))
        self.assertEqual(shape.strip(), "(5, 2)")
        self.assertEqual((self.dir / "bandwidth.png").read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    penstock_cli.main()
