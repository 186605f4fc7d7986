#!/usr/bin/env python3
"""`penstock train` where something is wrong: samples, words, back ends that hang, Ctrl-C."""

import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from messages import message
from penstock_cli import PENSTOCK, main
from train_case import SAMPLES, TrainTest, value


class BadInput(TrainTest):
    def spoil(self, how):
        """A corpus in which one picture is spoilt, and that picture's name."""
        folder, pictures = self.corpus()
        how(pictures[7])
        return folder, pictures[7].name

    def check_fails_and_skips(self, how):
        folder, name = self.spoil(how)
        done = self.run_cli("train", "alexnet", "--data", folder, "--batch", "4", "--json", expect=1)
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(name, record["reason"])
        self.assertIn("--on-error skip", record["reason"])
        self.assertIn(name, done.stderr)

        done = self.run_cli("train", "alexnet", "--data", folder, "--batch", "4", "--on-error", "skip", "--json",
                            "--threads", "3", "--prefetch", "2", "--sample-log", "log")
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertEqual(record["verdict"], "degraded")
        self.assertEqual(value(record, "skipped_samples"), 1)
        self.assertIn(name, record["reason"])
        self.assertIn(name, done.stderr)
        used = collections.Counter(line.split()[3] for line in (self.dir / "log").read_text().splitlines())
        self.assertEqual(set(used.values()), {1})
        self.assertEqual(len(used) + 1 + value(record, "dropped_tail_samples"), SAMPLES)

    def test_truncated(self):
        # The name and the size stay those of the manifest: only the decoder can tell.
        def cut(path):
            data = path.read_bytes()
            path.write_bytes(data[:len(data) // 2] + b"\0" * (len(data) - len(data) // 2))
        self.check_fails_and_skips(cut)

    def test_no_jpeg(self):
        self.check_fails_and_skips(lambda path: path.write_bytes(b"x" * path.stat().st_size))

    def test_vanished(self):
        self.check_fails_and_skips(lambda path: path.unlink())

    def test_shrunk(self):
        self.check_fails_and_skips(lambda path: path.write_bytes(path.read_bytes()[:100]))

    def test_empty_file(self):
        self.check_fails_and_skips(lambda path: path.write_bytes(b""))

    def test_a_damaged_shard_is_named_once(self):
        self.run_cli("generate", "imagenet", "--out", "shards", "--samples", 36, "--set", "median=8kB", "--format", "tfrecord",
                     "--set", "shards=3", "--seed", 7)
        shard = self.dir / "shards" / "imagenet-00001-of-00003.tfrecord"
        intact = shard.read_bytes()
        for damaged, why in ((intact[:len(intact) // 2], f"{shard.name}' ends before byte "),
                             (intact[:3000] + bytes(len(intact) - 3000), f"cannot use '{shard.name}': ")):
            shard.write_bytes(damaged)
            for threads, epochs in ((1, 1), (3, 2)):
                done = self.run_cli("train", "alexnet", "--data", "shards", "--batch", 4, "--set", "image=32", "--on-error", "skip", "--json",
                                    "--threads", threads, "--epochs", epochs, "--seed", 3)
                [record] = map(json.loads, done.stdout.splitlines())
                skipped = int(value(record, "skipped_samples"))
                self.assertGreaterEqual(skipped, 2 * epochs)
                self.assertIn(message("samples-skipped", skipped=skipped), record["reason"])
                [line] = [line for line in done.stderr.splitlines() if "skipped: " in line]
                self.assertIn(why, line)
                self.assertRegex(line, rf"\(the sample at byte \d+, and {skipped - 1} more of it\)$")

    def test_everything_is_bad(self):
        folder, pictures = self.corpus()
        for path in pictures:
            path.write_bytes(b"?" * path.stat().st_size)
        begin = time.monotonic()
        done = self.run_cli("train", "alexnet", "--data", folder, "--batch", "4", "--steps", "1000", "--on-error", "skip",
                            "--json", expect=1, timeout=60)
        self.assertLess(time.monotonic() - begin, 60)
        [record] = map(json.loads, done.stdout.splitlines())
        self.assertEqual(record["verdict"], "failed")
        self.assertIn(message("no-batch-made"), record["reason"])
        self.assertEqual(value(record, "steps"), 0)

    def test_a_scanned_folder_with_something_else_in_it(self):
        folder, pictures = self.corpus()
        shutil.rmtree(folder / ".penstock")
        pictures[3].write_bytes(b"not a picture at all")
        done = self.run_cli("train", "alexnet", "--data", folder, "--scan", "--batch", "4", "--on-error", "skip")
        self.assertIn(pictures[3].name, done.stderr)

    def test_a_missing_object_on_another_tier_is_named_before_the_start(self):
        copy, pictures = self.corpus()
        pictures[0].unlink()
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--tier", f"other=posix:{copy}", "--batch", "4", "--json",
                            expect=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("'other'", done.stderr)
        self.assertIn(pictures[0].name, done.stderr)

    def test_a_short_object_on_another_tier_fails_that_tier_alone(self):
        copy, pictures = self.corpus()
        os.truncate(pictures[0], 100)
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--tier", f"other=posix:{copy}", "--batch", "4", "--json",
                            expect=1)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([record["verdict"] for record in records], ["ok", "failed"])
        self.assertIn(pictures[0].name, records[1]["reason"])

    def test_an_empty_folder(self):
        (self.dir / "empty").mkdir()
        done = self.run_cli("train", "alexnet", "--data", "empty", "--scan", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("empty", done.stderr)
        done = self.run_cli("train", "alexnet", "--data", "empty", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("--scan", done.stderr)

    def test_fewer_samples_than_a_batch(self):
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", expect=2)
        self.assertIn(f"--batch {SAMPLES}", done.stderr)
        self.assertFalse((self.dir / "penstock-results").exists())

    def test_wrong_arguments(self):
        data = ("--data", self.made / "corpus", "--batch", "8")
        for words, hint in ((("alexnett", *data), "alexnet"),
                            (data, "--list"),
                            (("alexnet",), "--data"),
                            (("alexnet", *data, "--threads", "0"), "threads"),
                            (("alexnet", *data, "--threads", "100000"), "threads"),
                            (("alexnet", *data, "--batch", "0"), "batch"),
                            (("alexnet", *data, "--batch", "99999999999999999999"), "batch"),
                            (("alexnet", *data, "--prefetch", "-1"), "prefetch"),
                            (("alexnet", *data, "--steps", "0"), "steps"),
                            (("alexnet", *data, "--prefech", "1"), "--prefetch"),
                            (("alexnet", *data, "--decode", "half"), "full"),
                            (("alexnet", *data, "--accelerator", "gpu"), "emulated"),
                            (("alexnet", *data, "--accelerator", "emulated"), "step"),
                            (("alexnet", *data, "--accelerator", "emulated:step=10"), "step"),
                            (("alexnet", *data, "--accelerator", "emulated:stepp=10ms"), "step"),
                            (("alexnet", *data, "--set", "imag=3"), "image"),
                            (("alexnet", *data, "--set", "image=0"), "image"),
                            (("alexnet", *data, "--set", "image"), "KEY=VALUE"),
                            (("alexnet", *data, "--shuffle", "locally"), "local")):
            with self.subTest(words=words[-2:]):
                done = self.run_cli("train", *words, expect=2)
                self.assertIn(hint, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_more_prefetching_than_memory(self):
        for depth in ("100000000", str(2**63 - 1)):
            done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--prefetch", depth,
                                expect=None)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn("--prefetch", done.stderr)

    def test_a_sample_log_that_cannot_be_written(self):
        done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--sample-log",
                            "no/such/folder/log", expect=None)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("no/such/folder/log", done.stderr)


class Stuck(TrainTest):
    """A tier that takes an hour for a read acts as one that hangs."""

    def stuck(self, *args):
        return ("train", "stream", "--data", self.made / "corpus", "--tier", f"slow=posix:{self.made / 'corpus'},latency=1h", "--tier",
                f"behind=posix:{self.made / 'corpus'}", "--batch", "4", "--steps", "2", *args)

    def test_a_back_end_that_gives_nothing_is_given_up(self):
        start = time.monotonic()
        [fast, slow, behind] = self.records(*self.stuck("--stall-timeout", "5s"), expect=1)
        self.assertLess(time.monotonic() - start, 120)
        self.assertEqual(fast["verdict"], "ok", fast["reason"])
        self.assertEqual(slow["verdict"], "timed_out")
        self.assertIn(message("no-sample-for-seconds", n=5), slow["reason"])
        self.assertIn(message("slow-object-named"), slow["reason"])
        self.assertEqual(behind["verdict"], "skipped")

    def test_ctrl_c_does_not_wait_for_it(self):
        log = self.dir / "log"
        process = subprocess.Popen([PENSTOCK, *map(str, self.stuck("--stall-timeout", "0s", "--sample-log", log))], cwd=self.dir,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not pathlib.Path(f"{log}.slow").exists():  # made before the second tier is read
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)
        records = [json.loads(line) for file in (self.dir / "penstock-results").glob("*.jsonl") for line in file.read_text().splitlines()]
        self.assertIn("interrupted", [record["verdict"] for record in records])


class Interrupts(TrainTest):
    def wait_for_log(self, lines):
        log = self.dir / "log"
        deadline = time.monotonic() + 120
        while not (log.exists() and (not lines or log.stat().st_size > 0)):
            self.assertLess(time.monotonic(), deadline, "training does not begin")
            time.sleep(0.02)

    def start_training(self, *args):
        return self.start("train", "alexnet", "--data", self.made / "corpus", "--batch", "8", "--sample-log", "log",
                          *args)

    def test_sigint_keeps_what_was_measured(self):
        process = self.start_training("--steps", "100000", "--accelerator", "emulated:step=5ms", "--json")
        self.wait_for_log(lines=True)  # its buffer was full once: some steps have ended
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        [record] = map(json.loads, out.splitlines())
        self.assertEqual(record["verdict"], "interrupted")
        self.assertGreater(value(record, "steps"), 0)
        stored = list((self.dir / "penstock-results").iterdir())
        self.assertEqual([path.suffix for path in stored], [".jsonl"])
        lines = (self.dir / "log").read_text().splitlines()
        self.assertEqual(len(lines), 8 * value(record, "steps"))

    def test_a_manifest_that_is_cut_short_under_it(self):
        folder, _ = self.corpus()
        process = self.start("train", "alexnet", "--data", folder, "--batch", "8", "--steps", "100000", "--sample-log", "log")
        self.wait_for_log(lines=True)
        os.truncate(folder / ".penstock" / "manifest", 0)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn(message("object-became-shorter"), err)

    def test_sigterm_in_the_middle_of_a_long_step(self):
        process = self.start_training("--accelerator", "emulated:step=1h", "--prefetch", "3")
        self.wait_for_log(lines=False)
        time.sleep(0.3)  # most likely in the first step now; before it, it must stop as well
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, err)


if __name__ == "__main__":
    main()
