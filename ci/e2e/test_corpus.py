"""describe, verify and --scan from outside: what they say, and what they do when things are wrong."""

import json
import os
import pathlib
import random
import subprocess

from corpus_case import FILES, CorpusTest, content
from messages import message
from penstock_cli import PENSTOCK, SANITIZED, SOURCE, main


class Describe(CorpusTest):
    def test_archives_in_capitals_are_read_and_compressed_ones_told(self):
        for form, extension in (("webdataset", "tar"), ("npz", "npz"), ("hdf5", "h5")):
            root = self.dir / form
            self.run_cli("generate", "imagenet", "--out", root, "--format", form, "--samples", 4, "--set", "median=4KB")
            for path in list(root.glob(f"*.{extension}")):
                path.rename(path.with_suffix(f".{extension.upper()}"))
            (root / "more.tar.gz").write_bytes(b"x")
            (corpus,) = self.records("describe", root, "--scan")
            self.assertEqual((corpus["format"], corpus["samples"]), (form, 4))
            self.assertIn(message("decompress-first"), self.run_cli("describe", root, "--scan").stderr)

    def test_save_replaces_nothing_but_a_manifest(self):
        root = self.folder()
        (root / "cat" / "empty.jpg").touch()
        (self.dir / "notes.txt").write_text("years of work")
        os.mkfifo(self.dir / "fifo")
        (self.dir / "to.jpg").symlink_to(root / "cat" / "0001.jpg")
        before = self.tree(root)
        for file, words in ((root / "cat" / "0001.jpg", ["not a manifest", "another file"]), ("notes.txt", ["not a manifest"]),
                            ("fifo", ["not a manifest"]), ("to.jpg", ["not a manifest"]), (root, ["not the folder"]),
                            (root / "cat" / "empty.jpg", ["object of the data set"]),
                            (root / "dog" / ".." / "cat" / "empty.jpg", ["object of the data set"])):
            self.fails("describe", root, "--scan", "--checksum", "--save", file, code=2, words=[file, *words])
        self.assertEqual(self.tree(root), before)
        self.assertEqual((self.dir / "notes.txt").read_text(), "years of work")
        (self.dir / "empty").touch()
        for file in ("empty", "new", "empty"):
            self.run_cli("describe", root, "--scan", "--checksum", "--save", file)
            self.run_cli("verify", root, "--manifest", file)
        damaged = bytearray((self.dir / "new").read_bytes())
        damaged[-1] ^= 1
        (self.dir / "new").write_bytes(damaged)
        self.run_cli("describe", root, "--scan", "--checksum", "--save", "new")
        own = root / ".penstock" / "manifest"
        own.parent.mkdir()
        own.write_bytes(bytes(300))  # as a power cut may leave it
        self.run_cli("describe", root, "--scan", "--checksum", "--save", own)
        self.run_cli("verify", root)

    def test_a_folder_that_somebody_else_made(self):
        root = self.folder()
        (root / "notes.txt").write_text("x")
        (root / "cat" / ".DS_Store").write_text("x")
        (root / "linked").symlink_to(root / "cat")
        (corpus,) = self.records("describe", root, "--scan")
        self.assertEqual(corpus["samples"], FILES)
        self.assertEqual(corpus["bytes"], sum(len(content(n)) for n in range(FILES)))
        self.assertEqual(corpus["recipe"], "scan")
        self.assertEqual(corpus["format"], "files")
        self.assertEqual(corpus["codec"], "jpeg")
        self.assertFalse(corpus["checksums"])
        self.assertEqual(corpus["labels"]["used"], 2)
        self.assertEqual(corpus["labels"]["fewest_samples"], FILES // 2)
        self.assertEqual(corpus["size_bytes"]["min"], 2000)
        self.assertEqual(corpus["size_bytes"]["max"], len(content(FILES - 1)))
        self.assertEqual(sum(bar["samples"] for bar in corpus["histogram"]), FILES)
        self.assertEqual(corpus["scan"], {"left_out": 1, "hidden": 1, "empty_folders": 0, "linked_objects": 0, "linked_folders": 1,
                                          "dangling": 0, "special": 0, "arrays": 0, "members": 0, "unreadable": 0, "without_samples": 0, "folder_labels": FILES})
        self.assertFalse((root / ".penstock").exists(), "a scan writes nothing")
        table = self.run_cli("describe", root, "--scan")
        self.assertIn("1 .txt", table.stderr)
        self.assertIn("linked", table.stderr)
        self.assertIn("40 jpeg in 40 objects", table.stdout)

    def test_the_scan_does_not_depend_on_threads_or_place(self):
        root = self.folder()
        (one,) = self.records("describe", root, "--scan", "--checksum", "--threads", 1)
        moved = self.dir / "moved"
        root.rename(moved)
        (many,) = self.records("describe", moved, "--scan", "--checksum", "--threads", 5)
        self.assertEqual(one["checksum"], many["checksum"])

    def test_odd_names(self):
        names = [b"new\nline.jpg", b"com,ma.jpg", b"eq=al.jpg", "ü中🐱.jpg".encode(), b"not\xff\xfeutf8.jpg", b"x" * 251 + b".jpg",
                 b" .jpg", b"\x1b[31mred.jpg"]
        folder = os.fsencode(self.dir / "odd" / "cl,ass=1")
        os.makedirs(folder)
        for name in names:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(b"x" * len(name))
        root = self.dir / "odd"
        (corpus,) = self.records("describe", root, "--scan")
        self.assertEqual(corpus["samples"], len(names))
        self.run_cli("copy", root, "--scan", "--to", self.dir / "copy")
        self.run_cli("verify", self.dir / "copy")
        with open(os.path.join(os.fsencode(self.dir / "copy" / "cl,ass=1"), names[0]), "ab") as file:
            file.write(b"!")
        os.remove(os.path.join(os.fsencode(self.dir / "copy" / "cl,ass=1"), names[4]))
        done = self.run_cli("verify", self.dir / "copy", expect=1)
        self.assertIn("new\\nline.jpg", done.stdout)
        self.assertIn("not\\xff\\xfeutf8.jpg", done.stdout)
        problems = self.records("verify", self.dir / "copy", expect=1)
        self.assertEqual([p["problem"] for p in problems[:-1]], ["grown", "vanished"])
        self.assertEqual(problems[0]["object"], "cl,ass=1/new\nline.jpg")

    def test_types(self):
        root = self.folder()
        (root / "cat" / "a.png").write_bytes(b"png")
        (root / "cat" / "b").write_bytes(b"b")
        (png,) = self.records("describe", root, "--scan", "--types", "png")
        self.assertEqual((png["samples"], png["codec"]), (1, "png"))
        (both,) = self.records("describe", root, "--scan")
        self.assertEqual((both["samples"], both["codec"]), (FILES + 1, "mixed"))
        (every,) = self.records("describe", root, "--scan", "--types", "any")
        self.assertEqual((every["samples"], every["codec"]), (FILES + 2, "mixed"))

    def test_what_is_wrong_is_said(self):
        empty = self.dir / "empty"
        empty.mkdir()
        self.fails("describe", empty, "--scan", words=["empty", empty])
        (empty / "x.txt").write_text("x")
        self.fails("describe", empty, "--scan", words=[message("no-samples-found"), "1 .txt", "--types"])
        self.fails("describe", empty, words=[message("no-manifest"), "generate", "--scan"])
        self.fails("describe", self.dir / "gone", code=2, words=["gone", message("no-folder")])
        self.fails("describe", self.dir / "gone", "--scan", code=2, words=["gone", message("no-folder")])
        self.fails("describe", empty, "--hlep", code=2, words=[message("did-you-mean", name="--help")])
        self.fails("describe", empty / "x.txt", "--scan", code=2, words=["x.txt"])
        self.fails("describe", empty, "--manifest", self.dir / "none", words=["none"])
        self.fails("describe", empty, "--manifest", empty, code=2, words=[message("not-a-regular-file")])
        self.fails("describe", empty, "--scan", "--manifest", "m", code=2, words=["--scan", "--manifest"])
        self.fails("describe", empty, "--checksum", code=2, words=["--scan"])
        self.fails("describe", empty, "--scan", "--save", "new/", code=2, words=["--save", "new/"])
        self.fails("describe", empty, "--types", "png", code=2, words=["--scan"])
        self.fails("describe", empty, "--scan", "--types", "a/b", code=2, words=["a/b"])
        self.fails("describe", empty, "--skan", code=2, words=["skan", "scan"])
        self.fails("describe", empty, "--scan", "--threads", 0, code=2, words=["threads"])
        self.fails("describe", empty, "--scan", "--threads", "99999999999999999999", code=2, words=["threads"])
        self.fails("describe", code=2)
        self.fails("describe", "psix:/data", code=2, words=["psix", "posix"])

    def test_a_folder_that_may_not_be_read_is_named(self):
        as_user = self.as_another_user()
        root = self.folder()
        secret = root / "cat"
        secret.chmod(0)
        self.addCleanup(secret.chmod, 0o755)
        self.fails("describe", root, "--scan", words=["cat", "ermission"], cwd="/", **as_user)

    def test_photographs_from_elsewhere(self):
        package, folder = (SOURCE / "ci" / "photo_package").read_text().split()
        if not pathlib.Path(folder).is_dir():
            self.skipTest(f"the photographs of the Debian package {package} are not installed")
        (corpus,) = self.records("describe", folder, "--scan", "--types", "jpg,jpeg", "--checksum")
        self.assertGreaterEqual(corpus["samples"], 20)
        self.assertEqual(corpus["codec"], "jpeg")
        self.assertGreaterEqual(corpus["labels"]["used"], 2)
        self.run_cli("copy", folder, "--scan", "--to", self.dir / "photos")
        self.run_cli("verify", self.dir / "photos")

    def test_content_of_pictures_that_we_made(self):
        self.run_cli("generate", "caltech101", "--out", self.dir / "made", "--samples", 60, "--seed", 3)
        (corpus,) = self.records("describe", "made", "--content")
        content = corpus["content"]
        pictures, blocks = content["pictures"], content["blocks"]
        self.assertEqual((content["samples"], pictures["jpeg"], pictures["failed"]), (60, 60, 0))
        self.assertEqual(content["bytes"], corpus["bytes"])
        self.assertEqual(pictures["restart_interval_share"], 0)
        self.assertGreater(pictures["decode_cpu_ns_per_pixel"], 0)
        self.assertAlmostEqual(pictures["decode_cpu_ns_per_pixel"] / pictures["decode_cpu_ns_per_byte"] / pictures["bytes_per_pixel"],
                               1, delta=0.5)
        self.assertGreater(blocks["looked_at"], 60)
        self.assertEqual((blocks["zero"], blocks["duplicate"]), (0, 0))
        if "zstd_not_measured" in content:
            self.assertIsNone(content["zstd"])
        else:
            self.assertAlmostEqual(content["zstd"]["ratio_alone"], 1.0, delta=0.05)
        self.assertNotIn("content", *self.records("describe", "made"))
        output = self.run_cli("describe", "made", "--content", "--samples", 5000)
        self.assertIn(message("all-samples-read", n=60), output.stderr)
        text = self.run_cli("describe", "made", "--content", "--samples", 7).stdout
        for words in ("7 of 60 samples", "0% with restart intervals", "ns per pixel", "zstd -3", "0 contain only zeros, 0 are copies"):
            self.assertIn(words, text)

    def test_content_of_what_storage_could_spare(self):
        root = self.dir / "spare"
        root.mkdir()
        block = random.Random(1).randbytes(4096)
        (root / "a.bin").write_bytes(block + bytes(8192))
        (root / "b.bin").write_bytes(block + b"tail")
        (corpus,) = self.records("describe", root, "--scan", "--types", "any", "--content")
        content = corpus["content"]
        self.assertEqual({key: content["blocks"][key] for key in ("looked_at", "zero", "duplicate")},
                         {"looked_at": 4, "zero": 2, "duplicate": 1})
        self.assertIsNone(content["pictures"])
        if content["zstd"]:
            self.assertGreater(content["zstd"]["ratio_in_line"], 2.4)

    def test_content_stops_when_asked(self):
        root = self.folder()
        process = self.started("describe", f"{root},limit=200k", "--scan", "--types", "any", "--content", word="content")
        self.assertEqual(self.stop(process), "")
        self.fails("describe", root, "--scan", "--samples", 3, code=2, words=["--samples", "--content"])
        self.fails("describe", root, "--scan", "--content", "--samples", 0, code=2, words=["samples"])
        (root / "cat" / "0001.jpg").unlink()
        self.run_cli("describe", root, "--scan", "--save", "m")
        (root / "cat" / "0003.jpg").unlink()
        done = self.run_cli("describe", root, "--manifest", "m", "--content")
        self.assertIn("0003.jpg", done.stderr)
        self.assertIn("0003.jpg", done.stdout)

    def test_one_bad_file_does_not_stop_the_others(self):
        root = self.folder()
        (root / "cat" / "lost.jpg").symlink_to("nowhere.jpg")
        (root / "cat" / "empty.jpg").touch()
        (root / "cat" / "torn.tfrecord").write_bytes(b"x")
        for args in (("describe", "--content"), ("describe", "--checksum", "--save", "m"), ("copy", "--to", self.dir / "copy")):
            done = self.run_cli(args[0], root, "--scan", *args[1:])
            self.assertIn("1 broken link (first: 'cat/lost.jpg')", done.stderr)
            self.assertIn(message("objects-unreadable", n=1, name="cat/torn.tfrecord"), done.stderr)
        self.assertEqual(len(self.tree(self.dir / "copy")) - 1, FILES + 1)
        self.run_cli("verify", root, "--manifest", "m")
        [record] = self.records("read", root, "--scan", "--repeat", 1, "--min-time", "1ms", "--threads", 1)
        self.assertEqual(record["verdict"], "degraded")
        self.assertIn("the scan skipped 1 that cannot be read ('cat/torn.tfrecord'", record["reason"])
        content = self.records("describe", root, "--scan", "--content")[0]["content"]
        self.assertEqual((content["samples"], content["empty"], content["unreadable"]), (FILES, 1, 0))

    def test_interrupted(self):
        root = self.folder()
        process = self.started("describe", f"{root},limit=200k", "--scan", "--checksum", "--save", "m", "--threads", 2,
                               word="checksums")
        self.assertEqual(self.stop(process), "")
        self.assertFalse((self.dir / "m").exists())


class CorporaTable(CorpusTest):
    def table(self, *words, penstock=PENSTOCK):
        return subprocess.run([SOURCE / "ci" / "corpora_table", "--dir", self.dir, *words], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "PENSTOCK": str(penstock)}, check=False)

    def test_what_it_promises_holds_and_nothing_is_left(self):
        more = () if SANITIZED else ("imagenet", "caltech101", "resnet50", "malware", "hepcnn", "unet3d", "cosmoflow")
        done = self.table("--check", "cifar10", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| cifar10 | 10,000 |", done.stdout)
        self.assertIn("3,072 (+0.0%)", done.stdout)
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_what_does_not_hold_is_said(self):
        liar = self.dir / "liar"
        liar.write_text(f"#!/bin/sh\n'{PENSTOCK}' \"$@\" | sed 's/\"zero\":0/\"zero\":5/; s/\"p50\":3072.0/\"p50\":3300.0/'\n")
        liar.chmod(0o755)
        done = self.table("--check", "cifar10", penstock=liar)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("cifar10: 5 of", done.stderr)
        self.assertIn(message("median-size-differs", n="3,300", n2="3,072"), done.stderr)
        self.assertEqual(self.table("cifar10", penstock=liar).returncode, 0, "without --check it only shows")
        self.assertEqual(self.table("nosuch").returncode, 2)


class ManifestFile(CorpusTest):
    def test_a_read_only_folder_has_its_manifest_elsewhere(self):
        root = self.folder()
        self.run_cli("describe", root, "--scan", "--checksum", "--save", "photos.manifest")
        self.assertFalse((root / ".penstock").exists())
        (corpus,) = self.records("describe", root, "--manifest", "photos.manifest")
        self.assertTrue(corpus["checksums"])
        self.run_cli("verify", root, "--manifest", "photos.manifest")
        before = (self.dir / "photos.manifest").read_bytes()
        self.fails("describe", root, "--scan", "--save", "photos.manifest", words=["photos.manifest", "--checksum"])
        self.assertEqual((self.dir / "photos.manifest").read_bytes(), before, "its checksums are still there")
        (root / "dog" / "0000.jpg").unlink()
        self.run_cli("describe", root, "--scan", "--checksum", "--save", "photos.manifest")
        self.assertNotEqual((self.dir / "photos.manifest").read_bytes(), before)
        for _ in range(2):
            self.run_cli("describe", root, "--scan", "--save", "other.manifest")

    def test_damaged_cut_and_newer_manifests(self):
        root = self.corpus()
        manifest = root / ".penstock" / "manifest"
        good = manifest.read_bytes()
        for name, bad in {
            "empty": b"",
            "cut in the header": good[:100],
            "cut in the middle": good[: len(good) // 2],
            "one byte short": good[:-1],
            "one byte more": good + b"\0",
            "header flipped": good[:40] + bytes([good[40] ^ 1]) + good[41:],
            "entries flipped": good[:600] + bytes([good[600] ^ 1]) + good[601:],
            "names flipped": good[:-5] + bytes([good[-5] ^ 1]) + good[-4:],
            "something else": b"\x89PNG" * 1000,
        }.items():
            with self.subTest(name):
                manifest.write_bytes(bad)
                for command in (["describe", root], ["verify", root], ["copy", root, "--to", self.dir / "other"]):
                    self.fails(*command, words=["damaged", "manifest"])
                self.assertFalse((self.dir / "other").exists())
        manifest.unlink()
        manifest.mkdir()
        self.fails("verify", root, code=2, words=["manifest"])


class Verify(CorpusTest):
    def test_everything_right(self):
        root = self.corpus()
        done = self.run_cli("verify", root)
        self.assertIn("40 of 40 objects checked, 40 right", done.stdout)
        (summary,) = self.records("verify", root, "--threads", 3)
        self.assertEqual((summary["verdict"], summary["right"], summary["checked"]), ("ok", FILES, FILES))
        self.assertGreaterEqual(summary["bytes_read"], sum(len(content(n)) for n in range(FILES)))

    def test_one_flipped_byte_is_named(self):
        root = self.corpus()
        victim = root / "dog" / "0016.jpg"
        data = bytearray(victim.read_bytes())
        data[1234] ^= 1
        victim.write_bytes(data)
        done = self.run_cli("verify", root, expect=1)
        self.assertIn("dog/0016.jpg", done.stdout)
        self.assertEqual(done.stdout.count(".jpg"), 1)
        problem, summary = self.records("verify", root, expect=1)
        self.assertEqual((problem["object"], problem["problem"]), ("dog/0016.jpg", "wrong_bytes"))
        self.assertEqual((summary["verdict"], summary["wrong_bytes"]), ("failed", 1))

    def test_what_happened_to_each_object(self):
        root = self.corpus()
        (root / "dog" / "0000.jpg").unlink()
        with open(root / "dog" / "0002.jpg", "r+b") as file:
            file.truncate(10)
        with open(root / "dog" / "0004.jpg", "ab") as file:
            file.write(b"more")
        (root / "dog" / "0006.jpg").write_bytes(b"\0" * len(content(6)))
        (root / "dog" / "0008.jpg").unlink()
        (root / "dog" / "0008.jpg").mkdir()
        (root / "dog" / "extra.jpg").write_bytes(b"x")
        *problems, summary = self.records("verify", root, expect=1)
        self.assertEqual({p["object"]: p["problem"] for p in problems},
                         {"dog/0000.jpg": "vanished", "dog/0002.jpg": "shrunk", "dog/0004.jpg": "grown", "dog/0006.jpg": "wrong_bytes",
                          "dog/0008.jpg": "unreadable", "dog/extra.jpg": "extra"})
        self.assertEqual((summary["right"], summary["checked"], summary["extra"]), (FILES - 5, FILES, 1))
        done = self.run_cli("verify", root, "--list", 2, expect=1)
        self.assertIn("and 3 more", done.stdout)

    def test_extra_objects_alone_are_no_failure(self):
        root = self.corpus()
        (root / "README").write_text("x")
        done = self.run_cli("verify", root)
        self.assertIn("README", done.stdout)

    def test_without_checksums_it_says_what_it_cannot_say(self):
        root = self.folder()
        self.run_cli("describe", root, "--scan", "--save", "m")
        done = self.run_cli("verify", root, "--manifest", "m", expect=77)
        self.assertIn(message("corpus-without-checksums"), done.stderr)
        (root / "dog" / "0000.jpg").unlink()
        self.run_cli("verify", root, "--manifest", "m", expect=1)

    def test_interrupted(self):
        root = self.corpus()
        process = self.started("verify", f"{root},read_limit=100k", "--threads", 2, "--json", word="verify")
        *_, summary = [json.loads(line) for line in self.stop(process).splitlines()]
        self.assertEqual(summary["verdict"], "interrupted")
        self.assertLess(summary["checked"], FILES)

    def test_usage(self):
        root = self.corpus()
        self.fails("verify", root, "--scan", code=2, words=["scan"])
        self.fails("verify", root, "--threads", 0, code=2)
        self.fails("verify", root, "--list", -1, code=2)
        self.fails("verify", code=2)
        self.fails("verify", self.folder("bare"), words=[message("no-manifest")])


class MeasuredParts(CorpusTest):
    READ = ("--scan", "--threads", 1, "--min-time", "0s", "--repeat", 1, "--cache", "asis", "--no-ceiling", "--no-baseline")

    def test_what_no_whole_block_has_is_counted(self):
        folder, sizes = self.dir / "sized", range(5000, 5060)
        folder.mkdir()
        for size in sizes:
            (folder / f"{size}.jpg").write_bytes(bytes(size))
        for block in (1000, 2501, 5030, 5059):
            with self.subTest(block=block):
                record, = self.records("read", folder, *self.READ, "--block", block)
                self.assertEqual(record["corpus"]["samples"], sum(size // block for size in sizes))
                left_out = {"objects": sum(size < block for size in sizes), "bytes": sum(size % block for size in sizes)}
                self.assertEqual(record["parameters"]["left_out"], left_out)
        done = self.run_cli("read", folder, *self.READ, "--block", 1000)
        self.assertRegex(done.stdout, r"\ntier +threads +IOPS +MiB/s")

    def test_where_the_results_are(self):
        folder = self.folder("measured", 3)
        for results, inside in (("measured/results", True), ("beside", False), ("measured-results", False)):
            record, = self.records("read", folder, *self.READ, "--results", self.dir / results)
            warning = " ".join(record["environment"].get("warnings", []))
            if "results folder" in warning:  # not where both are in memory
                self.assertEqual("same file system" in warning, not inside, warning)


if __name__ == "__main__":
    main()
