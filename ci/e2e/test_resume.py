"""generate --resume on what is there already: finished, robbed of objects, or begun as something else."""

import json
import re
import shutil

import penstock_cli
from penstock_cli import tree

WORDS = ("generate", "climate", "--set", "shape=2,8,8", "--samples", 6, "--seed", 7)


class Resume(penstock_cli.CliTest):
    def test_a_finished_one_says_so_in_json_too(self):
        self.run_cli(*WORDS, "--out", "data")
        before = tree(self.dir / "data")
        done = self.run_cli(*WORDS, "--out", "data", "--resume", "--json")
        self.assertIn("nothing to do", done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual((row["kind"], row["recipe"], row["samples"], row["seed"]), ("complete", "climate", 6, 7))
        self.assertEqual(tree(self.dir / "data"), before)

    def test_what_is_said_to_be_there_is_what_resume_keeps(self):
        for fault, said in (("publish:enospc@#4", True), ("publish:enospc@#4..", False)):
            done = self.run_cli(*WORDS, "--threads", 1, "--out", f"posix:{self.dir}/full,fail={fault}", expect=1)
            there = re.search(r"(\d+) of 6 samples are there; go on with", done.stderr)
            self.assertEqual(bool(there), said, done.stderr)
            self.assertIn("go on with: ", done.stderr)
            done = self.run_cli("generate", "climate", "--out", "full", "--resume")
            kept = re.search(r"kept (\d+) samples", done.stdout)
            self.assertEqual(kept and kept[1], there and there[1])
            shutil.rmtree(self.dir / "full")

    def test_another_recipe_is_told_by_what_was_begun(self):
        words = ("generate", "cifar10", "--samples", 6, "--set", "samples_per_file=2")
        self.run_cli(*words, "--out", "whole")
        self.run_cli(*words, "--out", f"posix:{self.dir}/half,fail=publish:eio@#3..", expect=1)
        for out in ("whole", "half"):
            for recipe in ("climate", "imagenet", "unet3d"):  # none of which the format of cifar10 takes
                done = self.run_cli("generate", recipe, "--out", out, "--resume", expect=1)
                self.assertIn(f"recipe cifar10, not {recipe}", done.stderr)

    def test_what_a_finished_one_lacks_is_made_again(self):
        self.run_cli(*WORDS, "--out", "data")
        before = tree(self.dir / "data")
        names = sorted(name for name in before if name.endswith(".h5"))
        (self.dir / "data" / names[0]).unlink()
        (self.dir / "data" / names[2]).write_bytes(before[names[2]][:-1])
        planned = self.run_cli("generate", "climate", "--out", "data", "--resume", "--dry-run")
        self.assertNotIn("nothing to do", planned.stderr)
        self.assertIn(names[0], planned.stderr)
        done = self.run_cli("generate", "climate", "--out", "data", "--resume")
        self.assertIn(f"'{names[0]}'", done.stderr)
        self.assertIn("2 of its 7 objects", done.stderr)
        self.assertIn("kept 4 samples", done.stdout)
        self.assertEqual(tree(self.dir / "data"), before)
        self.run_cli("verify", "data")

    def test_mending_looks_for_room_first(self):
        self.run_cli(*WORDS, "--out", "data")
        before = tree(self.dir / "data")
        names = sorted(name for name in before if name.endswith(".h5"))
        for name in names[:2]:
            (self.dir / "data" / name).unlink()
        (self.dir / "data" / names[2]).write_bytes(before[names[2]][:-1])
        robbed = tree(self.dir / "data")
        missing = sum(len(before[name]) for name in names[:2]) + 1
        used = sum(len(content) for content in robbed.values() if content is not None)
        small = f"posix:{self.dir / 'data'},capacity={used + missing - 1}"
        done = self.run_cli("generate", "climate", "--out", small, "--resume", expect=1)
        self.assertIn("3 objects of", done.stderr)
        self.assertIn("free: make room", done.stderr)
        self.assertEqual(tree(self.dir / "data"), robbed)
        planned = self.run_cli("generate", "climate", "--out", small, "--resume", "--dry-run", "--json")
        self.assertIn("warning: 3 objects of", planned.stderr)
        self.assertIn("make room", json.loads(planned.stdout)["refused"])
        self.run_cli("generate", "climate", "--out", f"posix:{self.dir / 'data'},capacity={used + missing + 8192}", "--resume")
        self.assertEqual(tree(self.dir / "data"), before)


if __name__ == "__main__":
    penstock_cli.main()
