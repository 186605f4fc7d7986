#!/usr/bin/env python3
"""`penstock checkpoint bench` from outside: its records, its words, what it leaves in the stores, and how it is stopped."""

import collections
import json
import random
import signal
import subprocess
import time
import unittest

from messages import message
import penstock_cli
from test_ranks import RanksTest, open_mpi
from train_case import value

SAVES = 3
QUICK = ("--payload", "1MiB", "--steps", 4 * SAVES, "--every", 4, "--step-time", "2ms", "--repeat", 2, "--seed", 7)
BOTH = ("slow", "--burst-buffer", "fast")
ALL = "direct,burst-buffer,snapshot"
OF_EACH = ("checkpoint_bytes", "checkpoint_block_s", "checkpoint_durable_s")
OF_A_RUN = ("wall_s", "finalize_s", "ceiling_bytes_per_s.slow", "checkpoints_drained", "backlog_most_bytes", "lost_work_s.process",
            "lost_work_s.node", "lost_work_s.power", "lost_work_most_s.node", "checkpoint_interval_s.young", "checkpoint_interval_s.daly")
OF_A_FAST_TIER = ("checkpoint_fast_s", "drain_bytes_per_s", "drain_of_ceiling", "drain_overlap", "ceiling_bytes_per_s.fast")


class BenchTest(RanksTest):
    def bench(self, *args, quick=QUICK, ranks=1, **kwargs):
        words = ("checkpoint", "bench", *args, *quick, "--json")
        done = self.over(ranks, *words, **kwargs) if ranks > 1 else self.run_cli(*words, **kwargs)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_clean(self, *stores):
        """Nothing at all: the bench made the stores and their folders."""
        self.assertEqual([str(path) for store in stores for path in ((self.dir / store), *(self.dir / store).rglob("*")) if path.exists()], [])

    def saved_records(self):
        return penstock_cli.stored(*(self.dir / "penstock-results").glob("*.jsonl"))


