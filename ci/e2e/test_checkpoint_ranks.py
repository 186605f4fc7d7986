#!/usr/bin/env python3
"""penstock checkpoint over ranks: parts of a payload, files dealt out, and words that are said once."""

import json
import unittest

from messages import message
import penstock_cli
from checkpoint_case import CheckpointTest, FULL, LOCKED, NEVER, NOTHING, NOT_DURABLE, PAYLOAD, flip
from test_ranks import open_mpi


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class OverRanks(CheckpointTest):
    def over_json(self, ranks, *args, **kwargs):
        return [json.loads(line) for line in self.over(ranks, "checkpoint", *args, "--json", **kwargs).stdout.splitlines()]

    def test_four_save_and_any_number_restores(self):
        saved, = self.over_json(4, "save", "slow", "--burst-buffer", "fast", *PAYLOAD, "--step", 9, "--ack-log", "acks")
        self.assertEqual((saved["ranks"], saved["bytes"], saved["reached"]), (4, 6 << 20, "durable"))
        self.assertEqual((self.dir / "acks").read_text(), "9 fast\n9 durable\n")
        line, = self.subcommand("ls", "fast", "slow")
        self.assertEqual((line["ranks"], line["files"], line["state"]), (4, 4, "both"))
        for ranks in (4, 3, 1):
            out = f"out{ranks}"
            restored, = self.over_json(ranks, "restore", "fast", "slow", "--to", out)
            self.assertEqual((restored["ranks"], restored["proven"], restored["bytes"]), (ranks, True, 6 << 20))
            self.assertEqual(sorted(path.name for path in (self.dir / out).iterdir()), [f"rank-{i}.bin" for i in range(4)] + ["restart.json"])
            for i in range(4):
                name = f"rank-{i}.bin"
                self.assertEqual((self.dir / out / name).read_bytes(), self.file("slow", 9, name=name).read_bytes())
        flip(self.file("fast", 9, name="rank-2.bin"))
        flip(self.file("slow", 9, name="rank-3.bin"))
        done = self.over(4, "checkpoint", "restore", "fast", "slow", expect=NOTHING)
        self.assertEqual(done.stderr.count(message("checkpoints-found-wrong")), 1, done.stderr)

    def test_files_are_dealt_out(self):
        (self.dir / "state").mkdir()
        for i in range(5):
            (self.dir / "state" / f"part{i}").write_bytes(bytes([i]) * 1000)
        self.over(2, "checkpoint", "save", "slow", "--from", "state")
        self.restore("--to", "out", stores=("slow",))
        (self.dir / "out" / "restart.json").unlink()
        self.assert_same_tree("state", "out")
        done = self.over(6, "checkpoint", "save", "slow", "--from", "state", expect=2)
        self.assertEqual(done.stderr.count("5 files"), 1, done.stderr)

    def test_what_ends_it_is_said_once(self):
        for subcommand in ("ls", "verify", "drain", "gc", "status"):
            done = self.over(2, "checkpoint", subcommand, "slow", expect=2)
            self.assertEqual(done.stderr.count(message("launched-as-ranks", n=2)), 1, done.stderr)
        done = self.over(2, "checkpoint", "restore", "nowhere", expect=NOTHING)
        self.assertEqual(done.stderr.count("penstock checkpoint:"), 1, done.stderr)
        process = self.started("save", f"slow,{NEVER}", *PAYLOAD)
        self.until(lambda: self.in_the_making("slow"), "never began")
        done = self.over(2, "checkpoint", "save", "slow", *PAYLOAD, expect=LOCKED)
        self.assertEqual(done.stderr.count(f"pid {process.pid}"), 1, done.stderr)

    def test_not_durable_in_time(self):
        done = self.over(2, "checkpoint", "save", FULL, "--burst-buffer", "fast", *PAYLOAD, "--timeout", "200ms", expect=NOT_DURABLE)
        self.assertEqual(done.stderr.count(message("drain-to-continue")), 1, done.stderr)


if __name__ == "__main__":
    penstock_cli.main()
