"""What the tests of `penstock checkpoint` share: its exit codes, payloads, tiers that are slow or full, and short names of subcommands."""

import os
import pathlib
import time

import penstock_cli
from test_ranks import RanksTest

SLOWLY = "write_limit=4MB/s"    # the first 4 MiB of a payload of 6 MiB take a second
NEVER = "write_limit=100kB/s"   # longer than any test looks on
FULL = "slow,capacity=1MiB"     # nothing ever drains to it
PAYLOAD = ("--payload", "6MiB", "--seed", 5)
NOT_DURABLE, NOTHING, LOCKED = 3, 4, 5


def flip(path, at=-1):
    data = bytearray(path.read_bytes())
    data[at if at >= 0 else len(data) // 2] ^= 0x10
    path.write_bytes(data)


class CheckpointTest(RanksTest):
    """Stores called fast and slow in the test's folder, and short words for the subcommands."""

    def subcommand(self, subcommand, *args, **kwargs):
        """Runs it with --json and returns its lines."""
        return self.records("checkpoint", subcommand, *args, **kwargs)

    def save(self, step, *args, slow="slow", fast="fast", what=PAYLOAD, **kwargs):
        buffer = ("--burst-buffer", fast) if fast else ()
        line, = self.subcommand("save", slow, *buffer, *what, "--step", step, *args, **kwargs)
        return line

    def fails(self, code, *args, words=()):
        """Ends with that code, says the words on stderr, and nothing on stdout."""
        done = self.run_cli("checkpoint", *args, expect=code)
        self.assertEqual(done.stdout, "", "diagnostics belong on stderr")
        for word in words:
            self.assertIn(str(word), done.stderr)
        return done

    def restore(self, *args, stores=("fast", "slow"), **kwargs):
        line, = self.subcommand("restore", *stores, *args, **kwargs)
        return line

    def states(self, *stores):
        return {(line["run"], line["step"], line["generation"]): line["state"] for line in self.subcommand("ls", *(stores or ("fast", "slow")))}

    def file(self, store, step, generation=0, run="default", name="rank-0.bin"):
        return self.dir / store / "ckpt" / run / f"{step:012d}.{generation}" / name

    def drain_stuck(self, step, *args):
        """Leaves a checkpoint on the fast tier alone: the slow one has no room for it."""
        return self.save(step, "--timeout", "50ms", *args, slow=FULL, expect=NOT_DURABLE)

    def until(self, holds, what):
        end = time.monotonic() + penstock_cli.PATIENCE_S
        while not holds():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def started(self, *args):
        process = self.start("checkpoint", *args)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        return process

    def open_files(self, process):
        self.assertIsNone(process.poll(), "ended too early")
        for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                yield os.readlink(link)
            except OSError:
                pass  # closed meanwhile

    def in_the_making(self, store):
        folder = self.dir / store / "tmp"
        return folder.exists() and any(folder.iterdir())