class Records(BenchTest):
    def test_each_arm_as_often_as_told_and_paired(self):
        records = self.bench(*BOTH, "--arms", ALL)
        self.assertEqual(self.saved_records(), records)
        arms = collections.Counter(record["parameters"]["arm"] for record in records)
        self.assertEqual(arms, {arm: 2 for arm in ALL.split(",")})
        pairs = collections.defaultdict(set)
        for record in records:
            pairs[record["pair"]["index"]].add(record["parameters"]["arm"])
            self.assertEqual(record["pair"]["arm"], record["parameters"]["arm"])
        self.assertEqual(list(pairs.values()), [set(ALL.split(","))] * 2)
        for record in records:
            with self.subTest(arm=record["parameters"]["arm"]):
                self.assert_right(record)
        self.assert_clean("slow", "fast")

    def assert_right(self, record):
        direct = record["parameters"]["arm"] == "direct"
        self.assertEqual((record["schema"], record["command"], record["seed"]), (1, "checkpoint", 7))
        self.assertIn(record["verdict"], ("ok", "ceiling_invalid"), record["reason"])  # the machine has its moments
        self.assertEqual((value(record, "checkpoints"), value(record, "checkpoint_skips")), (SAVES, 0))
        self.assertEqual(sorted(record["tiers"]), ["checkpoint"] if direct else ["burst_buffer", "checkpoint"])
        metrics = record["metrics"]
        for name in (*OF_EACH, *(() if direct else OF_A_FAST_TIER[:3])):
            self.assertEqual(len(metrics[name]["samples"]), SAVES, name)
        # A save to memory waits for no tier.
        self.assertEqual("block_of_ceiling" in metrics, record["parameters"]["arm"] != "snapshot")
        self.assertEqual(metrics["checkpoint_bytes"]["samples"], [1 << 20] * SAVES)
        self.assertEqual(len(metrics["step_s"]["samples"]), 4 * SAVES)
        for name in OF_A_RUN:
            self.assertIn(name, metrics)
        for name in OF_A_FAST_TIER:
            (self.assertNotIn if direct else self.assertIn)(name, metrics)
        self.assertEqual(value(record, "checkpoints_drained"), 0 if direct else SAVES)
        copies = 1 if direct else 2
        self.assertAlmostEqual(value(record, "write_amplification"), copies, delta=0.02 * copies)
        series = record["series"]
        written = [sum(values["values"]) for name, values in series.items() if name.endswith("_bytes_written")]
        self.assertGreaterEqual(sum(series["slow_bytes_written"]["values"]), SAVES << 20)
        self.assertAlmostEqual(sum(written), value(record, "write_amplification") * (SAVES << 20), delta=1)
        self.assertEqual("fast_bytes_written" in series, not direct)
        # What saves hold a training for is what their time tells; what is durable is later.
        self.assertGreaterEqual(value(record, "wall_s"), sum(metrics["checkpoint_block_s"]["samples"]) + sum(metrics["step_s"]["samples"]) - 1e-6)

    def test_how_much_longer_steps_get_is_said_of_steps_that_work(self):
        # A drain takes a second, and 20 steps take much less.
        quick = ("--payload", "1MiB", "--steps", 40, "--every", 20, "--step-time", "2ms", "--repeat", 1, "--seed", 7)
        for burn, work in ((("--burn", 0), False), ((), True), (("--burn", 1.5), True)):
            for record in self.bench("slow,write_limit=1MiB/s", "--burst-buffer", "fast", *burn, quick=quick):
                drains = record["parameters"]["arm"] == "burst-buffer"
                self.assertEqual("step_inflation" in record["metrics"], work and drains, (burn, record["metrics"]))
                for name in ("burn_rounds_per_s", "burn_calibration_spread"):
                    self.assertEqual(name in record["metrics"], work, name)
                self.assertEqual(record["parameters"]["burn"], burn[1] if burn else 1)
                if not work:
                    self.assertGreaterEqual(min(record["metrics"]["step_s"]["samples"]), 0.002)

    def test_one_tier_alone(self):
        records = self.bench("slow")
        self.assertEqual([record["parameters"]["arm"] for record in records], ["direct", "direct"])
        record, = self.bench("slow", "--arms", "snapshot", quick=(*QUICK[:-4], "--seed", 7, "--repeat", 1))
        self.assertEqual(record["parameters"]["arm"], "snapshot")
        self.assertEqual(sorted(record["tiers"]), ["checkpoint"])
        self.assert_clean("slow")

    def test_the_seed_says_who_goes_first(self):
        def order(seed):
            quick = ("--payload", "4KiB", "--steps", 1, "--every", 1, "--step-time", "0s", "--repeat", 8, "--seed", seed)
            return [record["parameters"]["arm"] for record in self.bench(*BOTH, quick=quick)]
        orders = [order(seed) for seed in (1, 1, 2)]
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])

    def test_other_checkpoints_stay(self):
        self.run_cli("checkpoint", "save", *BOTH, "--payload", "1MiB", "--step", 3, "--run", "mine")
        self.bench(*BOTH)
        line, = self.records("checkpoint", "ls", "slow", "fast")
        self.assertEqual((line["run"], line["step"], line["state"]), ("mine", 3, "both"))

    def test_the_table(self):
        done = self.run_cli("checkpoint", "bench", *BOTH, *QUICK, "--units", "si")
        for words in ("every 4 of 12 steps", "direct", "burst-buffer", "of ceiling", "average lost work if", "save every (Young)", "drain MB/s",
                      "allowed", "a step keeps 1 CPU busy", "through fast"):
            self.assertIn(words, done.stdout)

    @unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
    def test_over_ranks(self):
        records = self.bench(*BOTH, ranks=2)
        self.assertEqual(collections.Counter(record["parameters"]["arm"] for record in records), {"direct": 2, "burst-buffer": 2})
        for record in records:
            self.assertEqual(record["parameters"]["ranks"], 2)
            self.assertEqual(record["metrics"]["checkpoint_bytes"]["samples"], [1 << 20] * SAVES, "of all ranks")
        self.assert_clean("slow", "fast")


