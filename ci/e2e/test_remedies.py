#!/usr/bin/env python3
"""A command that a message recommends works when it is pasted into a shell, also with names that a shell would split."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import penstock_cli
from corpus_case import CorpusTest
from penstock_cli import PENSTOCK

ODD = "a folder; it's (odd)"


class Remedies(CorpusTest):
    def setUp(self):
        super().setUp()
        self.dir = self.dir / ODD
        self.dir.mkdir()

    def pasted(self, text, command, expect=0):
        """Runs in a shell the last command of this name that a line of the text recommends, up to the line's end; returns its output."""
        found = re.search(rf".*\bpenstock ({command}\b.*)$", text, re.MULTILINE)
        self.assertIsNotNone(found, text)
        line = f'penstock() {{ "$PROGRAM" "$@"; }}; penstock {found[1]}'
        done = subprocess.run(["sh", "-c", line], cwd=self.dir, capture_output=True, text=True, env={"PROGRAM": PENSTOCK, "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, expect, f"{found[0]}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def changed(self, file):
        """Changes one byte in the middle of the file."""
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)

    def test_a_copy_for_a_tier_that_lacks_the_objects(self):
        photos = self.folder("my photos")
        (photos / "notes.txt").write_text("a text is a sample, too")
        (self.dir / "labels").mkdir()
        (self.dir / "labels" / "list.txt").write_text("behind a link")
        (photos / "labels").symlink_to(self.dir / "labels")
        corpus = self.corpus("my corpus")
        (self.dir / "my manifest").write_bytes((corpus / ".penstock" / "manifest").read_bytes())
        (corpus / ".penstock" / "manifest").unlink()
        for number, words in enumerate([(photos, "--scan", "--types", "any"), (photos, "--scan", "--types", "txt,jpg", "--follow-links"),
                                        (corpus, "--manifest", "my manifest")]):
            with self.subTest(words=words):
                read = ("read", *words, "--tier", f"fast={self.dir}/the copy {number}", "--only-tiers", "--threads", 1, "--min-time", "0s",
                        "--repeat", 1, "--cache", "asis", "--no-baseline", "--no-ceiling")
                self.pasted(self.run_cli(*read, expect=1).stderr, "copy")
                self.run_cli(*read)

    def test_a_new_folder_where_a_tier_holds_something_else(self):
        corpus = self.corpus("my corpus")
        self.run_cli("generate", "malware", "--samples", 3, "--seed", 3, "--set", "median=10kB", "--out", "another corpus")
        self.run_cli("copy", corpus, "--to", "a damaged copy")
        for file in (self.dir / "a damaged copy").rglob("*.jpg"):
            file.unlink()
        for tier in ("another corpus", "a damaged copy", "my corpus.photos.2"):
            with self.subTest(tier=tier):
                if tier.endswith(".2"):
                    (self.dir / tier).mkdir()
                    (self.dir / tier / "a file").write_text("")
                read = ("--only-tiers", "--threads", 1, "--min-time", "0s", "--repeat", 1, "--cache", "asis", "--no-baseline", "--no-ceiling")
                self.pasted(self.run_cli("read", corpus, "--tier", f"fast={tier}", *read, expect=1).stderr, "copy")
                self.run_cli("read", corpus, "--tier", "fast=FOLDER", *read)
                shutil.rmtree(self.dir / "FOLDER")

    def test_files_that_are_never_staged(self):
        """What Python reads to start is left out without --include and --exclude: these are no remedy."""
        library = self.dir / "lib" / "python3.11"
        library.mkdir(parents=True)
        (library / "a_module_of_mine.py").write_text("x = 1")
        program = f"import sys; sys.path.insert(0, {str(library)!r}); import a_module_of_mine; open('data/f').read()"
        (self.dir / "data").mkdir()
        (self.dir / "data" / "f").write_text("x" * 5000)
        self.run_cli("profile", "run", "-o", "session", "--", sys.executable, "-c", program)
        (self.dir / "fast").mkdir()
        advise = ("stage", "advise", "session", "--fast", "fast", "--capacity", "1GiB", "--min-time", "10ms")
        self.assertNotIn("--include", self.run_cli(*advise, "--slow", library, expect=1).stderr)
        self.assertIn("--include", self.run_cli(*advise, "--slow", "data", "--include", "/nothing/*", expect=1).stderr)

    def test_a_data_set_that_is_unfinished_or_damaged(self):
        corpus = self.dir / "my corpus"
        generate = ("generate", "malware", "--samples", 12, "--seed", 3, "--set", "median=10kB", "--out", corpus)
        self.run_cli(*generate)
        next(iter(corpus.rglob("*.bytes"))).unlink()
        self.pasted(self.run_cli("verify", corpus, expect=1).stderr, "generate")
        self.run_cli("verify", corpus)
        (corpus / ".penstock" / "manifest").unlink()
        self.pasted(self.run_cli("describe", corpus, expect=1).stderr, "describe")
        self.run_cli("verify", corpus)
        manifest = corpus / ".penstock" / "manifest"
        manifest.write_bytes(manifest.read_bytes()[:300])
        resumed = self.run_cli("generate", "malware", "--out", corpus, "--resume", expect=1)
        self.pasted(self.pasted(resumed.stderr, "describe", expect=1), "describe")
        self.run_cli("verify", corpus)

    def test_a_manifest_of_an_unfinished_data_set(self):
        corpus = self.dir / "my corpus"
        self.run_cli("generate", "malware", "--samples", 12, "--seed", 3, "--set", "median=10kB", "--out", f"{corpus},fail=write:eio@#5..", expect=1)
        save = ("describe", corpus, "--scan", "--checksum", "--save", corpus / ".penstock" / "manifest")
        self.pasted(self.run_cli(*save, expect=2).stderr, "generate")
        self.run_cli("verify", corpus)

    def test_wrong_objects_of_a_source(self):
        corpus = self.corpus("my corpus")
        (self.dir / "my manifest").write_bytes((corpus / ".penstock" / "manifest").read_bytes())
        os.truncate(next(corpus.rglob("*.jpg")), 100)
        for words in ((corpus,), (corpus, "--manifest", "my manifest")):
            text = self.pasted(self.run_cli("copy", *words, "--to", "a copy", expect=1).stderr, "verify", expect=1)
            self.assertIn("100", text)

    def test_checksums_to_verify_against(self):
        photos = self.folder("my photos")
        (photos / "notes.txt").write_text("a text is a sample, too")
        read = ("--verify", "--threads", 1, "--min-time", "0s", "--repeat", 1, "--cache", "asis", "--no-baseline", "--no-ceiling")
        self.pasted(self.run_cli("read", photos, "--scan", "--types", "txt,jpg", *read, expect=77).stderr, "describe")
        self.run_cli("read", photos, "--manifest", "FILE", *read)

    def test_names_of_recipes_mini_apps_and_baselines(self):
        for command, listed in (("generate", "imagenet"), ("train", "alexnet")):
            self.assertIn(listed, self.pasted(self.run_cli(command, expect=2).stderr, f"{command} --list"))
        self.pasted(self.run_cli("baseline", "remove", "main", "--results", "my results", expect=1).stderr, "baseline list")

    def test_a_list_where_one_number_is_taken(self):
        for words in (("read", "my corpus", "--depth", "1,2"), ("checkpoint", "bench", 'my "slow" store', "--steps", "2..4"),
                      ("train", "stream", "--data", "my corpus", "--batch", "1,2,4")):
            with self.subTest(words=words):
                text = self.run_cli(*words, expect=2).stderr
                fixed = dict(zip((word[2:] for word in words[2:-2:2]), words[3:-2:2])) if words[0] == "train" else {}
                (self.dir / "FILE.yaml").write_text(re.search(r"contains:? (\{.*)\}", text)[1] + f", fixed: {json.dumps(fixed)}}}")
                done = self.run_cli("sweep", "FILE.yaml", "--dry-run")
                self.assertEqual(done.stdout.count(shlex.join(words[:-2])), 2 if words[0] == "read" else 3, done.stdout)

    def test_flags_that_a_message_recommends(self):
        photos, corpus, links, other = self.folder("my photos"), self.corpus("my corpus"), self.dir / "links", self.dir / "other"
        for folder in (links, other):
            folder.mkdir()
        (links / "photos").symlink_to(photos)
        (other / "a file").write_text("")
        read = ("read", corpus, "--threads", 1, "--min-time", "0s", "--repeat", 1, "--cache", "asis", "--no-baseline", "--no-ceiling")
        train = ("train", "stream", "--data", corpus, "--steps", 2, "--batch", 2)
        added = (
            (1, ("describe", photos), ("--scan",)), (2, ("describe", photos, "--types", "any"), ("--scan",)),
            (2, ("describe", photos, "--follow-links"), ("--scan",)), (2, ("describe", photos, "--checksum"), ("--scan",)),
            (1, ("describe", links, "--scan"), ("--follow-links",)), (2, ("describe", corpus, "--samples", 3), ("--content",)),
            (1, ("copy", photos, "--scan", "--to", other), ("--replace",)),
            (2, (*train, "--checkpoint-every", 1, "--payload", "64KiB"), ("--checkpoint-to", "my tier")))
        for code, words, flags in added:
            with self.subTest(words=words):
                self.assertIn(flags[0], self.run_cli(*words, expect=code).stderr)
                self.run_cli(*words, *flags)
        removed = ((read, ("--window", 4)), (read, ("--only-tiers",)), (train, ("--decode", "crop")), (train, ("--resize", "antialias")),
                   (train, ("--validation", 1)), (train, ("--keep", 3)))
        for words, flags in removed:
            with self.subTest(words=words, flags=flags):
                self.assertIn(flags[0], self.run_cli(*words, *flags, expect=2).stderr)
                self.run_cli(*words)
        text = self.run_cli(*train[:-1], 100, expect=2).stderr
        self.run_cli(*train[:-1], re.search(r"choose --batch (\d+)", text)[1])

    def test_a_session(self):
        for options in ((), ("-o", "my session")):
            done = self.run_cli("profile", "run", *options, "--", sys.executable, "-c", "open('f', 'w').write('x' * 5000)")
            self.assertIn("5000", self.pasted(done.stderr, "profile report").replace(" ", "").replace("4.9KiB", "5000"))
        self.pasted(self.run_cli("profile", "attach", "my session", expect=2).stderr, "profile status")

    def test_a_plan(self):
        corpus, plan = self.dir / "my corpus", self.dir / "my plan.json"
        self.run_cli("generate", "malware", "--out", corpus, "--samples", 20, "--seed", 5, "--set", "median=80kB")
        (self.dir / "fast").mkdir()
        tiers = (f"slow=posix:{corpus},limit=10MB/s,latency=8ms", f"fast=posix:{self.dir}/fast,limit=400MB/s")
        reader = f"import pathlib\nfor path in sorted(pathlib.Path({str(corpus)!r}).rglob('*.bytes')): path.read_bytes()"
        self.run_cli("profile", "run", "-o", "session", "--", sys.executable, "-c", reader)
        advise = ("stage", "advise", "session", "--slow", tiers[0], "--fast", tiers[1], "--capacity", "1GiB", "--min-time", "60ms", "--repeat", 5,
                  "--cache", "cold", "-o", plan)
        for _ in range(6):  # a machine so busy that its measurement is too uncertain is asked again
            text = self.run_cli(*advise).stdout
            if "stage apply" in text:
                break
        read = ("read", corpus, "--overlay", plan, "--threads", 1, "--min-time", "0s", "--repeat", 1, "--cache", "asis", "--no-baseline", "--no-ceiling")
        self.pasted(self.run_cli(*read, expect=1).stderr, "stage apply")
        self.run_cli(*read)
        self.pasted(self.run_cli(*advise, expect=1).stderr, "stage revert")
        self.pasted(text, "stage apply")
        self.run_cli("stage", "apply", plan, "--link-farm", "my links")
        for path in corpus.rglob("*.bytes"):
            self.changed(path)
        self.pasted(self.run_cli("stage", "apply", plan, expect=1).stderr, "stage apply", expect=1)  # 1: no copies of what was changed
        for path in (self.dir / "my links").rglob("*.bytes"):
            self.assertTrue(path.resolve().is_relative_to(corpus.resolve()), path)
        self.pasted(self.run_cli(*read, expect=1).stderr, "stage revert")

    def test_a_checkpoint_that_is_not_durable_yet(self):
        done = self.run_cli("checkpoint", "save", "slow store,limit=100kB/s", "--burst-buffer", "fast store", "--payload", "1MiB", "--run", "my-run",
                            "--timeout", "50ms", expect=3)
        self.pasted(done.stderr.replace(",limit=100kB/s", ""), "checkpoint drain")
        states = self.records("checkpoint", "ls", "fast store", "slow store")
        self.assertTrue(all(row["state"] in ("durable", "both") for row in states if "state" in row), states)

    def test_checkpoints_of_a_training_that_are_not_durable_yet(self):
        train = ("train", "stream", "--data", self.corpus("my corpus"), "--steps", 2, "--batch", 2, "--checkpoint-every", 1, "--payload", "64KiB",
                 "--burst-buffer", "fast store", "--run", "my-run")
        done = self.run_cli(*train, "--checkpoint-to", "slow store,limit=20kB/s", "--on-full-timeout", "50ms", expect=1)
        self.pasted(done.stderr.replace(",limit=20kB/s", ""), "checkpoint drain")
        used = self.run_cli(*train, "--checkpoint-to", "slow store", expect=2)
        self.assertIn("--run NAME", used.stderr)
        self.run_cli(*train[:-1], "another-run", "--checkpoint-to", "slow store")

    def test_wrong_checkpoints(self):
        self.run_cli("checkpoint", "save", "slow store", "--burst-buffer", "fast store", "--payload", "1MiB")
        saved = next(self.dir.glob("slow store/ckpt/*/*/rank-0.bin"))
        self.changed(saved)
        text = self.run_cli("checkpoint", "restore", "slow store", expect=4).stderr
        self.assertIn("rank-0.bin", self.pasted(text, "checkpoint verify", expect=1))
        text = self.run_cli("checkpoint", "gc", "fast store", "slow store", "--keep-fast", 0).stderr
        self.pasted(text, "checkpoint drain", expect=1)  # a wrong copy was found, and a new one was made
        self.run_cli("checkpoint", "verify", "fast store", "slow store")
        saved.with_name("MANIFEST").write_text("{}")
        self.pasted(self.run_cli("checkpoint", "status", "slow store").stdout, "checkpoint verify", expect=1)

    def test_results_of_a_sweep(self):
        corpus = self.corpus("my corpus")
        (self.dir / "sweep.yaml").write_text(json.dumps({"name": "threads", "command": "read", "nouns": [str(corpus)], "grid": {"threads": [1, 2]},
                                                         "fixed": {"cache": "asis", "min-time": "0s", "repeat": 1}}))
        done = self.run_cli("sweep", "sweep.yaml", "--results", "my results")
        self.pasted(done.stdout, "report")


if __name__ == "__main__":
    penstock_cli.main()
