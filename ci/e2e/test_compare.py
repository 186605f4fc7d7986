"""penstock compare: what each kind of difference ends in, and every form that it is said in."""

import copy
import itertools
import json
import os
import random
import re
import signal
import xml.etree.ElementTree as ElementTree

from messages import message
import synthetic_records as synthetic
from penstock_cli import CliTest, main

RUNS = 20
IDS = itertools.count(1)


def run(number, rate, threads=4, **more):
    """One run of `penstock read` whose rate is `rate` MiB/s, with nothing but that and a count of errors."""
    record = synthetic.read(number, "disk", threads, "cold", 100, 500, **more)
    record["id"] = f"{next(IDS):016x}-0"
    record["metrics"] = {"payload_bytes_per_s": synthetic.metric("B/s", "higher", "repeat", rate * 1048576),
                         "errors": synthetic.metric("1", "lower", "run", 0)}
    return record


def side(rate, seed, arm=None, runs=RUNS, threads=(4,)):
    rng = random.Random(seed)
    return [run(i, rate * rng.uniform(0.98, 1.02), of, **({"pair": {"suite": "s", "index": i, "arm": arm}} if arm else {}))
            for i in range(runs) for of in threads]


class Compare(CliTest):
    def write(self, name, records):
        synthetic.write(self.dir / name, records)

    def gate(self, base, candidate, *words, expect, **kwargs):
        self.write("base", base)
        self.write("new", candidate)
        return self.run_cli("compare", "base", "new", *words, expect=expect, **kwargs)

    def rows(self, base, candidate, *words, expect):
        lines = [json.loads(line) for line in self.gate(base, candidate, *words, "--json", expect=expect).stdout.splitlines()]
        self.assertEqual([line["kind"] for line in lines], ["row"] * (len(lines) - 1) + ["summary"])
        self.assertEqual(lines[-1]["exit_code"], expect)
        return lines[:-1], lines[-1]

    def row(self, base, candidate, *words, expect, metric="payload_bytes_per_s"):
        rows, summary = self.rows(base, candidate, *words, expect=expect)
        found = [row for row in rows if row["metric"] == metric]
        self.assertEqual(len(found), 1, rows)
        return found[0], summary

    # One case for each exit code and each way into it.

    def test_no_change_is_0(self):
        row, summary = self.row(side(100, 1, "base"), side(100, 2, "candidate"), expect=0)
        self.assertEqual((row["outcome"], row["paired"], row["base_samples"]), ("same", True, RUNS))
        self.assertGreater(row["detectable"], 0.05)
        self.assertEqual(summary["remarks"], [])

    def test_regression_is_1_and_better_is_0(self):
        row, _ = self.row(side(100, 1, "base"), side(90, 2, "candidate"), expect=1)
        self.assertEqual(row["outcome"], "regression")
        self.assertAlmostEqual(row["change"], -0.1, delta=0.02)
        self.assertLess(row["p"], 0.001)
        row, _ = self.row(side(90, 1, "base"), side(100, 2, "candidate"), expect=0)
        self.assertEqual(row["outcome"], "better")

    def test_unpaired_runs_are_compared_with_a_warning(self):
        row, summary = self.row(side(100, 1), side(90, 2), expect=1)
        self.assertFalse(row["paired"])
        self.assertTrue(any(remark.startswith("unpaired: drift not excluded") for remark in summary["remarks"]), summary)

    def test_too_few_is_3(self):
        for pairs in (1, 3, 6):
            row, summary = self.row(side(100, 1, "base", pairs), side(10, 2, "candidate", pairs), expect=3)
            self.assertEqual((row["outcome"], row["p"], summary["least_samples"]), ("inconclusive", None, 7))
            self.row(side(100, 1, runs=pairs), side(10, 2, runs=pairs), expect=3)
        self.row(side(100, 1, "base", 7), side(10, 2, "candidate", 7), expect=1)

    def test_missing_benchmark_is_4(self):
        rows, _ = self.rows(side(100, 1, threads=(1, 4)), side(100, 2, threads=(4,)), expect=4)
        self.assertEqual((rows[0]["outcome"], rows[0]["metric"]), ("missing", ""))
        self.assertIn("threads 1", rows[0]["cell"])

    def test_missing_metric_is_4(self):
        candidate = side(100, 2)
        for record in candidate:
            del record["metrics"]["payload_bytes_per_s"]
        self.assertEqual(self.row(side(100, 1), candidate, expect=4)[0]["outcome"], "missing")

    def test_empty_overlap_is_4(self):
        rows, summary = self.rows(side(100, 1, threads=(1,)), side(100, 2, threads=(2,)), expect=4)
        self.assertEqual(sorted(row["outcome"] for row in rows), ["added", "missing"])
        self.assertIn(message("no-common-cell"), summary["remarks"])

    def test_failed_benchmark_is_4(self):
        candidate = side(100, 2)
        candidate[5].update(verdict="failed", reason="cannot open 'x'")
        rows, _ = self.rows(side(100, 1), candidate, expect=4)
        self.assertEqual((rows[0]["outcome"], rows[0]["reason"]), ("failed", "1 of 20 runs: failed: cannot open 'x'"))

    def test_nan_is_4(self):
        candidate = side(100, 2)
        for record in candidate:
            record["metrics"]["payload_bytes_per_s"].update(samples=[None], value=None)
        self.assertEqual(self.row(side(100, 1), candidate, expect=4)[0]["outcome"], "failed")
        self.assertEqual(self.row(candidate, side(100, 1), expect=3)[0]["outcome"], "inconclusive")

    def test_one_nan_of_many_is_left_out(self):
        candidate = side(100, 2, "candidate")
        candidate[5]["metrics"]["payload_bytes_per_s"].update(samples=[None], value=None)
        row, _ = self.row(side(100, 1, "base"), candidate, expect=0)
        self.assertEqual((row["base_samples"], row["reason"]), (RUNS - 1, "1 run without a partner left out"))

    def test_zero(self):
        def stopped(arm):
            return [run(i, 0, pair={"suite": "s", "index": i, "arm": arm}) for i in range(RUNS)]
        row, _ = self.row(side(100, 1, "base"), stopped("candidate"), expect=1)
        self.assertEqual((row["outcome"], row["change"]), ("regression", -1))
        row, _ = self.row(stopped("base"), side(100, 1, "candidate"), expect=0)
        self.assertEqual((row["outcome"], row["change"]), ("better", None))
        row, _ = self.row(stopped("base"), stopped("candidate"), expect=0)
        self.assertEqual((row["outcome"], row["change"]), ("same", 0))

    def test_ties(self):
        equal = [[run(i, 100, pair={"suite": "s", "index": i, "arm": arm}) for i in range(RUNS)] for arm in ("base", "candidate")]
        row, _ = self.row(*equal, expect=0)
        self.assertEqual((row["outcome"], row["change"], row["p"]), ("same", 0, 1))

    def test_other_unit_and_direction_are_5(self):
        for field, value in (("unit", "MB/s"), ("better", "lower")):
            candidate = side(100, 2)
            for record in candidate:
                record["metrics"]["payload_bytes_per_s"][field] = value
            row, _ = self.row(side(100, 1), candidate, expect=5)
            self.assertEqual(row["outcome"], "incomparable")

    def test_other_machine_is_5_unless_asked_for(self):
        candidate = copy.deepcopy(side(100, 2))
        for record in candidate:
            record["environment"] = {**record["environment"], "host": "bench-2"}
        rows, _ = self.rows(side(100, 1), candidate, expect=5)
        self.assertEqual(rows[0]["reason"], "different host: bench-1 in the base, bench-2 in the candidate")
        self.rows(side(100, 1), candidate, "--other-machines", expect=0)

    def test_compared_are_the_headlines_of_both_sides_or_of_the_command(self):
        def compared(base_marks, candidate_marks):
            sides = [side(100, seed, arm) for seed, arm in ((1, "base"), (2, "candidate"))]
            for records, marks in zip(sides, (base_marks, candidate_marks)):
                for record in records:
                    record["metrics"]["wall_s"] = synthetic.metric("s", "lower", "repeat", 3)
                    record["metrics"]["scaling"] = synthetic.metric("1", "higher", "repeat", 1.5)
                    for name in marks:
                        record["metrics"][name]["headline"] = True
            return {row["metric"] for row in self.rows(*sides, expect=0)[0]}

        of_read = {"payload_bytes_per_s", "errors"}
        self.assertEqual(compared((), ()), of_read)
        self.assertEqual(compared((), ("wall_s",)), of_read | {"wall_s"})
        self.assertEqual(compared(("scaling",), ("wall_s",)), {"scaling", "wall_s"})

    def test_counts_are_exact(self):
        candidate = side(100, 2)
        candidate[7]["metrics"]["errors"] = synthetic.metric("1", "lower", "run", 1)
        row, _ = self.row(side(100, 1), candidate, expect=1, metric="errors")
        self.assertEqual((row["exact"], row["reason"]), (True, "1 of 20 samples differ: 1 instead of 0"))

    def test_the_gravest_decides(self):
        slower = side(80, 2, threads=(1, 4))
        self.gate(side(100, 1, threads=(1, 4)), slower, expect=1)
        self.gate(side(100, 1, threads=(1, 2, 4)), slower, expect=4)
        for record in slower:
            if record["parameters"]["threads"] == 1:
                record["metrics"]["payload_bytes_per_s"]["unit"] = "MB/s"
        self.gate(side(100, 1, threads=(1, 2, 4)), slower, expect=5)

    def test_usage_and_tool_errors_are_2(self):
        self.write("base", side(100, 1))
        (self.dir / "empty").mkdir()
        for words in ([], ["base"], ["base", "nowhere"], ["base", "empty"], ["empty", "base"], ["base", "base"], ["base", "base", "base"],
                      ["base", "base", "--arms", "a"], ["base", "base", "--metric", "nothing"], ["base", "--arms", "x,y"],
                      ["base", "empty", "--alpha", "2"], ["base", "empty", "--least-effect", "-1"], ["base", "empty", "--junit", "no/where.xml"],
                      ["--history", "base", "--junit", "x.xml"], ["--history"], ["base", "empty", "--alhpa", "1"]):
            done = self.run_cli("compare", *words, expect=2)
            self.assertTrue(done.stderr, words)
            self.assertEqual(done.stdout, "", words)

    def test_what_cannot_be_said_is_no_regression(self):
        self.write("base", side(100, 1))
        self.write("candidate", side(100, 2))
        for words in ([], ["--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = self.run_cli("compare", "base", "candidate", *words, stdout=full, expect=2)
            self.assertIn(message("comparison-not-written"), done.stderr)

    # Arms of one sweep.

    def test_arms_of_one_folder(self):
        self.write("all", side(100, 1, "base") + side(90, 2, "candidate"))
        self.run_cli("compare", "all", expect=1)
        self.run_cli("compare", "all", "--arms", "candidate,base")
        self.write("others", side(100, 1, "old") + side(90, 2, "new"))
        done = self.run_cli("compare", "others", expect=2)
        self.assertIn("'new', 'old'", done.stderr)
        self.run_cli("compare", "others", "--arms", "old,new", expect=1)

    def test_arms_in_folders_of_their_own(self):
        self.write("gate/base", side(100, 1, "base"))
        self.write("gate/candidate", side(90, 2, "candidate"))
        self.run_cli("compare", "gate", expect=1)
        self.run_cli("compare", "gate/base", "gate/candidate", expect=1)

    def test_what_arms_differ_in_is_compared(self):
        base, ahead = side(100, 1, "base"), side(90, 2, "candidate", threads=(2,))
        _, summary = self.rows(base, ahead, expect=1)
        self.assertIn("the arms differ in threads: 4 in the base, 2 in the candidate", summary["remarks"])

    def test_an_option_of_a_newer_program_changes_no_cell(self):
        candidate = side(100, 2)
        for record in candidate:
            record["parameters"] = {**record["parameters"], "brand_new": 7}
        _, summary = self.rows(side(100, 1), candidate, expect=0)
        self.assertIn("only the candidate has the parameter brand_new (7): it does not distinguish cells", summary["remarks"])

    # What it is said in.

    def test_the_table(self):
        done = self.gate(side(100, 1, "base"), side(90, 2, "candidate"), expect=1)
        self.assertRegex(done.stdout, r"read imagenet.*, disk \(posix\), threads 4, cache cold +payload_bytes_per_s +\S+ MiB/s +\S+ MiB/s +"
                                      r"-\S+% \(-\S+% to -\S+%\) +<0\.0001 +\S+% +20 pairs +REGRESSION")
        self.assertIn("1 regression", done.stdout)
        self.assertTrue(done.stdout.endswith("Regression.\n"))
        self.assertEqual(done.stderr, "")
        self.assertIn("MB/s", self.gate(side(100, 1), side(90, 2), "--units", "si", expect=1).stdout)

    def test_help_has_the_exit_codes(self):
        text = self.run_cli("compare", "--help").stdout
        for code in ("0 no regression", "1 regression", "2 usage", "3 inconclusive", "4 a benchmark is missing or failed", "5 incomparable"):
            self.assertIn(code, text)

    def mixed(self):
        base = side(100, 1, threads=(1, 2, 4, 8))
        candidate = [record for record in side(90, 2, threads=(1, 4, 8)) if record["parameters"]["threads"] != 8 or record["started"] < "2026-11-20T09:00:03"]
        candidate[0].update(verdict="failed", reason="50%\r\nof <it> \"broke\" & [this](x) | that")
        return base, candidate

    def test_junit(self):
        self.gate(*self.mixed(), "--junit", "gate.xml", expect=4)
        suite = ElementTree.parse(self.dir / "gate.xml").getroot().find("testsuite")
        cases = suite.findall("testcase")
        self.assertEqual(int(suite.get("tests")), len(cases))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            self.assertEqual(int(suite.get(attribute)), len(suite.findall(f"testcase/{tag}")), attribute)
            self.assertGreater(int(suite.get(attribute)), 0, attribute)
        done = self.run_cli("compare", "base", "new", "--junit", "no/where.xml", expect=2)
        self.assertEqual((done.stdout, "no/where.xml" in done.stderr), ("", True))
        messages = [error.get("message") for error in suite.findall("testcase/error")]
        self.assertTrue(any("50%\r\nof <it> \"broke\" & [this](x) | that" in message for message in messages), messages)

    def test_markdown(self):
        self.gate(*self.mixed(), "--markdown", "gate.md", expect=4)
        text = (self.dir / "gate.md").read_text()
        table = [line for line in text.splitlines() if line.startswith("|")]
        self.assertGreater(len(table), 4)
        self.assertEqual({len(re.findall(r"(?<!\\)\|", line)) for line in table}, {10})
        self.assertIn("of &lt;it>", text)
        self.assertTrue(text.startswith("### Missing or failed"))

    def test_github(self):
        (self.dir / "summary.md").write_text("what came before\n")
        environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(self.dir / "summary.md")}
        done = self.gate(*self.mixed(), "--github", expect=4, env=environment)
        commands = [line for line in done.stdout.splitlines() if line.startswith("::")]
        self.assertTrue(any(line.startswith("::error title=") and "50%25%0D%0Aof" in line for line in commands), commands)
        self.assertTrue(any(line.startswith("::warning title=") and "inconclusive" in line for line in commands), commands)
        for line in commands:
            title = re.match(r"::(?:error|warning) title=([^:]*)::", line)
            self.assertTrue(title and "," not in title[1], line)
        text = (self.dir / "summary.md").read_text()
        self.assertTrue(text.startswith("what came before\n### Missing or failed"))
        done = self.run_cli("compare", "base", "new", "--github", "--json", expect=4, env=environment)
        for line in done.stdout.splitlines():
            json.loads(line)
        self.assertIn("::error", done.stderr)

    def test_files_appear_whole_or_not_at_all(self):
        self.write("base", side(100, 1))
        whole = synthetic.write(self.dir / "new", side(100, 2))
        pipe = self.dir / "slow.jsonl"
        os.mkfifo(pipe)
        for how in (signal.SIGINT, signal.SIGTERM):
            process = self.start("compare", "base", pipe, "--junit", "x.xml", "--markdown", "x.md")
            with open(pipe, "wb") as file:  # opens once the other end reads: it is in the middle now
                file.write(whole.read_bytes())
                process.send_signal(how)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (128 + how, ""), err)
            self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["base", "new", "slow.jsonl"])

    def test_lines_that_are_no_records_are_named(self):
        self.write("base", side(100, 1))
        path = synthetic.write(self.dir / "new", side(100, 2))
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"schema": 1, "id": "cut sho')
        for sides in (("base", "new"), ("new", "base")):
            done = self.run_cli("compare", *sides, "--json", expect=2)
            self.assertIn("new/20261120T090000Z-read-00c0ffee.jsonl:21: not a record", done.stderr)
            self.assertEqual(done.stdout, "", "nothing is said where something may be missing")

    def test_records_of_both_sides_are_the_base_s(self):
        base, new = side(100, 1), side(50, 2)
        self.write("base", base)
        synthetic.write(self.dir / "all", base, name="20261120T090000Z-read-00c0ffee.jsonl")
        synthetic.write(self.dir / "all", new, name="20261121T090000Z-read-00c0ffef.jsonl")
        done = self.run_cli("compare", "base", "all", "--json", expect=1)
        self.assertIn(message("records-in-both-sides"), json.loads(done.stdout.splitlines()[-1])["remarks"][-1])
        self.assertIn(message("sides-are-the-same"), self.run_cli("compare", "base", "./base", expect=2).stderr)

    # Many days.

    def days(self, count, at, factor):
        rng = random.Random(5)
        records = [run(i, 100 * rng.uniform(0.98, 1.02) * (factor if i >= at else 1)) for i in range(count)]
        for i, record in enumerate(records):
            record["started"] = f"2026-{i // 28 + 1:02}-{i % 28 + 1:02}T03:00:00Z"
        rng.shuffle(records)
        return records

    def test_history_names_the_day(self):
        self.write("days", self.days(60, 40, 0.8))
        done = self.run_cli("compare", "--history", "days", "--github", "--markdown", "h.md")
        self.assertIn("since run 41 of 60 (2026-02-13T03:00:00Z, days/", done.stdout)
        self.assertIn("Advisory", done.stdout)
        self.assertEqual(len([line for line in done.stdout.splitlines() if line.startswith("::warning")]), 1)
        self.assertIn(message("change-since-run", n=41), (self.dir / "h.md").read_text())
        rows = [json.loads(line) for line in self.run_cli("compare", "--history", "days", "--json").stdout.splitlines()]
        changed = [row for row in rows if row.get("metric") == "payload_bytes_per_s"]
        self.assertEqual((changed[0]["verdict"], changed[0]["at"], changed[0]["runs"]), ("worse", 40, 60))
        self.assertEqual([row for row in rows if row.get("metric") == "errors"][0]["verdict"], "no change")

    def test_history_of_few_runs_has_no_verdict(self):
        self.write("days", self.days(29, 15, 0.5))
        rows = [json.loads(line) for line in self.run_cli("compare", "--history", "days", "--json").stdout.splitlines()]
        self.assertEqual({row["verdict"] for row in rows if row["kind"] == "series"}, {"too few runs"})


if __name__ == "__main__":
    main()
