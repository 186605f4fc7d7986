#!/usr/bin/env python3
"""`penstock stage` from outside: sessions of our reader and of a stranger's, advice, copies, links, and the way back; kills at any
instant (12, or 200 with PENSTOCK_FULL=1; PENSTOCK_SEED draws others). What is fast decides nothing but what the tiers' limits make sure.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

from messages import message
import penstock_cli
import synthetic_records as synthetic
from penstock_cli import BUILD, PENSTOCK, SANITIZED

LIBRARY = BUILD / "libpenstock_profile.so"
SEED = int(os.environ.get("PENSTOCK_SEED", "2008"))
KILLS = 200 if os.environ.get("PENSTOCK_FULL") else 12
SAMPLES = 60
SLOWLY, FAST = "limit=40MB/s,latency=4ms", "limit=400MB/s,latency=100us"  # the ratios of a disk and an Optane
BRIEF = ("--min-time", "60ms", "--repeat", "5")  # of two repeats alone, one that is stolen from leaves nothing sure
READER = """
import pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.bytes")):
    path.read_bytes()
"""


class Stage(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.dir = self.dir.resolve()
        self.corpus, self.fast = self.dir / "corpus", self.dir / "fast"
        self.fast.mkdir()
        self.slow_tier, self.fast_tier = f"slow=posix:{self.corpus},{SLOWLY}", f"fast=posix:{self.fast},{FAST}"
        self.run_cli("generate", "malware", "--out", self.corpus, "--samples", SAMPLES, "--seed", 5, "--set", "median=80kB")
        self.files = {str(path.relative_to(self.corpus)): path.stat().st_size for path in self.corpus.rglob("*.bytes")}
        self.bytes = sum(self.files.values())

    def profile(self, *command, session="session"):
        self.run_cli("profile", "run", "-o", session, "--", *command)
        return session

    def session(self, threads=1, slow=None):
        return self.profile(PENSTOCK, "read", slow or self.slow_tier, "--threads", threads, "--min-time", "0s", "--repeat", 1,
                            "--cache", "asis", "--no-baseline", "--no-ceiling", "--results", "results")

    def advise(self, *args, slow=None, fast=None, capacity=None, plan="plan.json", session="session", **kwargs):
        line, = self.records("stage", "advise", session, "--slow", slow or self.slow_tier, "--fast", fast or self.fast_tier, "--capacity",
                             capacity or self.bytes // 10, *(("-o", plan) if plan else ()), *BRIEF, *args, **kwargs)
        return line

    def advise_to_stage(self, *args, before=lambda: None, **kwargs):
        """The tiers' limits leave no doubt of it: a machine so busy that its measuring does is asked again."""
        for _ in range(6):
            before()
            advice = self.advise(*args, **kwargs)
            if advice["verdict"] == "stage":
                return advice
        self.fail(f"never sure enough to stage: {advice}")

    def planned(self, plan="plan.json"):
        return {file["name"]: file["bytes"] for file in json.loads((self.dir / plan).read_text())["files"]}

    def fails(self, *args, code=1, words=()):
        done = self.run_cli("stage", *args, expect=code)
        self.assertEqual(done.stdout, "", "diagnostics belong on stderr")
        for word in words:
            self.assertIn(str(word), done.stderr)

    def staged(self):
        """The copies that anybody can see; each of them is whole."""
        found = {str(path.relative_to(self.fast)) for path in self.fast.rglob("*")
                 if path.is_file() and ".penstock" not in path.relative_to(self.fast).parts}
        for name in found:
            self.assertEqual((self.fast / name).read_bytes(), (self.corpus / name).read_bytes(), name)
        return found

    def left(self):
        return [str(path) for path in self.fast.rglob("*")]