class Limits(BenchTest):
    """Tiers of known speed: what a save costs then is known, too."""

    def blocks(self, *args, **kwargs):
        quick = ("--payload", "12MiB", "--steps", 4, "--every", 2, "--step-time", "400ms", "--repeat", 1, "--seed", 7)
        records = self.bench("slow,write_limit=40MiB/s", *args, quick=quick, **kwargs)
        return {record["parameters"]["arm"]: record["metrics"]["checkpoint_block_s"]["samples"] for record in records}

    def test_a_limited_tier_holds_a_save_for_as_long_as_it_must(self):
        blocked = self.blocks("--burst-buffer", "fast")
        # 12 MiB at 40 MiB/s, of which the limit lets the first piece of 4 MiB go at once.
        for block_s in blocked["direct"]:
            self.assertGreaterEqual(block_s, 0.19)

    def test_a_fast_tier_without_room_makes_saves_wait_or_be_left_out(self):
        quick = ("--payload", "1MiB", "--steps", 6, "--every", 1, "--step-time", "1ms", "--repeat", 1, "--arms", "burst-buffer", "--seed", 7)
        tiers = ("slow,write_limit=4MiB/s", "--burst-buffer", "fast,capacity=2200KiB")
        waited, = self.bench(*tiers, quick=quick)
        self.assertEqual((value(waited, "checkpoints_drained"), value(waited, "checkpoint_skips")), (6, 0))
        left_out, = self.bench(*tiers, "--on-full", "skip", quick=quick)
        skips = value(left_out, "checkpoint_skips")
        self.assertGreater(skips, 0)
        self.assertEqual(value(left_out, "checkpoints_drained"), 6 - skips)
        self.assert_clean("slow", "fast")


class Stopping(BenchTest):
    def stopped(self, how, *stores):
        process = self.start("checkpoint", "bench", "slow,write_limit=2MiB/s", "--burst-buffer", "fast", "--payload", "6MiB", "--steps", 100000,
                             "--every", 2, "--step-time", "5ms", "--arms", "burst-buffer", "--seed", 7)
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while not penstock_cli.present(self.dir / "fast", "ckpt/*/*/MANIFEST"):
            self.assertIsNone(process.poll(), "ended too early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(how)
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 128 + how, out + err)
        record, = self.saved_records()
        self.assertEqual(record["verdict"], "interrupted")
        self.assert_clean("slow", "fast")

    def test_by_ctrl_c(self):
        self.stopped(signal.SIGINT)

    def test_by_sigterm(self):
        self.stopped(signal.SIGTERM)

    def killed(self):
        process = self.start("checkpoint", "bench", "slow,write_limit=2MiB/s", "--burst-buffer", "fast", "--payload", "6MiB", "--steps", 100000,
                             "--every", 2, "--step-time", "5ms", "--arms", "burst-buffer", "--seed", 7)
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while not penstock_cli.present(self.dir / "fast", "ckpt/bench-*/*/MANIFEST"):
            self.assertIsNone(process.poll(), "ended too early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        # One that is at work keeps what is its own.
        self.run_cli("checkpoint", "gc", "slow", "fast")
        self.assertTrue(list((self.dir / "fast").glob("ckpt/bench-*/*")))
        process.kill()
        process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertTrue(list((self.dir / "fast").glob("ckpt/bench-*/*/MANIFEST")))

    def test_what_a_killed_one_left_is_no_run_and_is_swept(self):
        self.run_cli("checkpoint", "save", *BOTH, "--payload", "1MiB", "--step", 3, "--run", "mine")
        self.killed()
        restored, = self.records("checkpoint", "restore", "slow", "fast")
        self.assertEqual(restored["run"], "mine")
        done = self.run_cli("checkpoint", "gc", "slow", "fast")
        self.assertIn(message("bench-leftovers-removed"), done.stderr)
        line, = self.records("checkpoint", "ls", "slow", "fast")
        self.assertEqual(line["run"], "mine")
        left = [path for store in ("slow", "fast") for path in (self.dir / store).rglob("bench-*")]
        self.assertEqual(left, [])

    def test_the_next_one_sweeps_what_a_killed_one_left(self):
        self.killed()
        self.bench("slow", "--burst-buffer", "fast", quick=(*QUICK[:-1], 8))
        self.assert_clean("slow", "fast")

    def test_nothing_stays_after_kills_at_random_moments(self):
        for seed in range(6):
            process = self.start("checkpoint", "bench", *BOTH, "--payload", "4MiB", "--steps", 40, "--every", 2, "--step-time", "5ms",
                                 "--arms", ALL, "--seed", seed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0.01, 1))
            process.kill()
            process.wait()
        self.bench(*BOTH, "--payload", "2MiB", quick=(*QUICK[2:-1], 99))
        self.assert_clean("slow", "fast")

    def test_folders_and_stores_of_the_user_stay(self):
        (self.dir / "slow").mkdir()
        self.run_cli("checkpoint", "save", "fast", "--payload", "1MiB", "--step", 3, "--run", "mine")
        before = penstock_cli.tree(self.dir / "fast")
        self.bench("slow", "--burst-buffer", "other")
        self.assertEqual(list((self.dir / "slow").iterdir()), [], "the folder was there before")
        self.bench("fast")
        after = penstock_cli.tree(self.dir / "fast")
        self.assertEqual({name for name in after if name != "lock"} - set(before), set())
        self.assertEqual({name: after[name] for name in before if "mine" in name}, {name: before[name] for name in before if "mine" in name})

    def test_a_store_that_a_user_took_over_stays(self):
        self.killed()
        self.run_cli("checkpoint", "save", *BOTH, "--payload", "1MiB", "--step", 3, "--run", "mine")
        self.bench(*BOTH, quick=(*QUICK[:-1], 8))
        restored, = self.records("checkpoint", "restore", "slow", "fast")
        self.assertEqual(restored["run"], "mine")

    def test_a_tier_that_fails(self):
        # Two files of the ceiling, the first save, and then:
        done = self.run_cli("checkpoint", "bench", "slow,fail=publish/rank-0.bin:eio@#4", *QUICK[:-4], "--repeat", 1, "--seed", 7, expect=1)
        record, = self.saved_records()
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(record["reason"], done.stderr, "what failed is said, too")
        self.assert_clean("slow")


