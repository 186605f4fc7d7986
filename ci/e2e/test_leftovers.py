"""kill -9 at random moments: the next run of the same command leaves what an undisturbed run leaves, and nothing else. PENSTOCK_SEED draws
other moments."""

import os
import random
import re
import shutil
import subprocess
import time

import penstock_cli

SEED = int(os.environ.get("PENSTOCK_SEED", "39"))
KILLS = 40 if os.environ.get("PENSTOCK_FULL") else 5


class Leftovers(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.run_cli("generate", "imagenet", "--out", "data", "--samples", 64, "--seed", 7)

    def names(self):
        """The names of all files and folders, but for times and random numbers in them, without the records."""
        names = (re.sub(r"[0-9a-f]{8,}|\d{8}T\d{6}Z", "ID", name) for name in penstock_cli.tree(self.dir))
        return {name for name in names if not name.endswith(".jsonl")}

    def kill_some(self, *command, longest):
        for _ in range(KILLS):
            process = self.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0.01, longest))
            process.kill()
            process.wait()

    def check(self, *command, longest=1.5):
        """The names after an undisturbed run are those after some killed ones and another run."""
        self.run_cli(*command)
        expected = self.names()
        self.kill_some(*command, longest=longest)
        self.run_cli(*command)
        self.assertEqual(self.names(), expected)

    def test_of_a_read(self):
        self.check("read", "data", "--threads", "1,2", "--min-time", "50ms", "--repeat", 2, "--seed", 7)

    def test_of_a_probe(self):
        (self.dir / "tier").mkdir()
        self.check("tiers", "--tier", "here=tier", "--probe", "--probe-size", "4MiB", "--threads", 1, "--min-time", "20ms", "--repeat", 1,
                   "--cache", "asis", "--seed", 7)

    def test_of_a_training(self):
        command = ("train", "stream", "--data", "data", "--batch", 4, "--steps", 40, "--accelerator", "emulated:step=10ms", "--seed", 7,
                   "--checkpoint-every", 5, "--checkpoint-to", "slow", "--burst-buffer", "fast", "--payload", "1MiB", "--keep", 2,
                   "--sample-log", "samples", "--timeline", "run.csv")
        self.run_cli(*command)
        expected = self.names()
        for made in ("slow", "fast"):
            shutil.rmtree(self.dir / made)
        self.kill_some(*command, longest=1)
        self.kill_some(*command, "--resume", longest=1)
        if self.run_cli(*command, "--resume", expect=None).returncode != 0:  # no checkpoint before the first kill
            self.run_cli(*command)
        self.assertEqual(self.names(), expected)

    def test_of_a_training_that_saves_after_epochs(self):
        self.run_cli("generate", "cifar10", "--out", "cifar", "--samples", 2000, "--seed", 7)
        self.check("train", "cifar", "--data", "cifar", "--batch", 100, "--epochs", 3, "--checkpoint-to", "saved",
                   "--accelerator", "emulated:step=5ms", "--seed", 7)

    def test_of_a_sweep(self):
        (self.dir / "sweep.yaml").write_text("name: s\ncommand: read\nnouns: [data]\nfixed: {min-time: 50ms, repeat: 1}\n"
                                             "grid: {threads: [1, 2]}\nrepeats: 2\nseed: 3\n", encoding="utf-8")
        self.run_cli("sweep", "sweep.yaml", "--results", "undisturbed")
        expected = {name.replace("undisturbed", "swept") for name in self.names() if name.startswith("undisturbed")}
        command = ("sweep", "sweep.yaml", "--results", "swept")
        self.kill_some(*command, longest=1)
        self.run_cli(*command)
        self.assertEqual({name for name in self.names() if name.startswith("swept")}, expected)


if __name__ == "__main__":
    penstock_cli.main()
