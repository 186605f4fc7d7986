"""Time plans of long commands: what they print and record, --time-limit, one line a step in logs, and benchmarks/self/rates/plan_error.
No test asserts how long anything takes."""

import json
import os
import pathlib
import pty
import re
import subprocess
import sys

import penstock_cli
from penstock_cli import PENSTOCK, SOURCE

RANGE = r"[\d.]+(?: to [\d.]+)? (?:s|min|h)"
LONG = ("--min-time", "2s", "--repeat", 3, "--seed", 7)


class TimePlan(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.run_cli("generate", "imagenet", "--out", "data", "--samples", 64, "--seed", 7)

    def plan_of(self, *args, **kwargs):
        record = self.records(*args, **kwargs)[-1]
        return record["environment"]["plan"]

    def parts(self, plan):
        return {part["name"]: (part["asked"], part["done"]) for part in plan["parts"]}

    def lines_before_end(self, *args, until, progress="auto"):
        """Starts a long command with stderr in a pipe, kills it when a line has the word, and returns the lines until then."""
        process = self.start(*args, "--progress", progress, stdout=subprocess.DEVNULL)
        lines = []
        for line in process.stderr:
            lines.append(line)
            if until in line:
                break
        process.kill()
        process.wait()
        process.stderr.close()
        self.assertIn(until, "".join(lines))
        return lines


class Printed(TimePlan):
    def test_a_long_command_prints_each_part_before_it_starts_and_then_a_line_a_step(self):
        lines = self.lines_before_end("read", "data", "--threads", "1,2", "--cache", "cold", *LONG, until="1 thread: repeat 1 of 3")
        plan = next(at for at, line in enumerate(lines) if line.startswith("penstock: plan: "))
        self.assertRegex(lines[plan], rf"^penstock: plan: {RANGE} in all$")
        for at, part in enumerate(("warm-up", "repeats", "baseline", "ceiling"), plan + 1):
            self.assertRegex(lines[at], rf"^penstock:   {part} +\d+ +{RANGE}$")
        self.assertIn("warm-up", lines[plan + 5], "the first step comes after the plan")
        for line in lines[plan + 5:]:
            self.assertRegex(line, rf"\(about {RANGE} left\)$")
        self.assertNotRegex("".join(lines), "[\r\x1b]")

    def test_a_short_command_prints_none(self):
        done = self.run_cli("read", "data", "--threads", 1, "--min-time", "1ms", "--repeat", 1, "--no-baseline", "--no-ceiling")
        self.assertNotIn("plan", done.stderr)
        self.assertNotIn("left)", done.stderr)

    def test_never_prints_none(self):
        process = self.start("read", "data", *LONG, "--progress", "never", stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stderr.close()))
        with self.assertRaises(subprocess.TimeoutExpired):
            process.communicate(timeout=3)
        process.kill()
        self.assertEqual(process.communicate()[1].replace("\n", ""), "")

    def test_always_writes_lines_into_a_pipe_and_redraws_one_on_a_terminal(self):
        flags = ("read", "data", "--threads", 1, "--min-time", "300ms", "--repeat", 1, "--no-ceiling", "--progress", "always")
        done = self.run_cli(*flags)
        self.assertIn("penstock: read: ", done.stderr)
        self.assertNotRegex(done.stderr, "[\r\x1b]")
        terminal, side = pty.openpty()
        process = self.start(*flags, stderr=side, stdout=subprocess.DEVNULL)
        os.close(side)
        shown = b""
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:  # the end of a terminal
            pass
        os.close(terminal)
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"\r\x1b[K", shown)

    def test_of_each_measuring_command(self):
        steps = ("--steps", 2000, "--accelerator", "emulated:step=20ms")
        for until, command in (("data: input alone", ("train", "stream", "--data", "data=data", "--batch", 4, *steps)),
                               ("write.sequential", ("tiers", "--tier", "here=.", "--probe", "--probe-size", "8MiB")),
                               ("direct 1 of 3", ("checkpoint", "bench", "ckpt", "--payload", "1MiB", "--steps", 200, "--burn", 0)),
                               ("data set", ("generate", "imagenet", "--out", "more", "--samples", 20000))):
            with self.subTest(command=command):
                lines = self.lines_before_end(*command, "--seed", 7, until=until)
                self.assertTrue(any(re.search(rf"plan: {RANGE} in all", line) for line in lines), lines)