class Words(BenchTest):
    def test_wrong_arguments(self):
        for args, words in (((), "STORE"), (("slow", "fast"), "--burst-buffer"), (("slow", "--arms", "x"), "'x'"),
                            (("slow", "--arms", "direct,direct"), "at most once"), (("slow", "--arms", "direct,"), "''"),
                            (("slow", "--arms", "burst-buffer"), "--burst-buffer TIER"), (("slow", "--every", 101), "--steps 100"),
                            (("slow", "--burn", -1), "burn"), (("slow", "--burn", "nan"), "burn"), (("slow", "--burn", "1e9"), "too large"),
                            (("slow", "--mtbf", "0s"), "--mtbf 0"), (("slow", "--step-time", "-1s"), "step-time"), (("slow", "--step-time", "25h"), "too long"),
                            (("slow", "--payload", 0), "payload"), (("slow", "--headroom", -1), "headroom"), (("slow", "--keep-fast", -1), "keep-fast"),
                            (("slow", "--on-full-timeout", "-1s"), "on-full-timeout"), (("slow", "--block-for", "1s"), "block-for"),
                            (("slow", "--steps", "1e3"), "steps"), (("slow", "--repeat", -1), "repeat"),
                            (("slow", "--every", 0), "every"), (("slow", "--steps", 0), "steps"), (("slow", "--repeat", 0), "repeat"),
                            (("slow", "--step", 1), "has no option --step"), (("slow", "--timeout", "1s"), "has no option --timeout"),
                            (("slow", "--from", "x"), "has no option --from"),
                            (("slow", "--run", "x"), "has no option --run"), (("slow", "--payload", "nosuch"), "nosuch"),
                            (("slow", "--keep", 0), "keep"), (("nosuch:/x",), "nosuch")):
            done = self.run_cli("checkpoint", "bench", *args, expect=2)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual(list(self.dir.iterdir()), [])


if __name__ == "__main__":
    penstock_cli.main()
