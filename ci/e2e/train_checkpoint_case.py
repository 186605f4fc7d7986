"""What the tests of a training's checkpoints share: pictures to train on, its lines, and its logs."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import penstock_cli
from penstock_cli import PENSTOCK
from test_ranks import RanksTest

SAMPLES = 50
TIERS = ("--checkpoint-to", "slow", "--burst-buffer", "fast", "--payload", "2MiB")


def lines(path):
    """A sample log: (epoch, step, rank, index) a line."""
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def acks(path):
    """An --ack-log: level -> steps, in order."""
    levels = collections.defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else ():
        step, level = line.split()
        levels[level].append(int(step))
    return levels


class CheckpointCase(RanksTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-checkpoint-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([PENSTOCK, "generate", "imagenet", "--out", str(cls.made / "pictures"), "--samples", str(SAMPLES),
                        "--set", "median=8KiB", "--seed", "7", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def words(self, *args, app="stream", data=None, batch=4, seed=3, tiers=TIERS, every=3):
        words = ["train", app, "--data", data or self.made / "pictures", "--batch", batch, "--threads", 2]
        words += ["--seed", seed] * (seed is not None)
        words += ["--checkpoint-every", every] * (every is not None)
        return [*words, *tiers, *args]

    def train(self, *args, ranks=1, expect=0, **kwargs):
        words = [*self.words(*args, **kwargs), "--json"]
        done = self.run_cli(*words, expect=expect) if ranks == 1 else self.over(ranks, *words, expect=expect)
        record, = [json.loads(line) for line in done.stdout.splitlines()]
        return record

    def saved(self, tier, run="default"):
        """Steps of the run's checkpoints on the tier, oldest first."""
        folder = self.dir / tier / "ckpt" / run
        return sorted(int(name.split(".")[0]) for name in os.listdir(folder)) if folder.exists() else []

    def wait_for(self, what, process):
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while time.monotonic() < deadline and process.poll() is None:
            if what():
                return
            time.sleep(0.02)
        process.kill()
        self.fail("".join(map(str, process.communicate())))
