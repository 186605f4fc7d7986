#!/usr/bin/env python3
"""SIGKILL at any instant of a training that saves and drains: what its synced --ack-log says is kept, looked at from outside.

12 kills; 200 with PENSTOCK_FULL=1. PENSTOCK_SEED draws others.
"""

import collections
import json
import os
import random
import shutil
import statistics
import sys
import time

import penstock_cli
from train_checkpoint_case import CheckpointCase, acks, lines

SEED = int(os.environ.get("PENSTOCK_SEED", "1811"))
KILLS = 200 if os.environ.get("PENSTOCK_FULL") else 12
STEPS, EVERY = 20, 2
PAYLOAD = "5MiB"                     # two pieces to copy, and a wait between them
SLOWLY = "slow,write_limit=80MB/s"    # a drain takes longer than the time between two saves
ROOMY, NARROW = "fast", "fast,capacity=17MiB"  # three checkpoints: saves evict, and wait for room
NOTHING = 4

Killed = collections.namedtuple("Killed", "lost source wiped")


class AnyInstant(CheckpointCase):
    def training(self, app, *args, slow=SLOWLY, fast=ROOMY, **kwargs):
        buffer = ("--burst-buffer", fast) if fast else ()
        tiers = ("--checkpoint-to", slow, *buffer, "--payload", PAYLOAD, "--ack-log", "acks")
        return self.words("--accelerator", "emulated:step=5ms", *args, app=app, tiers=tiers, every=EVERY, **kwargs)

    def all_states(self):
        """Step -> the bytes that the training has then, as an undisturbed training saved them."""
        self.run_cli(*self.training("stream", "--steps", STEPS + 4, "--keep", STEPS, slow="undisturbed", fast=None))
        folder = self.dir / "undisturbed" / "ckpt" / "default"
        states = {int(path.name.split(".")[0]): (path / "rank-0.bin").read_bytes() for path in folder.iterdir()}
        self.assertEqual(sorted(states), list(range(EVERY, STEPS + 5, EVERY)))
        self.assertEqual(len(set(states.values())), len(states), "no two steps have the same bytes")
        return states

    def forget(self):
        for name in ("slow", "fast", "out"):
            shutil.rmtree(self.dir / name, ignore_errors=True)
        for name in ("acks", "samples"):
            (self.dir / name).unlink(missing_ok=True)

    def kill(self, draw, app, fast):
        """Starts a training, and kills it at an instant drawn uniformly from what a whole one takes."""
        words = self.training(app, "--steps", STEPS, "--sample-log", "samples", fast=fast)
        if (app, fast) not in self.whole_s:
            begin = time.monotonic()
            self.run_cli(*words)
            self.whole_s[app, fast] = time.monotonic() - begin
            self.forget()
        at_s = draw.uniform(0, self.whole_s[app, fast])
        begin = time.monotonic()
        process = self.start(*words)
        time.sleep(max(0.0, begin + at_s - time.monotonic()))
        process.kill()
        process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertIn(process.returncode, (0, -9))

    def stores(self):
        return [name for name in ("slow", "fast") if (self.dir / name / "STORE.json").exists()]

    def restored(self, acknowledged, states):
        """Restores, and returns the step (0: there is none) and the tier it came from."""
        done = self.run_cli("checkpoint", "restore", "slow", "fast", "--to", "out", "--json", expect=None)
        if done.returncode == NOTHING:
            self.assertEqual(acknowledged, 0, done.stderr)
            return 0, "nothing"
        self.assertEqual(done.returncode, 0, done.stderr)
        line = json.loads(done.stdout)
        chosen = line["chosen"]
        self.assertGreaterEqual(chosen["step"], acknowledged)
        self.assertTrue(line["proven"])
        self.assertEqual(line["rejected"], [], "a killed process leaves nothing that looks whole and is not")
        self.assertTrue((self.dir / "out" / "rank-0.bin").read_bytes() == states[chosen["step"]], f"other bytes at step {chosen['step']}")
        return chosen["step"], chosen["role"]

    def go_on(self, app, step):
        """The next training begins at that step, and all of it becomes durable."""
        steps = ("--steps", step + 3)
        record, = [json.loads(text) for text in
                   self.run_cli(*self.training(app, *steps, *(("--resume",) if step else ()), slow="slow"), "--json").stdout.splitlines()]
        self.assertEqual(record["parameters"].get("resumed_step", 0), step)
        self.assertEqual(self.saved("slow")[-1], (step + 3) // EVERY * EVERY)

    def clear(self, step):
        """gc takes away what the dead one left, and nothing that can be restored."""
        self.run_cli("checkpoint", "gc", *self.stores())
        done = self.run_cli("checkpoint", "restore", "slow", "fast", "--json", expect=0 if step else NOTHING)
        if step:
            self.assertEqual(json.loads(done.stdout)["chosen"]["step"], step)

    def assert_no_litter(self):
        left = [str(path) for store in ("slow", "fast") for part in ("tmp", "reserved", "trash")
                for path in (self.dir / store / part).rglob("*")]
        self.assertEqual(left, [])

    def one(self, number, states):
        draw = random.Random(f"{SEED}/{number}")
        app = draw.choice(("stream", "alexnet"))
        wiped = number % 2 == 1
        self.forget()
        self.kill(draw, app, draw.choice((ROOMY, NARROW)))
        seen = acks(self.dir / "acks")
        if wiped:
            shutil.rmtree(self.dir / "fast", ignore_errors=True)
        acknowledged = max([*seen["durable"], *([] if wiped else seen["fast"])], default=0)
        step, source = self.restored(acknowledged, states)
        # The log of samples is complete up to the newest save that was started.
        log = self.dir / "samples"
        started = max((line[1] + 1 for line in lines(log)), default=0) if log.exists() else 0
        self.assertLessEqual(step, started)
        if draw.random() < 0.5 and "slow" in self.stores():
            self.clear(step)
        else:
            self.go_on(app, step)
        self.assert_no_litter()
        return Killed(started - step, source, wiped)

    def test_nothing_acknowledged_is_lost(self):
        self.whole_s = {}
        states = self.all_states()
        begin = time.monotonic()
        kills = []
        for number in range(KILLS):
            with self.subTest(seed=SEED, kill=number):
                kills.append(self.one(number, states))
        took_s = time.monotonic() - begin
        sources = collections.Counter(kill.source for kill in kills)
        print(f"\n{KILLS} kills, seed {SEED}, {took_s / KILLS:.2f} s each: restored from fast {sources['fast']}, "
              f"from slow {sources['slow']}, nothing there yet {sources['nothing']}", file=sys.stderr)
        for wiped in (False, True):
            lost = [kill.lost for kill in kills if kill.wiped == wiped]
            if lost:
                print(f"  fast tier {'wiped' if wiped else 'there'}: steps lost of those before the newest save started: "
                      f"mean {statistics.mean(lost):.2f}, most {max(lost)}", file=sys.stderr)
        self.assertLess(sources["nothing"], KILLS, "there was never anything to lose")


if __name__ == "__main__":
    penstock_cli.main()
