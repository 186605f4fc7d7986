#!/usr/bin/env python3
"""penstock compare --base-tier A --candidate-tier B -- COMMAND: it measures both tiers in turn, goes on after a kill, and gates."""

import json
import shlex
import signal
import subprocess
import unittest

from messages import message
import penstock_cli
from sweep_case import SweepTest

READ = ("read", "data", "--threads", "1", "--min-time", "20ms", "--repeat", "1", "--no-baseline", "--no-ceiling", "--cache", "asis")
SLOW = "limit=60MB/s"


class TierGate(SweepTest):
    def setUp(self):
        super().setUp()
        self.corpus()

    def copy(self, *names):
        for name in names:
            self.run_cli("copy", "data", "--to", name)

    def gate(self, *options, base="old=posix:one", candidate="new=posix:two", command=READ, **kwargs):
        return self.run_cli("compare", "--base-tier", base, "--candidate-tier", candidate, "--seed", 3, *options, "--", *command, **kwargs)

    def rows(self, *options, **kwargs):
        lines = [json.loads(line) for line in self.gate("--json", *options, **kwargs).stdout.splitlines()]
        return {line["metric"]: line for line in lines if line.get("metric")}, lines[-1]

    def gate_name(self):
        journals = sorted((self.dir / "penstock-results").glob("sweep-compare-read-*.state"))
        return [path.name.removeprefix("sweep-").removesuffix(".state") for path in journals]

    def arm_records(self, name, arm):
        return self.records_in(f"penstock-results/{name}/{arm}")

    def test_equal_tiers_pass_and_a_slower_one_is_a_regression(self):
        self.copy("one", "two")
        rows, _ = self.rows("--pairs", 8, expect=None)
        self.assertEqual(rows["payload_bytes_per_s"]["base_samples"], 8)
        self.assertTrue(rows["payload_bytes_per_s"]["paired"])
        [name] = self.gate_name()
        pairs = [{record["pair"]["index"]: record for record in self.arm_records(name, arm)} for arm in ("base", "candidate")]
        self.assertEqual([sorted(arm) for arm in pairs], [list(range(8))] * 2)
        for number in range(8):
            one, two = pairs[0][number], pairs[1][number]
            self.assertEqual((one["pair"]["suite"], one["seed"]), (two["pair"]["suite"], two["seed"]), "a pair has one seed")
            self.assertEqual((one["tiers"]["data"]["name"], two["tiers"]["data"]["name"]), ("old", "new"))
        orders = [[run["arm"] for run in turn["runs"]] for turn in self.turns(name)]
        self.assertEqual({tuple(order) for order in orders}, {("base", "candidate"), ("candidate", "base")}, "both orders occur")
        self.assert_nothing_unfinished()

        rows, _ = self.rows("--pairs", 9, candidate=f"new=posix:two,{SLOW}", base="old=posix:one", expect=1)
        self.assertEqual(rows["payload_bytes_per_s"]["outcome"], "regression")
        self.assertLess(rows["payload_bytes_per_s"]["change"], -0.05)

    def test_too_few_pairs_are_inconclusive_and_more_are_added(self):
        self.copy("one", "two")
        self.gate("--pairs", 2, expect=3)
        [name] = self.gate_name()
        self.assertEqual(len(self.turns(name)), 2)
        self.gate("--pairs", 4, expect=3)
        self.assertEqual(len(self.turns(name)), 4, "two more, and the first two count")
        self.gate("--pairs", 4, expect=3)
        self.assertEqual(sorted(self.gate_name()), [name, name + "-2"], "a complete comparison is measured anew")

    def test_the_same_line_continues_after_ctrl_c(self):
        self.copy("one", "two")
        line = ("compare", "--base-tier", "old=posix:one", "--candidate-tier", "new=posix:two", "--seed", "3", "--pairs", "40", "--", *READ)
        process = self.start(*line)
        try:
            while not self.gate_name() or len(self.turns(self.gate_name()[0])) < 2:
                self.assertIsNone(process.poll(), "it ended before its time")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        finally:
            process.kill()
        self.assertEqual(process.returncode, 130, err)
        [name] = self.gate_name()
        done = len(self.turns(name))
        self.assertLess(done, 40)
        again = self.gate("--pairs", 40, expect=None)
        self.assertIn(message("comparison-continues", done=done, n=40), again.stderr)
        self.assertIn(again.returncode, (0, 1, 3), again.stderr)
        self.assertEqual([len(self.arm_records(name, arm)) for arm in ("base", "candidate")], [40, 40], "no run is lost or there twice")

    def test_the_plan_is_told_and_a_dry_run_measures_nothing(self):
        self.copy("one", "two")
        plan = self.gate("--pairs", 3, "--dry-run")
        lines = plan.stdout.splitlines()
        self.assertIn("3 pairs", lines[0])
        self.assertEqual([line.split()[0] for line in lines[1:]], ["base", "candidate"])
        self.assertIn("--tier old=posix:one", lines[1])
        self.assertIn("--only-tiers", lines[2])
        self.assertFalse((self.dir / "penstock-results").exists())
        self.assertIn("3 pairs", self.gate("--pairs", 3, expect=3).stderr)

    def test_a_tier_without_the_data_is_an_error_with_a_remedy_that_works(self):
        (self.dir / "my photos").mkdir()
        for number in range(8):
            (self.dir / "my photos" / f"{number}.txt").write_text("x" * 4000)
        command = ("read", "my photos", "--scan", "--types", "any", *READ[2:])
        self.run_cli("copy", "my photos", "--scan", "--types", "any", "--to", "first copy")
        tiers = {"base": f"old={self.dir}/first copy", "candidate": f"new={self.dir}/second copy"}
        refused = self.gate("--pairs", 3, command=command, expect=2, **tiers)
        [remedy] = [line for line in refused.stderr.splitlines() if "penstock copy" in line]
        words = shlex.split(remedy[remedy.index("penstock copy"):])
        self.assertEqual(words[:6], ["penstock", "copy", str(self.dir / "my photos") if words[2].startswith("/") else "my photos", "--scan", "--types", "any"])
        subprocess.run([penstock_cli.PENSTOCK, *words[1:]], cwd=self.dir, check=True, capture_output=True)
        self.gate("--pairs", 3, command=command, expect=3, **tiers)
        [name] = self.gate_name()
        self.assertEqual(len(self.turns(name)), 3, "the refused run does not count")

    def test_training_and_checkpoints_on_two_tiers(self):
        self.copy("one", "two")
        train = ("train", "alexnet", "--data", "data", "--steps", "2", "--batch", "4", "--threads", "1", "--accelerator", "none", "--cache", "asis")
        rows, _ = self.rows("--pairs", 2, command=train, expect=3)
        self.assertEqual(rows["samples_per_s"]["base_samples"], 2)
        bench = ("penstock", "checkpoint", "bench", "--payload", "1MiB", "--steps", "2", "--every", "1", "--step-time", "1ms", "--repeat", "1")
        rows, _ = self.rows("--pairs", 2, base="slow=posix:store1", candidate="fast=posix:store2", command=bench, expect=3)
        self.assertEqual(rows["checkpoint_block_s"]["base_samples"], 2)

    def test_wrong_usage_is_refused_before_anything_is_measured(self):
        self.copy("one", "two")
        for options, command, words in (((), ("verify", "data"), "read"), ((), ("generate", "imagenet"), "read"),
                                        ((), (*READ, "--tier", "x=posix:one"), "--tier"), ((), (*READ, "--results", "r"), "--results"),
                                        (("--arms", "a,b"), READ, "--arms"), ((), (*READ, "--nonsense"), "--nonsense"), ((), (), "--")):
            with self.subTest(options=options, command=command):
                self.assertIn(words, self.gate(*options, command=command, expect=2).stderr)
        both = ("--base-tier", "old=posix:one", "--candidate-tier", "new=posix:two")
        for line in (both, (*both, "read", "data"), both[:2] + ("--", *READ), both[:3] + (both[1], "--", *READ), ("--pairs", 3, "a", "b")):
            self.run_cli("compare", *line, expect=2)
        self.assertFalse((self.dir / "penstock-results").exists())

    def test_reports_of_the_gate_are_written(self):
        self.copy("one", "two")
        self.gate("--pairs", 2, "--junit", "gate.xml", "--markdown", "gate.md", expect=3)
        self.assertIn("<testsuite", (self.dir / "gate.xml").read_text(encoding="utf-8"))
        self.assertIn("2 pairs", (self.dir / "gate.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
