"""What the tests of `penstock sweep` share: files, and what a sweep left."""

import json
import pathlib
import time

import penstock_cli

SMALL = ("--samples", 60, "--seed", 7, "--set", "median=12KB", "--set", "classes=20")
QUICK = "min-time: 30ms, repeat: 1, no-baseline: true, no-ceiling: true, cache: asis"


class SweepTest(penstock_cli.CliTest):
    def file(self, text, name="sweep.yaml"):
        (self.dir / name).write_text(text, encoding="utf-8")
        return name

    def corpus(self, name="data", *more):
        self.run_cli("generate", "imagenet", "--out", self.dir / name, "--results", self.dir / "made", *SMALL, *more)

    def journal(self, name, results="penstock-results"):
        """The entries of a sweep's journal; none where there is none yet."""
        path = self.dir / results / f"sweep-{name}.state"
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # after the last newline may be half a line
        return [json.loads(line.split(" ", 1)[1]) for line in lines]

    def turns(self, name):
        return [entry for entry in self.journal(name) if entry["kind"] == "done"]

    def records_in(self, folder="penstock-results"):
        return [json.loads(line) for file in sorted((self.dir / folder).glob("*.jsonl")) for line in file.read_text(encoding="utf-8").splitlines()]

    def wait_for_turns(self, process, name, count):
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while len(self.turns(name)) < count:
            if process.poll() is not None:
                self.fail(f"it ended before its time: {process.stdout.read()}{process.stderr.read()}")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def assert_nothing_unfinished(self, results="penstock-results"):
        self.assertEqual([path.name for path in pathlib.Path(self.dir / results).iterdir() if path.name.startswith(".")], [])

    def assert_each_once(self, records, key, cells, rounds):
        """Each of `cells` has `rounds` records, each of another round: runs of a round have the same seed."""
        found = [(key(record), record["seed"]) for record in records]
        self.assertEqual(len(found), len(set(found)), "no turn is there twice")
        self.assertEqual({cell for cell, _ in found}, set(cells))
        self.assertEqual(len(found), len(cells) * rounds)
