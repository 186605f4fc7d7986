#!/usr/bin/env python3
"""penstock checkpoint drain from outside: what a save left on the fast tier, and what a kill left of a save or a drain."""

import json
import signal

from messages import message
import penstock_cli
from checkpoint_case import CheckpointTest, LOCKED, NEVER, NOTHING, NOT_DURABLE, PAYLOAD, SLOWLY, flip


class Draining(CheckpointTest):
    def test_another_process_drains_what_was_left(self):
        for step in (1, 2):
            self.drain_stuck(step)
        drained, = self.subcommand("drain", "slow", "fast", "--read-back")
        self.assertEqual((drained["copied"], drained["evicted"], drained["left"], drained["verdict"]), (2, 2, 0, "ok"))
        self.assertEqual(self.states(), {("default", 1, 0): "durable", ("default", 2, 0): "durable"})
        self.assertTrue(self.restore()["proven"])
        again, = self.subcommand("drain", "fast", "slow")
        self.assertEqual((again["copied"], again["evicted"]), (0, 0))

    def test_a_copy_that_is_wrong_when_read_back_leaves_the_fast_one(self):
        self.drain_stuck(1)
        self.run_cli("checkpoint", "drain", "fast", "slow,fail=read/rank-0:flip@#1", "--read-back", expect=1)
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.run_cli("checkpoint", "drain", "fast", "slow", "--read-back")
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})

    def test_the_newest_may_stay_on_the_fast_tier(self):
        for step in (1, 2):
            self.drain_stuck(step)
        self.run_cli("checkpoint", "drain", "fast", "slow", "--keep-fast", 1)
        self.assertEqual(self.states(), {("default", 1, 0): "durable", ("default", 2, 0): "both"})

    def test_not_durable_in_time_is_exit_3_and_goes_on(self):
        self.drain_stuck(1)
        done = self.run_cli("checkpoint", "drain", "fast", f"slow,{SLOWLY}", "--timeout", "200ms", expect=NOT_DURABLE)
        self.assertIn(message("same-command-resumes"), done.stderr)
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.assertFalse(self.in_the_making("slow"))
        self.run_cli("checkpoint", "drain", "fast", "slow", "--timeout", "100s")
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})

    def test_a_wrong_one_never_becomes_durable(self):
        for step in (1, 2):
            self.drain_stuck(step)
        flip(self.file("fast", 1))
        drained, = self.subcommand("drain", "fast", "slow", expect=1)
        self.assertEqual((drained["copied"], drained["quarantined"], drained["verdict"]), (1, 1, "failed"))
        self.assertIn(message("rank-file-name"), drained["problems"][0])
        self.assertEqual(self.states(), {("default", 2, 0): "durable"})
        status = {line["role"]: line for line in self.subcommand("status", "fast", "slow")}
        self.assertGreater(status["fast"]["quarantined"], 0)

    def test_a_torn_copy_on_the_slow_tier_is_made_anew(self):
        self.save(1)
        self.file("slow", 1, name="MANIFEST").write_bytes(b"")
        drained, = self.subcommand("drain", "fast", "slow", expect=1)
        self.assertEqual((drained["copied"], drained["quarantined"], drained["left"]), (1, 1, 0))
        self.assertEqual(self.subcommand("verify", "fast", "slow")[-1]["wrong"], 0)

    def test_a_slow_copy_that_went_bad_is_made_anew_before_the_fast_one_goes(self):
        for args in ((), ("--read-back",), ("--read-back", "--keep-fast", 1)):
            with self.subTest(args=args):
                self.save(1, "--run", "r" + str(len(args)), "--keep-fast", 1)
                flip(self.file("slow", 1, run="r" + str(len(args))))
                drained, = self.subcommand("drain", "slow", "fast", *args, "--run", "r" + str(len(args)), expect=1)
                self.assertIn(message("rank-file-name"), drained["problems"][0])
                self.assertEqual((drained["copied"], drained["quarantined"], drained["left"]), (1, 1, 0))
                self.assertEqual(drained["evicted"], 0 if "--keep-fast" in args else 1)
                self.assertTrue(self.restore("--run", "r" + str(len(args)), stores=("slow",))["proven"])

    def test_a_slow_copy_that_cannot_be_read_keeps_the_fast_one(self):
        self.save(1, "--keep-fast", 1)
        self.fails(1, "drain", "fast", "slow,fail=read/rank-0:eio@1", words=[message("rank-file-name")])
        self.assertEqual(self.states(), {("default", 1, 0): "both"})
        # One reading that goes wrong on the way is no reason to throw the copy away.
        drained, = self.subcommand("drain", "fast", "slow,fail=read/rank-0:flip@#1", expect=1)
        self.assertEqual((drained["evicted"], drained["quarantined"], drained["left"]), (0, 0, 1))
        self.assertEqual(self.states(), {("default", 1, 0): "both"})

    def test_gc_evicts_none_whose_slow_copy_went_bad(self):
        self.save(1, "--keep-fast", 1)
        flip(self.file("slow", 1))
        done = self.run_cli("checkpoint", "gc", "fast", "slow", "--keep-fast", 0, "--json")
        self.assertEqual(json.loads(done.stdout)["evicted"], 0)
        self.assertIn("stays", done.stderr)
        self.assertTrue(self.restore()["proven"])

    def test_a_save_evicts_none_whose_slow_copy_went_bad(self):
        self.save(1, "--keep-fast", 1)
        flip(self.file("slow", 1))
        # It makes room on the fast tier before it begins, and then nothing newer is durable.
        self.save(2, "--keep-fast", 0, "--run", "default")
        self.assertEqual(self.subcommand("verify", "slow")[-1]["wrong"], 0)
        self.assertEqual({key: state for key, state in self.states().items() if state == "invalid"}, {})
        self.assertTrue(self.restore("--step", 1)["proven"])

    def test_a_full_slow_tier_keeps_the_fast_copy(self):
        self.drain_stuck(1)
        done = self.fails(1, "drain", "fast", "slow,capacity=4MiB")
        self.assertIn("slow", done.stderr)
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.assertEqual(self.subcommand("verify", "fast", "slow")[-1]["wrong"], 0)

    def test_it_wants_one_of_each(self):
        self.save(1)
        self.fails(2, "drain", "slow", words=[message("drain-needs-two-stores")])
        self.fails(2, "drain", "slow", "slow", words=["slow"])

    def test_one_at_a_time(self):
        self.save(1, "--keep-fast", 1)
        process = self.started("save", f"slow,{NEVER}", "--burst-buffer", "fast", *PAYLOAD, "--step", 2)
        self.until(lambda: self.states().get(("default", 2, 0)) == "fast_committed", "never on the fast tier")
        for args in (("drain", "fast", "slow"), ("save", "slow", "fast", *PAYLOAD), ("gc", "fast", "slow", "--run", "default")):
            self.fails(LOCKED, *args, words=["default", f"pid {process.pid}"])
        locks = [lock for line in self.subcommand("status", "fast", "slow") for lock in line["locks"]]
        self.assertEqual({lock["run"] for lock in locks}, {"default"})
        self.assertIn(f"pid {process.pid}", locks[0]["holder"])
        left, = self.subcommand("gc", "fast", "slow")
        self.assertIn(f"pid {process.pid}", left["locked"])
        self.assertEqual(self.restore()["proven"], True)
        self.assertEqual(self.save(1, "--run", "another")["reached"], "durable")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 143)
        drained, = self.subcommand("drain", "fast", "slow", "--run", "default")
        self.assertEqual((drained["copied"], drained["left"]), (1, 0))
        self.assertTrue(self.restore("--run", "default")["proven"])


