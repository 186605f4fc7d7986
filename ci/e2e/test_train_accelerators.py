#!/usr/bin/env python3
"""`penstock train` with several accelerators, and the search for how many are fed."""

import json
import os
import signal

from messages import message
from penstock_cli import main
from train_case import TrainTest, value


class Accelerators(TrainTest):
    def test_several_share_a_step(self):
        lines = self.log("--batch", "4", "--accelerators", "3", "--epochs", "1")
        self.assertEqual([step for _, step, _, _ in lines], [n // 12 for n in range(36)], "12 samples a step")
        [record] = self.train("--batch", "4", "--accelerators", "3", "--epochs", "1", "--accelerator", "emulated:step=5ms,jitter=4ms")
        self.assertEqual(value(record, "accelerators"), 3)
        self.assertEqual(value(record, "steps"), 3)
        self.assertEqual(value(record, "dropped_tail_samples"), 4)
        self.assertGreater(value(record, "lost_s.barrier"), 0, "each step ends with the slowest of three")
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", 4, "--accelerators", 11, expect=2)
        self.assertIn("fewer than 11 batches of 4: choose --batch 3", done.stderr)

    def search(self, *args, tier="latency=9ms", **kwargs):
        data = f"posix:{self.made / 'corpus'},{tier}" if tier else self.made / "corpus"
        return self.records("train", "stream", "--data", data, "--seed", "3", "--find-accelerators", "--threads", "2", *args, **kwargs)

    def test_the_most_that_are_fed_are_found(self):
        # Two threads with a latency of 9 ms read at most 222 samples/s. An accelerator takes 50.
        [record] = self.search("--batch", "2", "--prefetch", "2", "--steps", "30", "--accelerator", "emulated:step=40ms", "--au", "0.95")
        fed = value(record, "accelerators_fed")
        self.assertLessEqual(fed, 4)
        self.assertTrue(fed > 0 or record["verdict"] == "client_bound", record["reason"])
        if fed > 0:
            self.assertEqual(record["parameters"]["accelerators"], fed)
            self.assertEqual(len(record["metrics"]["accelerator_utilization"]["samples"]), 5)
            self.assertGreaterEqual(min(record["metrics"]["accelerator_utilization"]["samples"]), 0.95)
            if record["parameters"]["one_more_missed_by"] == "input":
                self.assertLess(value(record, "utilization_with_one_more"), 0.95)
            self.run_cli("report", "penstock-results", "-o", "report.html")
            self.assertRegex((self.dir / "report.html").read_text(), rf"feeds (at least )?{fed:.0f} accelerator")

    def test_the_corpus_bounds_the_search_and_one_may_be_too_many(self):
        [record] = self.search("--batch", "8", "--prefetch", "8", "--steps", "4", "--accelerator", "emulated:step=100ms", "--au", "0.01",
                               tier="")
        fed = value(record, "accelerators_fed")  # 5, unless the machine was too busy to emulate that many
        self.assertLessEqual(fed, 5)
        self.assertEqual(record["parameters"].get("accelerators_at_most"), 5 if fed == 5 else None)
        [record] = self.search("--batch", "8", "--steps", "3", "--accelerator", "emulated:step=1ms")
        self.assertEqual(value(record, "accelerators_fed"), 0)
        [record] = self.search("--batch", "8", "--epochs", "1", "--accelerator", "emulated:step=100ms", "--au", "0.01", "--prefetch", "8", tier="")
        self.assertLessEqual(value(record, "accelerators_fed"), 2, "of five batches two are left for two steps")

    def test_a_run_of_one_epoch_needs_two_steps(self):
        words = ("train", "stream", "--data", self.made / "corpus", "--find-accelerators", "--accelerator", "emulated:step=1ms", "--batch", 30)
        for more, remedy in ((("--epochs", 1), "in one epoch: choose --batch 20 or smaller, or more --epochs\n"),
                             (("--cache", "cold"), "in one epoch, and the cache is cold only for one epoch: choose --batch 20 or smaller\n"),
                             (("--cache", "cold", "--epochs", 5), "cold only for one epoch: choose --batch 20 or smaller\n")):
            done = self.run_cli(*words, *more, expect=2)
            self.assertIn(message("too-few-samples-for-two-steps", name="corpus", n=40, n2=30), done.stderr)
            self.assertIn(remedy, done.stderr)
            self.assertFalse((self.dir / "penstock-results").exists())

    def test_a_search_needs_steps_and_ends_with_a_failure(self):
        for words, why in ((("--accelerator", "none"), "needs a step time"),
                           (("--accelerator", "emulated:step=1ms", "--accelerators", "2"), "leave out --accelerators"),
                           (("--accelerator", "emulated:step=2ms,jitter=1ms"), "does not support jitter"),
                           (("--accelerator", "emulated:step=1ms", "--steps", "1"), "at least 2 --steps"),
                           (("--accelerator", "emulated:step=1ms", "--au", "1.5"), "--au must be a fraction above 0")):
            done = self.run_cli("train", "stream", "--data", self.made / "corpus", "--find-accelerators", *words, expect=2)
            self.assertIn(why, done.stderr)
        folder, pictures = self.corpus()
        pictures[3].unlink()
        [record] = self.records("train", "stream", "--data", folder, "--find-accelerators", "--batch", "4", "--steps", "10",
                                "--accelerator", "emulated:step=1ms", expect=1)
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(pictures[3].name, record["reason"])
        self.assertEqual(record["parameters"]["fed_so_far"], 0)

    def test_a_search_that_is_interrupted_says_what_it_knows(self):
        process = self.start("train", "stream", "--data", self.made / "corpus", "--find-accelerators", "--batch", "4", "--steps", "4",
                             "--accelerator", "emulated:step=500ms", "--progress", "always", "--json")
        output = ""
        while message("search-started-for-stream") not in output:  # the search is under way
            more = os.read(process.stderr.fileno(), 4096).decode()
            self.assertTrue(more, output)
            output += more
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        [record] = map(json.loads, out.splitlines())
        self.assertEqual(record["verdict"], "interrupted")
        fed = record["parameters"]["fed_so_far"]
        self.assertIn("the search ended early: " + ("no number of accelerators was kept busy" if fed == 0 else f"{fed} accelerator"), output + err)


if __name__ == "__main__":
    main()
