"""penstock report: what it writes and what it refuses. test_report_page.py opens the page."""

import csv
import io
import json
import os
import re
import signal

from messages import message
import synthetic_records as synthetic
from penstock_cli import CliTest, main


class Report(CliTest):
    def report(self, records, *words, **kwargs):
        synthetic.write(self.dir / "runs", records)
        return self.run_cli("report", "runs", "-o", "r.html", *words, **kwargs)

    def test_writes_one_page_and_says_the_findings(self):
        done = self.report(synthetic.whole_experiment())
        self.assertIn("disk stops scaling at 4 threads", done.stdout)
        self.assertIn(message("prefetch-hid-waiting", n=97), done.stdout)
        page = (self.dir / "r.html").read_text()
        self.assertIn("disk stops scaling at 4 threads", page)
        self.assertEqual([path.name for path in self.dir.iterdir() if path.name != "runs"], ["r.html"])

    def test_saves_by_arm(self):
        done = self.report(synthetic.saving_experiment(), "--units", "si")
        self.assertIn("Saving alexnet-adam through fast (volatile) blocks the training 5.00x shorter than straight to disk", done.stdout)
        self.assertIn(message("pairs-range-of-speedup", n=3), done.stdout)
        self.assertIn("(2400 and 420.0 MB/s) would allow 5.71x shorter", done.stdout)
        self.assertIn("drained to disk at 378.0 MB/s, 90% of its ceiling; for 75% of that time", done.stdout)
        self.assertIn(message("checkpoint-slowed-step", n=12), done.stdout)
        for absent in ("skipped", "failed", "ceilings are left out"):
            self.assertNotIn(absent, done.stdout)
        page = (self.dir / "r.html").read_text()
        self.assertIn('id="checkpoints"', page)
        self.assertNotIn('id="other"', page)
        self.assertIn(message("training-held-up-shorter"), page)

    def test_json_names_page_records_and_problems(self):
        synthetic.write(self.dir / "runs", synthetic.whole_experiment())
        with open(self.dir / "runs" / "20261120T090000Z-read-00c0ffee.jsonl", "a") as file:
            file.write('{"schema": 1, "id": "cut sho')
        done = self.run_cli("report", "runs", "-o", "r.html", "--json")
        line = json.loads(done.stdout)
        self.assertEqual(line["report"], "r.html")
        self.assertEqual(line["records"], len(synthetic.whole_experiment()))
        self.assertEqual(len(line["problems"]), 1)
        self.assertIn("00c0ffee.jsonl:27: not a record", done.stderr)
        self.assertIn("00c0ffee.jsonl:27: not a record", (self.dir / "r.html").read_text())

    def test_three_sentences_come_first(self):
        done = self.report(synthetic.rank_experiment())
        line = json.loads(self.run_cli("report", "runs", "-o", "r.html", "--json").stdout)
        self.assertEqual(len(line["bottom_line"]), 3)
        self.assertEqual(done.stdout.splitlines()[:3], line["bottom_line"])
        best = max(one["metrics"]["payload_bytes_per_s"]["value"] for one in synthetic.rank_experiment()) / 1048576
        self.assertRegex(re.sub(r"(?<=\d)[ ,](?=\d)", "", line["bottom_line"][1]), f"{best:.0f} MiB/s .8 ranks of 2 threads")
        page = (self.dir / "r.html").read_text()
        tile, = re.findall(r'class="tile-value">([^<]+)<', page)
        self.assertEqual(re.sub("[ ,]", "", tile), f"{best:.0f}")

    def test_probes_have_a_section_and_say_which_tier_is_slower(self):
        done = self.report(synthetic.probe_experiment())
        self.assertTrue(done.stdout.startswith("disk is the slower tier in 6 of 6 kinds of work"), done.stdout)
        page = (self.dir / "r.html").read_text()
        section, = re.findall(r'<section id="probe".*?</section>', page, re.DOTALL)
        self.assertGreater(section.count("noisy"), 3)
        self.assertLess(section.count("<tr>"), 30)
        self.run_cli("report", "runs", "--to", "csv", "-o", "numbers")
        self.assertTrue([path.name for path in (self.dir / "numbers").iterdir() if "against-depth" in path.name])

    def test_generating_has_a_section(self):
        records = [one for one in synthetic.whole_experiment() if one["command"] == "generate"]
        self.report(records)
        page = (self.dir / "r.html").read_text()
        self.assertIn('id="generating"', page)
        self.assertNotIn('id="other"', page)

    def test_records_that_lie_deeper_are_named(self):
        synthetic.write(self.dir / "runs" / "s" / "base", synthetic.whole_experiment())
        self.assertIn("runs/s/base", self.run_cli("report", "runs", expect=1).stderr)

    def test_rounds_of_a_sweep_stand_together(self):
        rounds = [synthetic.read(number, "disk", threads, "warm", rate, 400, noise=0, repeats=1, label={"sweep": "s"})
                  for number, (threads, rate) in enumerate([(1, 100), (2, 190), (2, 210), (1, 104), (1, 102), (2, 200)])]
        done = self.report(rounds)
        self.assertIn(message("page-written-with-rounds", n=6, n2=2), done.stdout)
        self.assertIn(message("speedup-over-one-thread", n=1), done.stdout)
        line = json.loads(self.run_cli("report", "runs", "-o", "r.html", "--json").stdout)
        self.assertEqual(line["records"], 6)

    def test_card_table_and_what_changed_have_one_figure_of_all_runs(self):
        def runs(first, rates):
            return [synthetic.read(first + i, "disk", 1, "cold", rate, 400, noise=0, repeats=3) for i, rate in enumerate(rates)]

        rates = [151.5, 149.8, 139.5, 150.2, 145.1, 150.6, 141.3]
        synthetic.write(self.dir / "monday", runs(50, [200] * 7))
        synthetic.write(self.dir / "tuesday", runs(0, rates) + [synthetic.read(20, "disk", 2, "cold", 100, 400, noise=0)])
        done = self.run_cli("report", "tuesday", "--baseline", "monday", "-o", "r.html")
        page = (self.dir / "r.html").read_text()
        tile, = re.findall(r'class="tile-value">([^<]+)<', page)
        self.assertEqual(tile, "149.8")
        reading, = re.findall(r'<section id="reading".*?</section>', page, re.DOTALL)
        self.assertIn(">149.8<", reading)
        changes, = re.findall(r'<section id="changes".*?</section>', page, re.DOTALL)
        self.assertIn(">149.8 MiB/s<", changes)
        self.assertIn(message("repeats-of-several-runs", n=7), done.stdout)

    def test_units(self):
        self.report(synthetic.whole_experiment(), "--units", "si")
        page = (self.dir / "r.html").read_text()
        self.assertIn("MB/s", page)
        self.assertNotIn("MiB/s", page)

    def test_the_numbers_of_every_picture_as_files(self):
        synthetic.write(self.dir / "runs", synthetic.whole_experiment() + synthetic.grid_experiment() + synthetic.saving_experiment())
        self.run_cli("report", "runs", "--to", "csv", "-o", "numbers")
        files = {path.name: list(csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))) for path in (self.dir / "numbers").iterdir()}
        for words in ("bandwidth-against-threads", "latency-against-threads", "payload-over-time", "one-step-computing-and-waiting",
                      "where-the-time-went", "stages-of", "how-long-a-save-blocks", "written-saved", "steps-saved"):
            self.assertTrue([name for name in files if words in name], words)
        for name, rows in files.items():
            self.assertGreaterEqual(len(rows), 2, name)
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, name)
        rows = next(rows for name, rows in files.items() if "bandwidth-against-threads-cold" in name)
        self.assertEqual([row[0] for row in rows], ["threads", "1", "2", "4", "8", "16"])
        record = next(one for one in synthetic.whole_experiment()
                      if one["command"] == "read" and one["parameters"] == {**one["parameters"], "tier": "disk", "threads": 4, "cache": "cold"})
        rate = record["metrics"]["payload_bytes_per_s"]
        self.assertAlmostEqual(float(rows[3][1]), rate["value"] / 1048576)
        self.assertAlmostEqual(float(rows[3][2]), min(rate["samples"]) / 1048576)
        self.assertEqual(rows[3][4], "lowest to highest")
        self.assertFalse((self.dir / "report.html").exists())

    def test_a_baseline_says_what_changed(self):
        old = synthetic.with_pairs({"one": 1000})
        new = synthetic.with_pairs({"one": 800}, suite="other")
        for folder, records in (("monday", old), ("tuesday", new)):
            for one in records:
                one.pop("pair")
            synthetic.write(self.dir / folder, records)
        output = self.run_cli("report", "tuesday", "--baseline", "monday", "-o", "r.html").stdout
        self.assertRegex(output, "^From monday to tuesday: 1 regression")
        page = (self.dir / "r.html").read_text()
        self.assertIn("From monday to tuesday: ", page)
        self.assertRegex(page, r"worse: [^.]*payload_bytes_per_s \u2212(19|20|21)%")
        self.assertIn(message("drift-not-excluded"), page)
        self.run_cli("report", "tuesday", "-o", "alone.html")
        self.assertNotIn('id="changes"', (self.dir / "alone.html").read_text())
        done = self.run_cli("report", "tuesday", "--baseline", "nowhere", "-o", "n.html", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nowhere", done.stderr)
        self.assertFalse((self.dir / "n.html").exists())

    def test_arms_of_one_set_are_held_against_each_other(self):
        synthetic.write(self.dir / "runs", synthetic.with_pairs({"base": 1000, "fast": 1300}))
        self.run_cli("report", "runs", "-o", "r.html")
        page = (self.dir / "r.html").read_text()
        self.assertIn("From base to fast: ", page)
        self.assertRegex(page, r"better: [^.]*payload_bytes_per_s \+(29|30|31)%")

    def test_no_records_names_what_was_searched(self):
        (self.dir / "runs").mkdir()
        done = self.run_cli("report", "runs", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn(message("no-records-in-folder", name="runs"), done.stderr)
        self.assertFalse((self.dir / "report.html").exists())

    def test_missing_results_are_named(self):
        done = self.run_cli("report", "nowhere", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("nowhere", done.stderr)
        done = self.run_cli("report", expect=None)
        self.assertIn("penstock-results", done.stderr)

    def test_unwritable_target_leaves_nothing(self):
        synthetic.write(self.dir / "runs", synthetic.whole_experiment())
        done = self.run_cli("report", "runs", "-o", "no/such/folder/r.html", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("no/such/folder/r.html", done.stderr)
        (self.dir / "taken").mkdir()
        done = self.run_cli("report", "runs", "-o", "taken", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["runs", "taken"])

    def test_control_c_leaves_no_page(self):
        whole = synthetic.write(self.dir / "runs", synthetic.whole_experiment())
        pipe = self.dir / "slow.jsonl"
        os.mkfifo(pipe)
        for how in (signal.SIGINT, signal.SIGTERM):
            process = self.start("report", pipe, "-o", "r.html")
            with open(pipe, "wb") as file:  # opens once the other end reads: it is in the middle now
                file.write(whole.read_bytes())
                process.send_signal(how)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (128 + how, ""), err)
            self.assertNotIn("error", err)
            self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["runs", "slow.jsonl"])

    def test_unknown_option(self):
        done = self.run_cli("report", "--outptu", "x", expect=2)
        self.assertIn("--output", done.stderr)


if __name__ == "__main__":
    main()
