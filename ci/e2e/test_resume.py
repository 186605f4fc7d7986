"""generate --resume on what is there already: finished, robbed of objects, or started as something else."""

import json
import re
import shutil

from messages import message
import penstock_cli
from penstock_cli import tree

WORDS = ("generate", "climate", "--set", "shape=2,8,8", "--samples", 6, "--seed", 7)


class Resume(penstock_cli.CliTest):
    def test_a_finished_one_says_so_in_json_too(self):
        self.run_cli(*WORDS, "--out", "data")
        before = tree(self.dir / "data")
        done = self.run_cli(*WORDS, "--out", "data", "--resume", "--json")
        self.assertIn(message("nothing-to-do"), done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual((row["kind"], row["recipe"], row["samples"], row["seed"]), ("complete", "climate", 6, 7))
        self.assertEqual(tree(self.dir / "data"), before)

    def test_what_is_said_to_be_there_is_what_resume_keeps(self):
        for fault, printed in (("publish:enospc@#4", True), ("publish:enospc@#4..", False)):
            done = self.run_cli(*WORDS, "--threads", 1, "--out", f"posix:{self.dir}/full,fail={fault}", expect=1)
            there = re.search(r"(\d+) of 6 samples exists?; to continue", done.stderr)
            self.assertEqual(bool(there), printed, done.stderr)
            self.assertIn(message("how-to-go-on"), done.stderr)
            done = self.run_cli("generate", "climate", "--out", "full", "--resume")
            kept = re.search(r"kept (\d+) samples", done.stdout)
            self.assertEqual(kept and kept[1], there and there[1])
            shutil.rmtree(self.dir / "full")

    def test_dry_run_tells_what_is_kept_and_what_is_left(self):
        words = ("generate", "climate", "--out", "data", "--resume", "--dry-run")

        def plan():
            row = json.loads(self.run_cli(*words, "--json").stdout)
            return tuple(row.get(f"{what}_{which}") for which in ("kept", "to_make") for what in ("samples", "objects"))

        per_object = ("--set", "samples_per_file=2")
        self.run_cli(*WORDS, *per_object, "--threads", 1, "--out", f"posix:{self.dir}/data,fail=publish:eio@#4", expect=1)
        before = tree(self.dir / "data")
        kept = sorted(name for name in before if name.endswith(".h5"))
        self.assertEqual(plan(), (2 * len(kept), len(kept), 6 - 2 * len(kept), 3 - len(kept)))
        self.assertGreater(len(kept), 1)
        (self.dir / "data" / kept[0]).write_bytes(b"short")
        self.assertEqual(plan()[:2], (2 * len(kept) - 2, len(kept) - 1))
        shown = " ".join(self.run_cli(*words).stdout.split())
        self.assertIn(f"existing {2 * len(kept) - 2} samples in {len(kept) - 1} object", shown)
        self.assertIn(f"to generate {8 - 2 * len(kept)} samples in {4 - len(kept)} object", shown)
        (self.dir / "data" / kept[0]).write_bytes(before[kept[0]])
        self.assertEqual(tree(self.dir / "data"), before, "nothing is written")
        self.assertIn(message("kept-samples", n=2 * len(kept)), self.run_cli("generate", "climate", "--out", "data", "--resume").stdout)
        self.assertEqual(plan(), (6, 3, 0, 0))
        (self.dir / "data" / kept[0]).unlink()
        self.assertEqual(plan(), (4, 2, 2, 1))
        fresh = json.loads(self.run_cli(*WORDS, "--out", "new", "--resume", "--dry-run", "--json").stdout)
        self.assertNotIn("samples_kept", fresh)

    def test_another_recipe_is_recognised_by_what_was_started(self):
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
        self.assertNotIn(message("nothing-to-do"), planned.stderr)
        self.assertIn(names[0], planned.stderr)
        done = self.run_cli("generate", "climate", "--out", "data", "--resume")
        self.assertIn(f"'{names[0]}'", done.stderr)
        self.assertIn("2 of 7 objects", done.stderr)
        self.assertIn(message("kept-samples", n=4), done.stdout)
        self.assertEqual(tree(self.dir / "data"), before)
        self.run_cli("verify", "data")

    def test_what_holds_nothing_in_an_objects_place_is_replaced(self):
        self.run_cli(*WORDS, "--out", "data")
        before = tree(self.dir / "data")
        victim = self.dir / "data" / min(name for name in before if name.endswith(".h5"))
        for target in (victim.name, "nowhere"):  # in circles, and to nothing
            victim.unlink()
            victim.symlink_to(target)
            self.assertIn("1 of 7 objects", self.run_cli(*WORDS, "--out", "data", "--resume").stderr)
            self.assertFalse(victim.is_symlink())
            self.assertEqual(tree(self.dir / "data"), before)

    def test_wrong_bytes_are_not_called_right_and_verify_tells_how_to_mend_them(self):
        self.run_cli(*WORDS, "--out", "data")
        before = tree(self.dir / "data")
        names = sorted(name for name in before if name.endswith(".h5"))
        (self.dir / "data" / names[0]).write_bytes(before[names[0]][:-1] + b"~")
        (self.dir / "data" / names[1]).unlink()
        self.assertIn(message("kept-samples-of-right-size", n=5),
                      self.run_cli("generate", "climate", "--out", "data", "--resume").stdout)
        self.assertIn(message("bytes-not-checked"), self.run_cli("generate", "climate", "--out", "data", "--resume").stderr)
        output = self.run_cli("verify", "data", expect=1).stderr
        self.assertIn(message("remove-wrong-objects"), output)
        self.assertIn("penstock generate climate --out data --resume", output)
        (self.dir / "data" / names[0]).unlink()
        output = self.run_cli("verify", "data", expect=1).stderr
        self.assertNotIn("remove", output)
        self.run_cli(*output.strip().rsplit("penstock ", 1)[1].split())
        self.assertEqual(tree(self.dir / "data"), before)

    def test_a_manifest_that_is_lost_or_damaged_is_made_anew(self):
        self.run_cli(*WORDS, "--out", "data")
        manifest = self.dir / "data" / ".penstock" / "manifest"
        for content in (b"{", manifest.read_bytes()[:-8], None):
            manifest.unlink()
            if content is not None:
                manifest.write_bytes(content)
            output = self.run_cli(*WORDS, "--out", "data", "--resume", expect=1).stderr
            self.assertIn("penstock describe ", output)
            output = self.run_cli("describe", "data", expect=1).stderr
            self.assertIn(message("make-new-corpus"), output)
            self.assertNotIn("json", output)
            self.run_cli(*output.strip().rsplit("penstock ", 1)[1].split())
            self.assertIn("7 right", self.run_cli("verify", "data").stdout)
            self.assertEqual(self.records("describe", "data")[0]["samples"], 6)

    def test_a_scan_makes_no_corpus_of_half_a_data_set_or_of_a_recipes(self):
        words = (*WORDS, "--threads", 1)
        self.run_cli(*words, "--out", f"posix:{self.dir}/half,fail=publish:eio@#4..", expect=1)
        before = tree(self.dir / "half")
        scan = ("--scan", "--checksum", "--save")
        (self.dir / "link").symlink_to("half/.penstock")
        for file in ("half/.penstock/manifest", "half/../half/.penstock/manifest", self.dir / "link" / "manifest"):
            refused = self.run_cli("describe", "half", *scan, file, expect=2).stderr
            self.assertIn("/half --resume", refused)
            self.assertIn("remove '", refused)
        self.assertEqual(tree(self.dir / "half"), before)
        self.run_cli("describe", "half", *scan, "half.manifest")
        self.run_cli("generate", "climate", "--out", "half", "--resume")
        before = tree(self.dir / "half")
        refused = self.run_cli("describe", "half", *scan, "half/.penstock/manifest", expect=2).stderr
        self.assertIn(message("unfinished-set-of-seed", name="climate", n=7), refused)
        self.assertIn(message("remove-folder-first"), refused)
        self.assertEqual(tree(self.dir / "half"), before)
        self.run_cli("copy", "half", "--to", f"posix:{self.dir}/copy,fail=publish:eio@#4..", expect=1)
        refused = self.run_cli("describe", "copy", *scan, "copy/.penstock/manifest", expect=2).stderr
        self.assertIn("'penstock copy' again", refused)
        (self.dir / "half" / ".penstock" / "manifest").unlink()
        for _ in range(2):  # where none is lost, it is made, and made again
            self.run_cli("describe", "half", *scan, "half/.penstock/manifest")

    def test_a_damaged_state_has_its_own_message(self):
        (self.dir / "half" / ".penstock").mkdir(parents=True)
        (self.dir / "half" / ".penstock" / "generate.json").write_text('{"x', encoding="utf-8")
        output = self.run_cli(*WORDS, "--out", "half", "--resume", expect=1).stderr
        self.assertIn(f"'{self.dir}/half/.penstock/generate.json' is damaged", output)
        self.assertNotIn("exception", output)

    def test_a_sample_that_no_object_holds_is_told_before_anything_is_made(self):
        words = ("generate", "unet3d", "--format", "tfrecord", "--set", "mean=600MB", "--set", "deviation=550MB",
                 "--samples", 2000, "--seed", 7, "--set", "shards=2000", "--out", "data", "--dry-run")
        self.assertIn(message("tf-example-too-large"), self.run_cli(*words, expect=2).stderr)

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
        self.assertIn(message("objects-of-unfinished-set", n=3), done.stderr)
        self.assertIn(message("free-space-too-small"), done.stderr)
        self.assertEqual(tree(self.dir / "data"), robbed)
        planned = self.run_cli("generate", "climate", "--out", small, "--resume", "--dry-run", "--json")
        self.assertIn("warning: 3 objects of", planned.stderr)
        self.assertIn(message("make-room-on-tier"), json.loads(planned.stdout)["refused"])
        self.run_cli("generate", "climate", "--out", f"posix:{self.dir / 'data'},capacity={used + missing + 8192}", "--resume")
        self.assertEqual(tree(self.dir / "data"), before)


if __name__ == "__main__":
    penstock_cli.main()