class Recorded(TimePlan):
    def test_the_record_has_the_parts(self):
        plan = self.plan_of("read", "data", "--threads", "1,2", "--min-time", "5ms", "--repeat", 2)
        self.assertEqual(self.parts(plan), {"warm-up": (1, 1), "repeats": (4, 4), "baseline": (4, 4), "ceiling": (2, 2)})
        low, high = plan["expected_s"]
        self.assertLess(0, low)
        self.assertLessEqual(low, high)
        for part in plan["parts"]:
            self.assertGreater(part["took_s"], 0, part)
        self.assertNotIn("time_limit_s", plan)

    def test_of_a_training_and_a_probe_and_a_bench(self):
        plan = self.plan_of("train", "stream", "--data", "data", "--batch", 4, "--steps", 10, "--accelerator", "emulated:step=1ms")
        self.assertEqual(self.parts(plan), {"training": (1, 1), "input alone": (2, 2)})
        plan = self.plan_of("tiers", "--tier", "here=.", "--probe", "--probe-size", "4MiB", "--min-time", "5ms", "--repeat", 1, "--threads", 1)
        self.assertTrue(all(asked == done for asked, done in self.parts(plan).values()), plan)
        self.assertIn("metadata", self.parts(plan))
        plan = self.plan_of("checkpoint", "bench", "ckpt", "--payload", "64KiB", "--steps", 4, "--every", 2, "--step-time", "1ms", "--repeat", 2)
        self.assertEqual(self.parts(plan), {"runs": (2, 2), "ceilings": (2, 2)})


class Limited(TimePlan):
    def test_the_ceiling_and_the_baseline_are_left_out_first_and_recorded(self):
        records = self.records("read", "data", "--threads", 1, "--min-time", "2s", "--repeat", 3, "--time-limit", "11s")
        plan = records[0]["environment"]["plan"]
        self.assertEqual(plan["time_limit_s"], 11)
        self.assertEqual(records[0]["parameters"]["time_limit_s"], 11)
        parts = self.parts(plan)
        self.assertEqual(parts["ceiling"], (1, 0))
        self.assertEqual(parts["repeats"][0], 3)
        self.assertGreaterEqual(parts["repeats"][1], 1)
        self.assertNotIn("ceiling_bytes_per_s", records[0]["metrics"])
        if parts["repeats"][1] < 3:
            self.assertEqual(records[0]["verdict"], "short")
            self.assertIn("--time-limit", records[0]["reason"])

    def test_what_is_left_out_is_printed_also_without_progress(self):
        done = self.run_cli("read", "data", "--threads", 1, "--min-time", "1s", "--repeat", 2, "--time-limit", "5s", "--progress", "never", expect=None)
        self.assertRegex(done.stderr, r"--time-limit 5s leaves out \d+ of \d+ ceiling")

    def test_a_limit_into_which_nothing_fits_is_refused_with_one_that_fits(self):
        for command in (("read", "data", "--threads", "1,2"),
                        ("train", "stream", "--data", "data", "--batch", 4, "--steps", 200, "--accelerator", "emulated:step=20ms"),
                        ("tiers", "--tier", "here=.", "--probe", "--probe-size", "4MiB"),
                        ("checkpoint", "bench", "ckpt", "--payload", "1MiB"),
                        ("generate", "imagenet", "--out", "more", "--samples", 5000)):
            with self.subTest(command=command):
                before = penstock_cli.tree(self.dir).keys()
                done = self.run_cli(*command, "--time-limit", "1500ms", expect=2)
                advice = re.search(r"give --time-limit (\d+)s", done.stderr)
                self.assertIsNotNone(advice, done.stderr)
                self.assertGreater(int(advice[1]), 1)
                self.assertEqual(penstock_cli.tree(self.dir).keys(), before, "nothing was started")

    def test_probes_that_are_left_out_are_named(self):
        flags = ("tiers", "--tier", "here=.", "--probe", "--probe-size", "4MiB", "--threads", 1, "--min-time", "300ms", "--repeat", 2, "--cache", "asis")
        limit = 1
        for _ in range(5):  # a machine that got busier needs more than it was advised
            done = self.run_cli(*flags, "--time-limit", f"{limit}s", "--json", expect=None)
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, 2, done.stderr)
            limit = int(re.search(r"give --time-limit (\d+)s", done.stderr)[1])
        record, = map(json.loads, done.stdout.splitlines())
        left_out = record["parameters"]["left_out"]
        self.assertIn("metadata", left_out)
        self.assertIn("--time-limit", left_out["metadata"])
        self.assertFalse(any(name.startswith("metadata.") for name in record["metrics"]))
        self.assertTrue(any(name.startswith("read.sequential.1m.1") for name in record["metrics"]))

    def test_further_tiers_of_a_training_are_left_out(self):
        self.run_cli("copy", "data", "--to", "other")
        flags = ("train", "stream", "--data", "data", "--tier", "other=other", "--batch", 4, "--steps", 100, "--accelerator", "emulated:step=30ms")
        records = self.records(*flags, "--time-limit", "5s", expect=77)
        self.assertIn(records[0]["verdict"], ("ok", "client_bound"), records[0]["reason"])
        self.assertEqual([record["verdict"] for record in records[1:]], ["skipped"])
        self.assertIn("--time-limit", records[1]["reason"])