class FromProfileToDecision(Stage):
    def test_advise_apply_read_and_revert(self):
        self.session()
        advice = self.advise_to_stage()
        self.assertEqual(advice["kind"], "staging_advice")
        self.assertTrue(advice["session"]["by_spans"])
        self.assertEqual((advice["session"]["files"], advice["session"]["bytes"]), (SAMPLES, self.bytes))
        files = self.planned()
        self.assertEqual(len(files), advice["files"])
        self.assertTrue(all(self.files[name] == size for name, size in files.items()))
        self.assertLessEqual(sum(files.values()), self.bytes // 10)
        self.assertGreater(len(files) / SAMPLES, 2 * sum(files.values()) / self.bytes, "small files come first")
        predicted = advice["predicted"]
        self.assertTrue(0 < predicted["low"] <= predicted["gain"] <= predicted["high"], predicted)
        gains = {row["policy"]: row["gain"] for row in advice["policies"]}
        self.assertEqual(set(gains), {"density", "threshold=2MB", "best-single", "first-come"})
        self.assertGreater(gains["density"], gains["first-come"])

        line, = self.records("stage", "apply", "plan.json")
        self.assertEqual((line["kind"], line["copied"], line["verdict"]), ("staged", len(files), "ok"))
        self.assertEqual(self.staged(), set(files))
        record, = self.records("read", self.corpus, "--overlay", "plan.json", "--threads", 2, "--min-time", "0s", "--repeat", 1, "--cache", "asis",
                               "--no-baseline", "--no-ceiling", "--verify")
        self.assertEqual((record["verdict"], record["parameters"]["tier"]), ("ok", "overlay"))
        self.assertEqual([record["tiers"][role]["name"] for role in ("slow", "fast")], ["slow", "fast"])
        read = {role: record["metrics"][f"tier_bytes_read.{role}"]["value"] for role in ("slow", "fast")}
        passes = 2  # a warm-up and a repeat
        for role, size in (("fast", sum(files.values())), ("slow", self.bytes - sum(files.values()))):
            self.assertGreaterEqual(read[role], passes * size)
        self.assertEqual(read["fast"] + read["slow"], passes * self.bytes + record["environment"]["plan"]["read_bytes"])

        trained, = self.records("train", "malware", "--data", self.corpus, "--overlay", "plan.json", "--batch", 10, "--epochs", 1, "--threads", 1,
                                "--accelerator", "none", "--results", "results")
        self.assertEqual(trained["tiers"]["data"]["name"], "overlay")
        self.assertGreaterEqual(trained["metrics"]["tier_bytes_read.fast"]["value"], sum(files.values()))

        line, = self.records("stage", "revert", "plan.json")
        self.assertEqual((line["removed"], line["kept"]), (len(files), []))
        self.assertEqual(self.left(), [])
        done = self.run_cli("read", self.corpus, "--overlay", "plan.json", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("penstock stage apply", done.stderr)
        self.run_cli("verify", self.corpus)

    def test_tables_teach_and_a_plan_is_optional(self):
        self.session()
        done = self.run_cli("stage", "advise", "session", "--slow", self.slow_tier, "--fast", self.fast_tier, "--capacity", "1GiB", *BRIEF)
        # Whether the gain is sure is for the machine's noise to say: to stage, or not to.
        for word in ("the program read 60 files", "reported by the program", "slow: ", "fast: ", "policy", "first-come", "-o PLAN"):
            self.assertIn(word, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^(stage |don't stage: )")
        self.assertEqual(self.left(), [], "what was measured with is gone")

    def test_several_threads(self):
        self.session(threads=4)
        advice = self.advise()
        self.assertEqual((advice["session"]["threads"], advice["threads"]), (4, 4))
        self.assertEqual(self.advise("--threads", 2, plan=None)["threads"], 2)

    def test_policies(self):
        self.session()
        below = {name for name, size in self.files.items() if size < 40_000}
        self.assertTrue(below)
        self.advise_to_stage("--policy", "threshold=40kB", capacity="1GiB")
        self.assertEqual(set(self.planned()), below)
        self.advise_to_stage("--policy", "best-single", capacity="1GiB")
        self.assertEqual(len(self.planned()), 1)
        self.fails("advise", "session", "--slow", self.slow_tier, "--fast", self.fast_tier, "--capacity", "1GiB", "--policy", "largest", code=2,
                   words=["density"])

    def test_speeds_from_records(self):
        self.session()
        advice = self.advise_to_stage("--speeds", "speeds", before=lambda: self.run_cli(
            "tiers", "--probe", "--tier", self.slow_tier, "--tier", self.fast_tier, "--threads", 1, "--probe-size", "4MiB", "--cache", "asis",
            "--min-time", "20ms", "--repeat", 2, "--results", "speeds"))
        self.assertGreater(advice["slow"]["latency_s"], 2e-3, "of 4 ms, however the probe's best loop hides it")
        self.fails("advise", "session", "--slow", self.slow_tier, "--fast", f"fast=posix:{self.dir}/other", "--capacity", "1GiB", "--speeds",
                   "speeds", words=["penstock tiers --probe"])

    def test_nothing_to_gain_is_said(self):
        self.session(slow=f"slow=posix:{self.corpus},{FAST}")
        advice = self.advise(slow=f"slow=posix:{self.corpus},{FAST}", fast=f"fast=posix:{self.fast},{SLOWLY}")
        self.assertEqual((advice["verdict"], advice["files"]), ("don't stage", 0))
        self.assertTrue(advice["reason"])
        self.assertEqual(self.planned(), {})
        self.assertIn(message("staging-not-worth-it"), self.run_cli("stage", "apply", "plan.json").stdout)
        self.fails("advise", "none", "--slow", self.slow_tier, "--fast", self.fast_tier, "--capacity", "1GiB")
        late = self.advise("--epochs", 1, fast=f"fast=posix:{self.fast},{FAST},write_limit=1MB/s")
        self.assertEqual(late["verdict"], "don't stage")
        self.assertIn(message("staging-pays-after"), late["reason"])

    def test_what_is_in_the_page_cache_gains_nothing(self):
        self.session()
        for path in self.corpus.rglob("*"):
            if path.is_file():
                path.read_bytes()
        plain = {"slow": str(self.corpus), "fast": str(self.fast)}
        advice = self.advise(plan=None, **plain)
        if advice["session"]["cached_bytes"] < 0.99 * self.bytes:
            self.skipTest("this machine does not report its page cache, or the folder is in memory")
        self.assertEqual(advice["verdict"], "don't stage")
        self.assertIn(message("page-cache-holds-corpus"), advice["reason"])
        self.assertEqual(self.advise("--cache", "cold", plan=None, **plain)["session"]["cached_bytes"], 0)

    def test_wrong_arguments(self):
        both = ("--slow", self.slow_tier, "--fast", self.fast_tier)
        self.fails("advise", "session", "--fast", self.fast_tier, "--capacity", "1GiB", code=2, words=["--slow"])
        self.fails("advise", "session", *both, code=2, words=["--capacity"])
        self.fails("advise", *both, "--capacity", "1GiB", code=2, words=["SESSION"])
        self.fails("advise", "session", "--slow", self.dir, "--fast", self.fast, "--capacity", "1GiB", code=2, words=[message("tiers-inside-each-other")])
        for option, tier in (("--fast", f"fast=posix:{self.dir}/fsat,{FAST}"), ("--slow", self.dir / "crpus")):
            words = {"--slow": self.slow_tier, "--fast": self.fast_tier, option: tier}
            self.fails("advise", "session", *(word for pair in words.items() for word in pair), "--capacity", "1GiB", words=[message("no-folder"), option])
        self.assertFalse((self.dir / "fsat").exists(), "a mistyped folder is not made")
        self.fails("stage", code=2, words=["advise"])
        self.fails("apply", "plan.json", "--capacity", "1GiB", code=2, words=["advise"])
        self.fails("apply", "one", "two", code=2, words=["'two'"])
        self.fails("apply", "none.json", words=["none.json"])
        for subcommand in ("apply", "revert"):
            for odd in ("/dev/null", self.dir):
                self.fails(subcommand, odd, code=2, words=[message("not-a-file"), odd])
        self.session()
        self.advise()
        self.fails("advise", "session", *both, "--capacity", "1GiB", "--include", "*.jpg", words=[message("candidate-left-out"), "--include"])
        text = (self.dir / "plan.json").read_text()
        (self.dir / "plan.json").write_text(text.replace('"threads":1', '"threads":2'))
        for subcommand in ("apply", "revert"):
            self.fails(subcommand, "plan.json", words=["checksum"])
        self.profile("true", session="idle")
        self.fails("advise", "idle", *both, "--capacity", "1GiB")


class SomebodyElsesProgram(Stage):
    def test_links_lead_it_to_both_tiers(self):
        script = self.dir / "reader.py"
        script.write_text(READER)
        self.profile(sys.executable, script, self.corpus)
        advice = self.advise_to_stage()
        self.assertFalse(advice["session"]["by_spans"])
        self.assertEqual((advice["session"]["files"], advice["threads"]), (SAMPLES, 1))
        files = self.planned()
        line, = self.records("stage", "apply", "plan.json", "--link-farm", "farm")
        self.assertEqual(line["link_farm"]["to_fast"], len(files))
        farm = self.dir / "farm"
        for name in self.files:
            self.assertEqual(os.readlink(farm / name), str((self.fast if name in files else self.corpus) / name))
        done = subprocess.run(["tar", "-chf", "-", "-C", farm, "."], stdout=subprocess.PIPE, check=True)
        (self.dir / "out").mkdir()
        subprocess.run(["tar", "-xf", "-", "-C", self.dir / "out"], input=done.stdout, check=True)
        self.assert_same_tree("out", "corpus")
        subprocess.run([sys.executable, script, farm], check=True)
        self.run_cli("verify", farm)

        grown = min(files)
        with open(self.corpus / grown, "ab") as file:
            file.write(b"more")
        done = self.run_cli("stage", "apply", "plan.json", expect=1)
        self.assertIn(message("links-still-lead-to-copies", farm=farm), done.stderr)
        line, = self.records("stage", "apply", "plan.json", "--link-farm", "farm", expect=1)
        self.assertEqual((line["verdict"], line["link_farm"]["to_fast"]), ("degraded", len(files) - 1))
        for name in self.files:
            self.assertEqual(os.readlink(farm / name), str((self.fast if name in files and name != grown else self.corpus) / name))

        (farm / "mine").write_text("mine")
        line, = self.records("stage", "revert", "plan.json", expect=1)
        self.assertEqual(line["verdict"], "degraded")
        self.assertEqual([path.name for path in farm.iterdir()], ["mine"])
        self.fails("apply", "plan.json", "--link-farm", self.corpus / "farm", code=2, words=[message("farm-inside-tier")])
        self.fails("apply", "plan.json", "--link-farm", self.dir, words=[message("farm-of-another-plan")])


class Faults(Stage):
    """Of plans, not of advice: the speeds are known ones, for on a busy machine two brief repeats can lie so far apart that nothing is sure."""

    def setUp(self):
        super().setUp()
        self.session()

    def plan(self, fast=None):
        fast = fast or self.fast_tier
        records = []
        for spec, latency_s, rate in ((self.slow_tier, 4e-3, 40e6), (fast, 1e-4, 400e6)):
            known = {"read.small_files.112k.1.ops_per_s": 1 / (latency_s + 114688 / rate), "read.sequential.1m.1.bytes_per_s": rate,
                     "write.sequential.1m.1.bytes_per_s": rate, "metadata.create.ops_per_s": 1 / latency_s}
            metrics = {name: synthetic.metric("B/s" if "bytes" in name else "1/s", "higher", "repeat", value) for name, value in known.items()}
            records.append(synthetic.record("tiers", len(records), {"threads": 1}, metrics, tiers={"data": {"spec": spec}}))
        synthetic.write(self.dir / "speeds", records)
        self.assertEqual(self.advise("--speeds", "speeds", fast=fast, capacity="1GiB")["verdict"], "stage")

    def test_a_full_tier_is_reported_and_does_no_harm(self):
        self.plan(f"{self.fast_tier},fail=write/.bytes:enospc@#7..")
        files = set(self.planned())
        self.fails("apply", "plan.json", "--threads", 1, words=[message("same-command-resumes"), "space"])
        some = self.staged()
        self.assertTrue(0 < len(some) < len(files))
        (self.fast / "mine").write_text("mine")
        line, = self.records("stage", "revert", "plan.json")
        self.assertEqual(line["removed"], len(some))
        self.assertEqual(self.left(), [str(self.fast / "mine")])

    def test_originals_and_copies_that_somebody_changed(self):
        self.plan()
        first, second, *_ = files = sorted(self.planned())
        with open(self.corpus / first, "ab") as file:
            file.write(b"more")
        line, = self.records("stage", "apply", "plan.json", expect=1)
        self.assertEqual((line["verdict"], line["copied"], len(line["changed"])), ("degraded", len(files) - 1, 1))
        (self.fast / second).write_bytes(b"mine")
        done = self.run_cli("stage", "revert", "plan.json", expect=1)
        self.assertIn(second, done.stderr)
        self.assertEqual((self.fast / second).read_bytes(), b"mine")
        (self.fast / second).unlink()
        self.run_cli("stage", "revert", "plan.json")
        self.assertEqual(self.left(), [])
        self.assertIn(message("nothing-of-plan-left"), self.run_cli("stage", "revert", "plan.json").stderr)

    def test_what_was_in_the_way_and_is_taken_away_leaves_nothing_behind(self):
        self.plan()
        last = max(self.planned())
        (self.fast / last).parent.mkdir(parents=True, exist_ok=True)
        (self.fast / last).write_bytes(b"mine")
        self.fails("apply", "plan.json", words=[last, message("remove-object-in-the-way")])
        (self.fast / last).unlink()
        self.run_cli("stage", "apply", "plan.json")
        self.assertEqual(self.staged(), set(self.planned()))
        line, = self.records("stage", "revert", "plan.json")
        self.assertEqual((line["removed"], line["found_before"], line["kept"]), (len(self.planned()), 0, []))
        self.assertEqual([path for path in self.fast.rglob("*") if path.is_file()], [])

    def test_links_that_cannot_be_made_and_links_that_were_moved(self):
        self.plan()
        (self.dir / "file").write_bytes(b"")
        self.fails("apply", "plan.json", "--link-farm", self.dir / "file" / "farm", words=[message("copies-on-tier", name="fast"), message("run-stage-revert")])
        self.assertEqual(self.staged(), set(self.planned()))
        self.run_cli("stage", "revert", "plan.json")
        self.assertEqual(self.left(), [])
        self.run_cli("stage", "apply", "plan.json", "--link-farm", "farm")
        (self.dir / "farm").rename(self.dir / "moved")
        done = self.run_cli("stage", "revert", "plan.json")
        self.assertIn(message("farm-is-gone", farm=self.dir / "farm"), done.stderr)
        self.assertEqual(self.left(), [])

    def test_a_fast_tier_that_is_not_mounted_is_neither_made_nor_called_empty(self):
        self.plan()
        self.run_cli("stage", "apply", "plan.json")
        self.fast.rename(self.dir / "away")
        for subcommand in ("apply", "revert"):
            self.fails(subcommand, "plan.json", words=[message("fast-folder-missing", fast=self.fast), message("mount-fast-tier")])
            self.assertFalse(self.fast.exists())
        (self.dir / "away").rename(self.fast)
        line, = self.records("stage", "revert", "plan.json")
        self.assertEqual((line["removed"], self.left()), (len(self.planned()), []))

    def test_a_plan_that_is_in_place_is_not_written_over(self):
        self.plan()
        self.run_cli("stage", "apply", "plan.json")
        before = (self.dir / "plan.json").read_bytes()
        (self.dir / "text").write_text("mine")
        words = ("advise", "session", "--slow", self.slow_tier, "--fast", self.fast_tier, "--capacity", "10MB", *BRIEF)
        self.fails(*words, "-o", "plan.json", words=[message("files-already-staged", name="fast"), "penstock stage revert plan.json"])
        self.fails(*words, "-o", "text", words=[message("not-a-staging-plan"), message("choose-another-name")])
        self.assertEqual(((self.dir / "plan.json").read_bytes(), (self.dir / "text").read_text()), (before, "mine"))
        self.run_cli("stage", "revert", "plan.json")
        self.assertEqual(self.left(), [])

    def test_without_rights(self):
        if os.geteuid() != 0:
            self.skipTest("another user is needed")
        self.plan()
        self.dir.chmod(0o755)
        for word in (PENSTOCK, self.dir / "plan.json"):
            if subprocess.run(["test", "-r", word], user=65534, check=False).returncode != 0:
                self.skipTest("the program cannot be run by another user here")
        done = self.run_cli("stage", "apply", "plan.json", expect=1, user=65534, group=65534, extra_groups=[])
        self.assertIn("ermission", done.stderr)
        self.assertEqual(self.left(), [])

    def slow_plan(self):
        """Some three seconds of copying."""
        self.plan(f"fast=posix:{self.fast},read_limit=400MB/s,write_limit={self.bytes // 3000}kB/s")
        return set(self.planned())

    def test_interrupted_it_goes_on(self):
        files = self.slow_plan()
        process = self.start("stage", "apply", "plan.json", "--threads", 2)
        time.sleep(0.8)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(message("same-command-resumes"), out + err)
        before = self.staged()
        line, = self.records("stage", "apply", "plan.json")
        self.assertEqual(line["copied"] + line["already_there"], len(files))
        self.assertGreaterEqual(line["already_there"], len(before))
        self.assertEqual(self.staged(), files)

    def test_killed_at_any_instant(self):
        files = self.slow_plan()
        draw = random.Random(SEED)
        partly = 0
        for number in range(KILLS):
            with self.subTest(seed=SEED, kill=number):
                process = self.start("stage", "apply", "plan.json", "--threads", draw.choice((1, 4)), "--link-farm", "farm")
                time.sleep(draw.uniform(0, 3.5))
                process.kill()
                process.communicate()
                seen = self.staged()
                partly += 0 < len(seen) < len(files)
                self.assertLessEqual(seen, files)
                if draw.random() < 0.3:
                    line, = self.records("stage", "apply", "plan.json", "--link-farm", "farm")
                    self.assertEqual(line["verdict"], "ok")
                    self.assertEqual(self.staged(), files)
                    self.assertEqual(os.readlink(self.dir / "farm" / min(files)), str(self.fast / min(files)))
                self.run_cli("stage", "revert", "plan.json")
                self.assertEqual(self.left(), [])
                self.assertEqual(list(self.dir.glob("farm*")), [])
        self.assertGreater(partly, 0, "no kill came in the middle")
        self.run_cli("verify", self.corpus)


class Benchmark(penstock_cli.CliTest):
    def test_it_runs(self):
        script = penstock_cli.SOURCE / "benchmarks" / "self" / "rates" / "stage"
        done = subprocess.run([script, "--dir", self.dir / "slow", "--fast", self.dir / "fast", "--scale", "0.05", "--pairs", "1", "--json", "pictures"],
                              env={**os.environ, "PENSTOCK": str(PENSTOCK), "PENSTOCK_BUILD": str(BUILD)}, capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: what it found does not hold, which is the machine's affair here
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["policy"] for row in rows], ["density", "first-come"], done.stderr)
        for row in rows:
            self.assertEqual(row["measured"]["pairs"], 1)
        self.assertEqual([path for folder in ("slow", "fast") for path in (self.dir / folder).iterdir()], [])


def lacking():
    if SANITIZED:
        return "the profiler watches builds without a sanitizer"
    return None if LIBRARY.exists() else "this build has no profiler"


if __name__ == "__main__":
    penstock_cli.main(lacking)