class Killed(CheckpointTest):
    def kill_save(self, *args, store):
        """kill -9 while the files are on their way to that store."""
        process = self.started("save", *args)
        self.until(lambda: self.in_the_making(store) or process.poll() is not None, "never began")
        self.until(lambda: any(f"/{store}/" in name for name in self.open_files(process)), "never wrote")
        process.kill()
        process.wait()

    def test_in_the_middle_of_a_save(self):
        self.save(1)
        self.kill_save("slow", "--burst-buffer", f"fast,{NEVER}", *PAYLOAD, "--step", 2, store="fast")
        self.assertEqual(self.states(), {("default", 1, 0): "both"})
        self.assertEqual(self.subcommand("verify", "fast", "slow")[-1]["wrong"], 0)
        restored = self.restore("--to", "out")
        self.assertEqual((restored["lost_steps"], restored["proven"]), (0, True))
        status = {line["role"]: line for line in self.subcommand("status", "fast", "slow")}
        self.assertEqual(status["fast"]["in_the_making"], 1)
        line, = self.subcommand("gc", "fast", "slow")
        self.assertEqual((line["run"], line["swept"], line["pruned"]), ("default", 1, 0))
        self.assertFalse(self.in_the_making("fast"))
        self.assertEqual(self.states(), {("default", 1, 0): "both"})
        self.save(2)
        self.assertIn(("default", 2, 0), self.states())

    def test_in_the_middle_of_the_first_save_of_all(self):
        self.kill_save(f"slow,{NEVER}", *PAYLOAD, "--run", "first", store="slow")
        self.assertEqual(self.subcommand("ls", "slow"), [])
        self.assertEqual(self.subcommand("verify", "slow")[-1]["copies"], 0)
        self.fails(NOTHING, "restore", "slow", words=[message("no-checkpoint")])
        line, = self.subcommand("gc", "slow")
        self.assertEqual((line["run"], line["swept"]), ("first", 1))
        self.assertFalse(self.in_the_making("slow"))

    def test_in_the_middle_of_a_drain(self):
        self.kill_save(f"slow,{NEVER}", "--burst-buffer", "fast", *PAYLOAD, "--step", 1, "--ack-log", "acks", store="slow")
        self.assertEqual((self.dir / "acks").read_text(), "1 fast\n")
        self.assertEqual(self.states(), {("default", 1, 0): "fast_committed"})
        self.assertTrue(self.restore()["proven"])
        self.run_cli("checkpoint", "drain", "fast", "slow")
        self.assertFalse(self.in_the_making("slow"), "what the dead one left is swept")
        self.assertEqual(self.states(), {("default", 1, 0): "durable"})


if __name__ == "__main__":
    penstock_cli.main()
