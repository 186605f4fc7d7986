"""generate and the place it fills: room, folders that are full, closed or taken, and one process at a time."""

import contextlib
import json
import os
import shutil
import subprocess
import time
import unittest

from messages import message
import penstock_cli
from generate_case import SMALL, GenerateTest
from penstock_cli import tree


class Targets(GenerateTest):
    @contextlib.contextmanager
    def mounted(self, options):
        """A small file system in memory, as root can mount it."""
        out = self.dir / "mounted"
        out.mkdir(exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "penstock-test", str(out)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest(f"cannot mount here: {done.stderr.strip()}")
        try:
            yield out
        finally:
            subprocess.run(["umount", str(out)], check=False)

    def bytes_of(self, samples):
        """That that many pictures are planned to take."""
        words = ("generate", "imagenet", "--out", "nowhere", "--samples", samples, *SMALL, "--dry-run", "--json")
        return json.loads(self.run_cli(*words).stdout)["bytes"]

    def test_what_does_not_fit_is_refused_before_anything_is_made(self):
        small = f"posix:{self.dir / 'small'},capacity=300KB"
        for words in ((), ("--resume",)):
            done = self.generate(small, 60, *words, expect=1)
            self.assertRegex(done.stderr, "60 samples of 'imagenet' take about [0-9.]+ KiB, and '.*small' has 293 KiB free")
            self.assertIn("--samples", done.stderr)
            planned = self.generate(small, 60, *words, "--dry-run")
            self.assertIn("warning: 60 samples of 'imagenet' take about", planned.stderr)
            self.assertIn("bytes", planned.stdout)
        plan = json.loads(self.generate(small, 60, "--dry-run", "--json").stdout)
        self.assertIn("300", str(plan["free_bytes"]))
        self.assertIs(plan["bytes_at_most"], False)
        self.assertIn("293 KiB free", plan["refused"])
        self.assertFalse((self.dir / "small").exists())
        self.assertNotIn("refused", json.loads(self.generate(small, 20, "--dry-run", "--json").stdout))
        self.generate(small, 20)

    def test_a_plan_knows_what_formats_put_around_samples(self):
        for recipe, form, settings, samples in (
                ("cifar10", "webdataset", (), 700), ("cifar10", "webdataset", ("samples_per_file=1",), 40),
                ("cifar10", "tfrecord", ("shards=3",), 700), ("cifar10", "npz", ("samples_per_file=1",), 40),
                ("cifar10", "npy", ("samples_per_file=9",), 90), ("cifar10", "cifar", (), 500),
                ("climate", "hdf5", ("shape=2,8,8",), 20), ("imagenet", "hdf5", ("median=4kB", "shards=2"), 300),
                ("imagenet", "npz", ("median=4kB", "shards=2"), 300), ("imagenet", "files", ("median=4kB",), 30)):
            with self.subTest(recipe=recipe, form=form, settings=settings):
                out = f"{recipe}-{form}-{len(settings and settings[0])}"
                words = ["generate", recipe, "--format", form, "--seed", 3, "--out", out,
                         *(word for setting in settings for word in ("--set", setting))]
                planned = json.loads(self.run_cli(*words, "--samples", samples, "--dry-run", "--json").stdout)["bytes"]
                self.run_cli(*words, "--samples", samples)
                corpus = json.loads(self.run_cli("describe", out, "--json").stdout.splitlines()[0])
                made = sum(path.stat().st_size for path in (self.dir / out).rglob("*")
                           if path.is_file() and ".penstock" not in path.parts and not path.name.startswith("stats"))
                self.assertAlmostEqual(planned, made, delta=made * 0.05)
                self.assertEqual(corpus["samples"], samples)
                shutil.rmtree(self.dir / out)
                budget = json.loads(self.run_cli(*words, "--bytes", planned // 2, "--dry-run", "--json").stdout)
                self.assertLessEqual(budget["bytes"], planned // 2 * 1.05)
                self.assertGreater(budget["bytes"], planned // 2 * 0.6)

    def test_a_resume_needs_room_for_what_is_missing_alone(self):
        self.generate("whole", 60)
        whole = self.bytes_of(60)
        out = self.dir / "part"
        self.generate(f"posix:{out},fail=publish:eio@#40", 60, "--threads", 1, expect=1)
        for words, code in (((), 1), (("--dry-run",), 0)):
            done = self.generate(f"posix:{out},capacity={whole * 9 // 10}B", 60, "--resume", *words, expect=code)
            self.assertRegex(done.stderr, "take about [0-9.]+ KiB more, and")
        self.generate(f"posix:{out},capacity={whole + 65536}B", 60, "--resume")
        self.assert_same_tree(out, self.dir / "whole")

    def test_a_full_tier_can_be_resumed(self):
        self.generate("whole", 60)
        out = self.dir / "full"
        done = self.generate(f"posix:{out},fail=write:enospc@#30..", 60, expect=1)
        self.assertIn(message("no-space-left"), done.stderr)
        self.assertIn("--resume", done.stderr)
        self.assert_no_corpus(out)
        self.assert_whole_objects(out, self.dir / "whole")
        self.generate(out, 60, "--resume")
        self.assert_same_tree(out, self.dir / "whole")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small file system")
    def test_a_full_file_system_can_be_resumed(self):
        self.generate("whole", 60)
        room = self.bytes_of(60) // 1024 + 8  # and its last pages are taken by the ends of files
        with self.mounted(f"size={room}k") as out:
            done = self.generate(out, 60, expect=1)
            self.assertIn(message("no-space-left"), done.stderr)
            self.assert_no_corpus(out)
            self.assert_whole_objects(out, self.dir / "whole")
            subprocess.run(["mount", "-o", "remount,size=8m", str(out)], check=True)
            self.generate(out, 60, "--resume")
            self.assert_same_tree(out, self.dir / "whole")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small file system")
    def test_without_room_to_begin_nothing_stays(self):
        with self.mounted("nr_inodes=2") as out:
            self.assertIn(message("room-for-more-samples", n=1), self.generate(out, 1, expect=1).stderr)
            self.assertEqual(os.listdir(out), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small file system")
    def test_folders_count_as_the_files_in_them_do(self):
        with self.mounted("size=200m,nr_inodes=300") as out:
            words = ("generate", "imagenet", "--set", "median=4KB", "--seed", 3)
            refused = self.run_cli(*words, "--samples", 200, "--out", out / "a", expect=1).stderr
            self.assertIn("406 inodes (200 objects, 200 folders", refused)
            self.assertEqual(os.listdir(out), [])
            self.assertIn("406 inodes", self.run_cli(*words, "--samples", 200, "--out", out / "a", "--dry-run").stderr)
            self.run_cli(*words, "--samples", 200, "--out", "source")
            self.assertIn(message("count-of-files-and-folders", n=403), self.run_cli("copy", "source", "--to", out / "a", expect=1).stderr)
            slowly = f"posix:{out},latency=10ms"  # for seconds: what is noted of it meanwhile takes no room of its own
            self.run_cli(*words, "--samples", 146, "--out", slowly)  # 292 of them, and 6: all of 299 but one
            shutil.rmtree(out / "n00000000")
            self.run_cli(*words, "--samples", 146, "--out", out, "--resume")
            for path in list(out.iterdir()):
                shutil.rmtree(path)
            self.run_cli(*words, "--samples", 148, "--out", "smaller")
            self.run_cli("copy", "smaller", "--to", out)  # all of 299
            self.run_cli("copy", "smaller", "--to", out)
            for path in list(out.iterdir()):
                shutil.rmtree(path)
            process = self.start("copy", "smaller", "--to", f"{out},write_limit=100k", "--threads", 2)
            while len(os.listdir(out)) < 5 and process.poll() is None:
                time.sleep(0.01)
            with self.assertRaises(OSError):  # somebody else comes in between
                for n in range(300):
                    (out / f"theirs-{n}").mkdir()
            output = process.communicate()[1]
            self.assertEqual(process.returncode, 1, output)
            self.assertRegex(output, "has [0-9.]+ MiB free, but only [0-9]+ free inodes.*: No space left")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small file system")
    def test_files_that_a_file_system_has_no_room_for_are_refused_before_anything_is_made(self):
        # 1000 files of 3 KiB are 2.9 MiB, and 3.9 MiB in pages.
        for options, why in (("size=3m,nr_inodes=2000", "in whole blocks, and '.*mounted' has 3.0 MiB free"),
                             ("size=64m,nr_inodes=501", r"1016 inodes \(1000 objects, 10 folders, 6 of .*\), and the file system of '.*mounted' has 500 free")):
            with self.subTest(options=options), self.mounted(options) as out:
                words = ("generate", "cifar10", "--format", "files", "--seed", 3)
                done = self.run_cli(*words, "--out", out, "--samples", 1000, expect=1)
                self.assertRegex(done.stderr, why)
                self.assertEqual(os.listdir(out), [])
                self.run_cli(*words, "--out", "source", "--samples", 1000)
                done = self.run_cli("copy", "source", "--to", out, expect=1)
                self.assertRegex(done.stderr, "the copy (needs [34].[0-9]+ MiB|needs 1013 inodes)")
                self.assertEqual(os.listdir(out), [])
                self.run_cli(*words, "--out", out, "--samples", 400)
                shutil.rmtree(self.dir / "source")

    def test_a_closed_folder_is_an_error_before_any_work(self):
        out = self.dir / "closed"
        out.mkdir(mode=0o555)
        kwargs = {}
        if os.geteuid() == 0:
            self.dir.chmod(0o777)
            kwargs = {"user": 65534, "group": 65534, "extra_groups": []}
            try:
                self.run_cli("--version", expect=None, **kwargs)
            except PermissionError:
                self.skipTest("an unprivileged user cannot reach the program here")
        done = self.generate(out, 5, expect=1, **kwargs)
        self.assertIn("Permission denied", done.stderr)
        self.assertIn("closed", done.stderr)
        self.assertEqual(os.listdir(out), [])

    def test_a_link_to_nothing_is_told(self):
        (self.dir / "link").symlink_to("nowhere")
        for out in ("link", "link/below"):
            for words in ((), ("--resume",), ("--dry-run",)):
                self.assertIn("link' is a broken link to 'nowhere'", self.generate(out, 5, *words, expect=2).stderr)
        self.assertEqual(os.listdir(self.dir), ["link"])

    def test_a_folder_with_something_in_it_is_left_alone(self):
        (self.dir / "mine").mkdir()
        (self.dir / "mine" / "thesis.tex").write_text("years of work", encoding="utf-8")
        for words in ((), ("--resume",), ("--dry-run",), ("--dry-run", "--resume")):
            done = self.generate("mine", 5, *words, expect=1)
            self.assertIn("thesis.tex", done.stderr)
            self.assertIn("empty", done.stderr)
        self.assertEqual(os.listdir(self.dir / "mine"), ["thesis.tex"])
        self.generate("corpus", 5)
        before = tree(self.dir)
        for words in ((), ("--dry-run",)):
            self.assertIn(message("corpus-already-there"), self.generate("corpus", 5, *words, expect=1).stderr)
            for file in ("mine/thesis.tex", "mine/thesis.tex/below"):
                self.assertIn(message("target-is-a-file"), self.generate(file, 5, *words, expect=2).stderr)
        self.assertIn(message("nothing-to-do"), self.generate("corpus", 5, "--dry-run", "--resume").stderr)
        self.assertEqual(tree(self.dir), before)

    def test_resume_begins_nothing_that_was_not_asked_for(self):
        (self.dir / "empty").mkdir()
        for out in ("none", "empty"):
            for words in ((), ("--dry-run",)):
                done = self.run_cli("generate", "imagenet", "--out", out, "--resume", *words, expect=1)
                self.assertIn(message("nothing-to-resume"), done.stderr)
                self.assertIn("--samples", done.stderr)
        self.assertEqual(tree(self.dir), {"empty": None})
        for out in ("none", "empty"):  # a script says the same line until it is done
            self.generate(out, 5, "--resume")
            self.assertIn(message("nothing-to-do"), self.generate(out, 5, "--resume").stderr)

    def test_the_target_is_one_process_at_a_time(self):
        process = self.start("generate", "imagenet", "--out", "posix:out,latency=6ms", "--samples", 400, *SMALL)
        deadline = time.monotonic() + 60
        while not (self.dir / "out" / ".penstock" / "generate.json").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        lines = [self.generate("out", 400, *words, expect=1) for words in ((), ("--resume",), ("--dry-run",))]
        lines.append(self.run_cli("describe", "out", expect=1))
        process.kill()
        process.communicate()
        for done in lines:
            self.assertIn(f"another 'penstock generate' (pid {process.pid} host ", done.stderr)
            self.assertIn(message("wait-for-other-process"), done.stderr)
            self.assertNotIn(message("remove-whole-folder"), done.stderr)
        self.assertIn("--resume", self.generate("out", 400, expect=1).stderr)

    def test_a_place_that_may_not_be_written_is_told_before(self):
        self.dir.chmod(0o755)
        (self.dir / "closed").mkdir(mode=0o755)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        if not user:
            (self.dir / "closed").chmod(0o555)
        try:
            subprocess.run([penstock_cli.PENSTOCK, "--version"], capture_output=True, check=True, **user)
        except (OSError, subprocess.CalledProcessError):  # below a folder that is closed to others, say
            self.skipTest("the program cannot be run by another user here")
        for out in ("closed", "closed/new/data"):
            for words in ((), ("--dry-run",)):
                done = self.generate(out, 5, *words, expect=1, **user)
                self.assertIn("--out must be in a folder with write permission", done.stderr)
                self.assertIn(f"'{self.dir / 'closed'}'", done.stderr)

    def test_memory_is_a_back_end_like_any_other(self):
        record = self.records("generate", "imagenet", "--out", "mem:anything", "--samples", 20, *SMALL)[0]
        self.assertEqual(record["tiers"]["data"]["backend"], "mem")
        self.assertEqual(record["corpus"]["samples"], 20)


if __name__ == "__main__":
    penstock_cli.main()
