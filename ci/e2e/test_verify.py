"""verify and copy over containers: a byte that is wrong anywhere, around the samples too, is found and its object named."""

import os
import pathlib
import random
import shutil
import subprocess
import tempfile

from messages import message
import penstock_cli
from manifest_file import ManifestFile, crc32c

PICTURES = ("median=4KB", "classes=3")

# Name -> recipe, format, settings and samples: each container, of one and of several samples.
CORPORA = {
    "tfrecord": ("imagenet", "tfrecord", (*PICTURES, "shards=3"), 14),
    "webdataset": ("imagenet", "webdataset", (*PICTURES, "shards=3"), 14),
    "npz": ("imagenet", "npz", (*PICTURES, "shards=3"), 14),
    "npz-of-one": ("imagenet", "npz", (*PICTURES, "samples_per_file=1"), 5),
    "npy": ("imagenet", "npy", (*PICTURES, "samples_per_file=1"), 5),
    "hdf5": ("imagenet", "hdf5", (*PICTURES, "shards=3"), 14),
    "hdf5-and-a-companion": ("climate", "hdf5", ("shape=2,8,8",), 4),
    "cifar": ("cifar10", "cifar", ("samples_per_file=5",), 14),
}


def flip(path, at, bit=0):
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


class Containers(penstock_cli.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made = tempfile.TemporaryDirectory(prefix="penstock-test-")
        cls.addClassCleanup(made.cleanup)
        cls.made = pathlib.Path(made.name)
        for name, (recipe, form, settings, samples) in CORPORA.items():
            words = ["generate", recipe, "--format", form, "--samples", samples, "--seed", 11, "--out", cls.made / name,
                     *(word for setting in settings for word in ("--set", setting))]
            subprocess.run([penstock_cli.PENSTOCK, *map(str, words)], check=True, capture_output=True)

    def corpus(self, name):
        """A corpus of the test's own, and its manifest."""
        root = self.dir / name
        shutil.copytree(self.made / name, root)
        return root, ManifestFile(root / ".penstock" / "manifest")

    def around(self, manifest, name):
        """All offsets of the object that are in no sample."""
        places, at = [], 0
        for offset, length in [*manifest.payloads(name), (manifest.sizes[manifest.names.index(name)], 0)]:
            places += range(at, offset)
            at = offset + length
        self.assertTrue(places, f"{name} is nothing but samples")
        return places

    def problems(self, *args, expect):
        *problems, summary = self.records("verify", *args, expect=expect)
        self.assertEqual(summary["verdict"], "failed" if expect else "ok")
        return {problem["object"]: (problem["problem"], problem["detail"]) for problem in problems}

    def test_every_format_with_several_samples_in_an_object_has_a_row(self):
        self.assertEqual({data_format for _, data_format, _, _ in CORPORA.values()}, self.formats() - {"files"})

    def test_the_manifest_says_what_lies_there(self):
        for name in CORPORA:
            root, manifest = self.corpus(name)
            contents = [(root / one).read_bytes() for one in manifest.names]
            self.assertEqual(manifest.sizes, [len(content) for content in contents])
            self.assertEqual(manifest.checksums, [crc32c(content) for content in contents], name)
            for number, offset, length, crc in manifest.samples:
                self.assertEqual(crc, crc32c(contents[number][offset:offset + length]), name)

    def test_flipped_around_the_samples(self):
        chance = random.Random(31)
        for name in CORPORA:
            root, manifest = self.corpus(name)
            self.assertEqual(self.problems(root, expect=0), {})
            for _ in range(6):
                flipped = {victim: (chance.choice(self.around(manifest, victim)), chance.randrange(8))
                           for victim in chance.sample(manifest.names, chance.randint(1, len(manifest.names)))}
                for victim, place in flipped.items():
                    flip(root / victim, *place)
                found = self.problems(root, expect=1)
                self.assertEqual(found.keys(), flipped.keys(), name)
                for problem, detail in found.values():
                    self.assertEqual(problem, "wrong_bytes")
                    self.assertIn(message("damage-outside-samples"), detail)
                for victim, place in flipped.items():
                    flip(root / victim, *place)
            self.assertEqual(self.problems(root, expect=0), {})

    def test_flipped_anywhere(self):
        chance = random.Random(32)
        for name in CORPORA:
            root, manifest = self.corpus(name)
            for victim in manifest.names:
                size = manifest.sizes[manifest.names.index(victim)]
                flip(root / victim, chance.choice((0, size - 1, chance.randrange(size))))
            self.assertEqual(self.problems(root, expect=1).keys(), set(manifest.names), name)
            done = self.run_cli("verify", root, expect=1)
            for victim in manifest.names:
                self.assertIn(victim, done.stdout)

    def test_every_byte_of_a_small_one(self):
        root, manifest = self.corpus("npz-of-one")
        victim = manifest.names[2]
        for at in self.around(manifest, victim)[::29]:
            flip(root / victim, at)
            self.assertEqual(self.problems(root, expect=1).keys(), {victim}, at)
            flip(root / victim, at)

    def test_a_sample_is_named_where_it_is_one(self):
        root, manifest = self.corpus("webdataset")
        number, offset, length, _ = manifest.samples[7]
        victim = manifest.names[number]
        flip(root / victim, offset + length // 2)
        problem, detail = self.problems(root, expect=1)[victim]
        self.assertEqual(problem, "wrong_bytes")
        self.assertIn("(sample 7)", detail)

    def test_each_byte_is_read_once(self):
        for name in CORPORA:
            root, manifest = self.corpus(name)
            summary = self.records("verify", root)[-1]
            self.assertEqual(summary["bytes_read"], sum(manifest.sizes), name)

    def test_a_scan_with_checksums_knows_them_too(self):
        chance = random.Random(33)
        for name in ("tfrecord", "webdataset", "npz", "npy", "hdf5"):
            root, manifest = self.corpus(name)
            self.run_cli("describe", root, "--scan", "--checksum", "--save", f"{name}.manifest")
            self.assertEqual(sorted(ManifestFile(self.dir / f"{name}.manifest").checksums), sorted(manifest.checksums))
            self.assertEqual(self.problems(root, "--manifest", f"{name}.manifest", expect=0), {})
            victim = chance.choice(manifest.names)
            flip(root / victim, chance.choice(self.around(manifest, victim)))
            self.assertEqual(self.problems(root, "--manifest", f"{name}.manifest", expect=1).keys(), {victim})

    def test_a_scan_that_has_to_leave_one_out_keeps_the_checksums_of_the_others(self):
        root, manifest = self.corpus("webdataset")
        whole = dict(zip(manifest.names, manifest.checksums))
        for failing in range(1, 200):
            torn = ("describe", f"{root},fail=read:eacces@#{failing}", "--scan", "--checksum", "--threads", 1, "--save")
            self.run_cli(*torn, f"m{failing}")
            saved = ManifestFile(self.dir / f"m{failing}")
            there = dict(zip(saved.names, saved.checksums))
            self.assertLessEqual(there.items(), whole.items())
            if there == whole:
                break
            self.assertEqual(len(there), len(whole) - 1)
        self.assertEqual(there, whole)
        refused = self.run_cli("describe", f"{root},fail=read:eacces@#1", "--scan", "--checksum", "--threads", 1, "--save",
                               f"m{failing}", expect=1)
        self.assertIn("would lack the 1 object that could not be read", refused.stderr)
        self.assertEqual(ManifestFile(self.dir / f"m{failing}").checksums, saved.checksums)
        self.assertGreater(failing, 2 * len(whole), "each was read at least twice, and each reading failed once")

    def test_names_that_are_no_utf_8_stay_apart_in_json(self):
        folder = os.fsencode(self.dir / "latin")
        os.mkdir(folder)
        for name in (b"a\xff.jpg", b"a\xfe.jpg", "\u00e4\n.jpg".encode()):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(b"x" * 100)
        self.run_cli("describe", "latin", "--scan", "--checksum", "--save", "m")
        self.assertEqual(self.problems("latin", "--manifest", "m", expect=0), {})
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        with open(os.path.join(folder, b"b\xff.jpg"), "wb"):
            pass
        found = self.problems("latin", "--manifest", "m", expect=1)
        self.assertEqual({name: problem for name, (problem, _) in found.items()},
                         {r"a\xff.jpg": "vanished", r"a\xfe.jpg": "vanished", "\u00e4\n.jpg": "vanished", r"b\xff.jpg": "extra"})
        self.assertIn(r"latin/a\xff.jpg", found[r"a\xff.jpg"][1])

    def test_a_pipe_in_an_objects_place_does_not_block(self):
        root, manifest = self.corpus("tfrecord")
        (root / manifest.names[1]).unlink()
        os.mkfifo(root / manifest.names[1])
        self.assertEqual(self.problems(root, expect=1).keys(), {manifest.names[1]})
        self.run_cli("read", root, "--cache", "asis", "--duration", "1s", expect=1)
        self.run_cli("read", root, "--cache", "cold", "--duration", "1s", expect=1)
        self.run_cli("copy", root, "--to", "copied", expect=1)

    def test_copy_takes_no_damage_along(self):
        chance = random.Random(34)
        for name in CORPORA:
            root, manifest = self.corpus(name)
            victim = chance.choice(manifest.names)
            place = chance.choice(self.around(manifest, victim))
            flip(root / victim, place)
            done = self.run_cli("copy", root, "--to", f"{name}-copy", expect=1)
            self.assertIn(victim, done.stderr)
            self.assertIn("checksum", done.stderr)
            self.assertFalse((self.dir / f"{name}-copy" / victim).exists())
            self.assertFalse((self.dir / f"{name}-copy" / ".penstock" / "manifest").exists())
            flip(root / victim, place)
            self.run_cli("copy", root, "--to", f"{name}-copy")
            self.assert_same_tree(root, f"{name}-copy")

    def test_copy_mends_what_went_wrong_in_the_target(self):
        chance = random.Random(35)
        for name in CORPORA:
            root, manifest = self.corpus(name)
            self.run_cli("copy", root, "--to", f"{name}-copy")
            victim = chance.choice(manifest.names)
            flip(self.dir / f"{name}-copy" / victim, chance.choice(self.around(manifest, victim)))
            (again,) = self.records("copy", root, "--to", f"{name}-copy")
            self.assertEqual((again["copied"], again["already_there"]), (1, len(manifest.names) - 1), name)
            self.assert_same_tree(root, f"{name}-copy")

    def test_version_1_is_read_for_what_it_knows(self):
        root, manifest = self.corpus("webdataset")
        (root / ".penstock" / "manifest").write_bytes(manifest.as_version_1())
        done = self.run_cli("verify", root)
        self.assertIn("3 right", done.stdout)
        self.assertIn(message("only-sample-checksums"), done.stderr)
        self.assertIn("--scan --checksum", done.stderr)
        self.assertEqual(self.records("describe", root)[0]["samples"], 14)
        number, offset, _, _ = manifest.samples[3]
        flip(root / manifest.names[number], offset)
        self.assertEqual(self.problems(root, expect=1).keys(), {manifest.names[number]})
        flip(root / manifest.names[number], offset)
        around = self.around(manifest, manifest.names[0])[0]
        self.run_cli("copy", root, "--to", "copy")
        self.assert_same_tree(root, "copy")
        flip(self.dir / "copy" / manifest.names[0], around)
        (again,) = self.records("copy", root, "--to", "copy")
        self.assertEqual(again["copied"], 1)
        flip(root / manifest.names[0], around)
        (summary,) = self.records("verify", root)
        self.assertEqual((summary["checksums"], summary["object_checksums"]), (True, False))


if __name__ == "__main__":
    penstock_cli.main()
