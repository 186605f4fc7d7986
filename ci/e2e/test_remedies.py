#!/usr/bin/env python3
"""A command that a message recommends works when it is pasted into a shell, also with names that a shell would split."""

import json
import re
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

    def pasted(self, text, command):
        """Runs in a shell the last command of this name that a line of the text recommends, up to the line's end; returns its output."""
        found = re.search(rf".*\bpenstock ({command}\b.*)$", text, re.MULTILINE)
        self.assertIsNotNone(found, text)
        line = f'penstock() {{ "$PROGRAM" "$@"; }}; penstock {found[1]}'
        done = subprocess.run(["sh", "-c", line], cwd=self.dir, capture_output=True, text=True, env={"PROGRAM": PENSTOCK, "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0, f"{found[0]}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

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

    def test_a_session(self):
        for options in ((), ("-o", "my session")):
            done = self.run_cli("profile", "run", *options, "--", sys.executable, "-c", "open('f', 'w').write('x' * 5000)")
            self.assertIn("5000", self.pasted(done.stderr, "profile report").replace(" ", "").replace("4.9KiB", "5000"))

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

    def test_a_checkpoint_that_is_not_durable_yet(self):
        done = self.run_cli("checkpoint", "save", "slow store,limit=100kB/s", "--burst-buffer", "fast store", "--payload", "1MiB", "--run", "my-run",
                            "--timeout", "50ms", expect=3)
        self.pasted(done.stderr.replace(",limit=100kB/s", ""), "checkpoint drain")
        states = self.records("checkpoint", "ls", "fast store", "slow store")
        self.assertTrue(all(row["state"] in ("durable", "both") for row in states if "state" in row), states)

    def test_results_of_a_sweep(self):
        corpus = self.corpus("my corpus")
        (self.dir / "sweep.yaml").write_text(json.dumps({"name": "threads", "command": "read", "nouns": [str(corpus)], "grid": {"threads": [1, 2]},
                                                         "fixed": {"cache": "asis", "min-time": "0s", "repeat": 1}}))
        done = self.run_cli("sweep", "sweep.yaml", "--results", "my results")
        self.pasted(done.stdout, "report")


if __name__ == "__main__":
    penstock_cli.main()