class Sweeps(TimePlan):
    def sweep(self, repeats=2):
        text = f"name: s\ncommand: read\nnouns: [data]\nfixed: {{min-time: 30ms, repeat: 1}}\ngrid: {{threads: [1, 2]}}\nrepeats: {repeats}\n"
        (self.dir / "sweep.yaml").write_text(text, encoding="utf-8")
        return "sweep.yaml"

    def test_a_dry_run_prints_a_range_that_includes_more_than_the_repeats(self):
        done = self.run_cli("sweep", self.sweep(), "--dry-run")
        self.assertRegex(done.stdout, rf"4 of 4 turns are left, {RANGE}")
        plan, = (line for line in self.records("sweep", "sweep.yaml", "--dry-run") if line["kind"] == "plan")
        self.assertEqual(plan["turns_left"], 4)
        low, high = plan["expected_s"]
        self.assertGreater(low, 4 * 0.03 * 2, "with the baseline, the warm-up and the ceiling")
        self.assertLess(low, high)

    def test_a_line_is_logged_for_each_turn(self):
        done = self.run_cli("sweep", self.sweep())
        lines = re.findall(r"^penstock: sweep s: turn (\d) of 4, about .* left: .*threads \d", done.stderr, re.MULTILINE)
        self.assertEqual(lines, ["1", "2", "3", "4"])
        self.assertNotRegex(done.stderr, "[\r\x1b]")
        self.assertNotIn("turn", self.run_cli("sweep", self.sweep(3), "--progress", "never").stderr.replace("going on", "").replace("turns are done", ""))

    def test_a_time_limit_ends_it_early_or_refuses(self):
        self.run_cli("sweep", self.sweep(), "--time-limit", "100ms", expect=2)
        done = self.run_cli("sweep", self.sweep(500), "--time-limit", "4s")
        self.assertIn("the time limit", done.stderr)


class Script(penstock_cli.CliTest):
    def test_plan_error_compares_plans_with_what_the_commands_took(self):
        script = SOURCE / "benchmarks" / "self" / "rates" / "plan_error"
        done = subprocess.run([sys.executable, script, "--quick", "--dir", self.dir], capture_output=True, text=True, check=False,
                              env={**os.environ, "PENSTOCK": PENSTOCK})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertGreaterEqual(len(lines), 8)
        end = next(at for at, line in enumerate(lines) if re.match(r"median error of the middle: \d+% of \d+ commands$", line))
        self.assertEqual(end, 7, "a line a command")
        for line in lines[1:end]:
            self.assertRegex(line, r"^ *[\d.]+ to +[\d.]+ +[\d.]+ +\d+%  \w")
        self.assertEqual(list(pathlib.Path(self.dir).iterdir()), [])


if __name__ == "__main__":
    penstock_cli.main()
