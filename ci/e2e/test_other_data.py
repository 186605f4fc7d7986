"""Data that other programs made: what a scan makes of them, and that what it leaves out is counted or named."""

import bz2
import gzip
import json
import lzma
import shutil
import struct
import tarfile
import zipfile
import zlib

from corpus_case import CorpusTest
from messages import message
from other_formats import GIF, HTML, LFS_POINTER, floats, integers, npy, npz, png, proto_field, tar, tf_example, tf_record
import penstock_cli

EXAMPLE = tf_record(tf_example(image=b"x" * 500))
FRAMES = proto_field(2, proto_field(1, proto_field(1, b"frames") + proto_field(2, proto_field(1, proto_field(1, proto_field(1, b"f" * 5000))))))
MESSAGE = proto_field(1, proto_field(1, b"segment-7") + proto_field(2, b"\x08\x05")) + proto_field(4, b"x" * 500)
BODIES = npy("<f4", (6, 4, 5), bytes(480))

# name of the file -> content, samples, bytes of the smallest sample (None: any). Nothing is left out.
WHOLE = {
    "bare.tfrecord": (tf_record(png()) * 3, 3, len(png())),
    "text.tfrecord": (tf_record(b"hello world") * 3, 3, 11),
    "message.tfrecord": (tf_record(MESSAGE) * 3, 3, len(MESSAGE)),
    "sequence.tfrecord": (tf_record(tf_example(id=b"1") + FRAMES) * 3, 3, len(tf_example(id=b"1") + FRAMES)),
    "train.record": (EXAMPLE * 4, 4, 500),
    "train.tfrecord.1": (EXAMPLE * 4, 4, 500),
    "train-00000-of-00002": (EXAMPLE * 4, 4, 500),
    "neighbours.tar": (tar(*((f"{k}.{end}", png()) for k in range(4) for end in ("png", "cls"))), 4, None),
    "apart.tar": (tar(*((f"{k}.{end}", png()) for end in ("png", "json") for k in range(4))), 4, None),
    "empty-feature.tfrecord": (tf_record(tf_example(image=b"x" * 500, none=b"")) * 3, 3, 500),
    "pax-long.tar": (tar(*(("x" * 120 + f"/{k}.png", png()) for k in range(3)), form=tarfile.PAX_FORMAT), 3, None),
    "gnu-long.tar": (tar(*(("x" * 120 + f"/{k}.png", png()) for k in range(3)), form=tarfile.GNU_FORMAT), 3, None),
    "folders.tar": (tar(("./", tarfile.DIRTYPE, ""), ("./a/", tarfile.DIRTYPE, ""),
                        *((f"./a/{k}.{end}", png()) for k in range(3) for end in ("png", "info.json", "mp4.json"))), 3, None),
    "capitals.tar": (tar(*((f"{k}.{end}", png()) for k in range(3) for end in ("PNG", "JSON"))), 3, None),
    "version3.npz": (npz(("x.npy", npy("<f4", (4, 3), bytes(48), version=3)), ("y.npy", integers(*range(4)))), 4, 12),
    "big-endian.npz": (npz(("x.npy", npy(">f4", (4, 3), bytes(48))), ("y.npy", npy(">i4", (4,), struct.pack(">4i", *range(4))))), 4, 12),
    "bfloat16.npz": (npz(("x.npy", npy("<V2", (4, 3), bytes(24))), ("y.npy", integers(*range(4)))), 4, 6),
    "column.npz": (npz(("x.npy", npy("|u1", (6, 4, 5), bytes(120))), ("y.npy", npy("|u1", (6, 1), bytes(range(6))))), 6, 20),
}
# name of the file -> content, samples. What is left out is counted or named.
PARTS = {
    "joined.tar": (tar(("1.png", png()), ("2.png", png())) + tar(("3.png", png()), ("4.png", png())), 2),
    "junk.tar": (tar(("1.png", png())) + b"junk" * 1250, 1),
    "dots.tar": (tar(*((f"2024.05.{k:02}.png", png()) for k in range(10))), 1),
    "hidden.tar": (tar(*((name, png()) for name in ("a.png", ".b.png", ".c.png"))), 1),
    "macos.tar": (tar(*((name, png()) for k in range(3) for name in (f"./._{k}.png", f"./{k}.png")), ("__MACOSX/._x.png", b"\0\5\x16\7")), 3),
    "key-twice.tar": (tar(("1.png", png()), ("1.cls", b"1"), ("1.png", png()), ("1.cls", b"2")), 1),
    "links.tar": (tar(("a.png", png()), ("b.png", tarfile.SYMTYPE, "a.png"), ("c.png", tarfile.LNKTYPE, "a.png")), 1),
    "row.npz": (npz(("x.npy", floats(6)), ("y.npy", integers(*range(6)))), 1),
    "floats.npz": (npz(("x.npy", BODIES), ("y.npy", npy("<f8", (6,), struct.pack("<6d", *range(6))))), 6),
    "text.npz": (npz(("x.npy", BODIES), ("y.npy", npy("<U3", (6,), "cat".encode("utf-32-le") * 6))), 6),
    "truth.npz": (npz(("x.npy", BODIES), ("y.npy", npy("|b1", (6,), b"\0\1\0\1\0\1"))), 6),
    "deflated.npz": (npz(("x.npy", BODIES), ("y.npy", integers(*range(6)), zipfile.ZIP_DEFLATED)), 6),
    "pickles.npz": (npz(("x.npy", BODIES), ("names.npy", npy("|O", (6,), b"\x80\4.")), ("y.npy", integers(*range(6)))), 6),
    "members.npz": (npz(("x.npy", BODIES), ("y.npy", integers(*range(6))), ("meta.json", b"{}")), 6),
    "scalar.npz": (npz(("x.npy", BODIES), ("version.npy", npy("<i8", (), bytes(8)))), 6),
    "appended.npy": (floats(6, 4) + floats(6, 4), 1),
    "one-hot.npz": (npz(("x.npy", BODIES), ("y.npy", npy("<f4", (6, 3), bytes(72)))), 6),
    "keras.npz": (npz(("x_train.npy", BODIES), ("y_train.npy", integers(*range(6))), ("x_test.npy", floats(2, 4, 5)), ("y_test.npy", integers(0, 1))), 6),
    "medmnist.npz": (npz(("train_images.npy", BODIES), ("train_labels.npy", npy("|u1", (6, 1), bytes(range(6)))), ("val_images.npy", floats(2, 4, 5)),
                          ("val_labels.npy", npy("|u1", (2, 1), bytes(2)))), 6),
    "twice.npz": (npz(("x.npy", BODIES), ("x.npy", BODIES)), 6),
}
# What a shard or picture is in truth, and the word that names it.
NAMED = {
    "bzip2": (bz2.compress(EXAMPLE), "bzip2"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x58" + bytes(range(256)) * 4, "zstd"),
    "xz": (lzma.compress(EXAMPLE), "xz"),
    "pointer": (LFS_POINTER, "Git LFS"),
    "page": (HTML, "HTML"),
    "parquet": (b"PAR1" + bytes(200) + b"PAR1", "Parquet"),
    "lines": (b'\xef\xbb\xbf{"a": 1}\n' * 20, "JSON"),
    "answer": (b'\xef\xbb\xbf<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "XML"),
    "netcdf": (b"CDF\x02" + bytes(200), "netCDF"),
    "matlab": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\1IM" + bytes(200), "MATLAB"),
}


class Scans(CorpusTest):
    def scan(self, folder, *options, expect=0):
        """The corpus of a scan, what it counts as left out, and stderr."""
        done = self.run_cli("describe", folder, "--scan", "--json", *options, expect=expect)
        if done.returncode != 0:
            return None, 0, done.stderr
        corpus = json.loads(done.stdout)
        return corpus, sum(count for what, count in corpus["scan"].items() if what != "folder_labels"), done.stderr

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path.parent

    def test_every_sample_is_found(self):
        for name, (content, samples, smallest) in WHOLE.items():
            with self.subTest(name):
                corpus, left_out, err = self.scan(self.write(f"{name}.d/{name}", content))
                self.assertEqual(corpus["samples"], samples)
                self.assertEqual(left_out, 0, err)
                if smallest:
                    self.assertEqual(corpus["size_bytes"]["min"], smallest)

    def test_what_is_left_out_is_counted_and_named(self):
        for name, (content, samples) in PARTS.items():
            with self.subTest(name):
                corpus, left_out, err = self.scan(self.write(f"{name}.d/{name}", content))
                self.assertEqual(corpus["samples"], samples, err)
                self.assertTrue(left_out > 0 or corpus["labels"]["used"] > 0 or name in err, f"{corpus}\n{err}")

    def test_labels_are_of_the_split_of_their_samples(self):
        for name in ("keras.npz", "medmnist.npz"):
            corpus, left_out, _ = self.scan(self.write(f"{name}.d/{name}", PARTS[name][0]))
            self.assertEqual((corpus["labels"]["used"], left_out), (6, 2), name)

    def test_samples_without_bytes_are_as_warm_as_can_be(self):
        for name in ("1.png", "2.png"):
            self.write(f"d/{name}", b"")
        [record] = self.records("read", "d", "--scan", "--threads", 1, "--min-time", "10ms", "--repeat", 1, "--cache", "warm", "--no-baseline", "--no-ceiling")
        self.assertNotIn(record["verdict"], ("not_warm", "not_cold"))
        self.assertEqual(record["metrics"]["payload_bytes"]["value"], 0)

    def test_content_does_not_depend_on_how_it_is_stored(self):
        record = tf_record(bytes(range(100)) * 40)
        found = []
        for folder, content in (("plain", record), ("gzip", gzip.compress(record)), ("zlib", zlib.compress(record))):
            content = self.scan(self.write(f"{folder}/a.tfrecord", content), "--content")[0]["content"]
            found.append((content["samples"], content["unreadable"], content["bytes"], content["zstd"]))
        self.assertEqual(found[0][:3], (1, 0, 4000))
        self.assertEqual(found, [found[0]] * 3)

    def test_labels_are_no_samples(self):
        records = npy("|V12", (6,), bytes(72)).replace(b"'|V12'", b"[('a', '<f4'), ('b', '<f8')]")
        head = struct.pack("<H", len(records) - 10 - 72)
        self.write("d/a.npz", npz(("x.npy", records[:8] + head + records[10:]), ("y.npy", integers(*range(6)))))
        _, _, err = self.scan("d", expect=77)
        self.assertIn("records", err)

    def test_a_shard_is_named_for_what_it_is(self):
        for name, (content, word) in NAMED.items():
            with self.subTest(name):
                _, _, err = self.scan(self.write(f"{name}/a.tfrecord", content), expect=1)
                self.assertIn(word, err)
                self.assertNotIn("checksum", err)

    def test_a_compressed_shard_of_another_name_is_no_single_sample(self):
        for name, content in {"a.tfrecord.zz": zlib.compress(EXAMPLE * 5), "a.tfrecord.gz": gzip.compress(EXAMPLE * 5)}.items():
            with self.subTest(name):
                done = self.run_cli("describe", self.write(f"{name}.d/{name}", content), "--scan", "--json", expect=None)
                if done.returncode == 0:
                    self.assertEqual(json.loads(done.stdout)["samples"], 5)
                self.assertNotIn("--types", done.stderr)

    def test_shards_by_types_are_still_shards(self):
        corpus, _, _ = self.scan(self.write("d/train.record", EXAMPLE * 4), "--types", "record")
        self.assertEqual(corpus["samples"], 4)

    def test_links_to_class_folders(self):
        for name in ("cat", "dog"):
            self.write(f"real/{name}/1.png", png())
            link = self.dir / "links" / name
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(f"../real/{name}")
        self.write("half/dog/1.png", png())
        self.write("gone/dog/1.png", png())
        for folder, link, target in (("gone", "cat", "/nowhere/cat"), ("lost", "cat", "/nowhere/cat"), ("lost", "v1.0", "v1.0")):
            (self.dir / folder).mkdir(exist_ok=True)
            (self.dir / folder / link).symlink_to(target)
        for options in ((), ("--follow-links",)):
            corpus, _, err = self.scan("gone", *options)
            self.assertEqual((corpus["samples"], corpus["scan"]["dangling"], corpus["scan"]["left_out"]), (1, 1, 0), err)
            self.assertNotIn("--types", self.scan("lost", *options, expect=1)[2])
        (self.dir / "half" / "cat").symlink_to("../real/cat")
        _, _, err = self.scan("links", expect=1)
        self.assertIn("--follow-links", err)
        self.assertNotIn("--types", err)
        corpus, left_out, _ = self.scan("links", "--follow-links")
        self.assertEqual((corpus["samples"], corpus["labels"]["used"], left_out), (2, 2, 0))
        corpus, left_out, _ = self.scan("half")
        self.assertEqual((corpus["samples"], left_out), (1, 1))
        [record] = self.records("read", "half", "--scan", "--threads", 1, "--min-time", "10ms", "--repeat", 1, "--no-baseline", "--no-ceiling")
        self.assertEqual((record["corpus"]["samples"], record["verdict"]), (1, "degraded"))


class Pictures(CorpusTest):
    def train(self, *options, **kwargs):
        return self.run_cli("train", "alexnet", "--data", "d", "--scan", "--batch", 1, "--steps", 3, "--threads", 1, "--accelerator", "none", *options,
                            **kwargs)

    def test_a_picture_is_named_for_what_it_is(self):
        content = {"GIF": GIF, "gzip": gzip.compress(png()), "WebP": b"RIFF\x24\0\0\0WEBPVP8 " + bytes(40), "BMP": b"BM" + bytes(12) + b"\x28" + bytes(60),
                   "TIFF": b"II*\0" + bytes(60), "HEIC": b"\0\0\0\x18ftypheic" + bytes(40), "AVIF": b"\0\0\0\x18ftypavif" + bytes(40), "HTML": HTML}
        for word, picture in content.items():
            with self.subTest(word):
                (self.dir / "d").mkdir(exist_ok=True)
                for name, whole in {"a.png": png(), "b.png": png(), "x.png": picture}.items():
                    (self.dir / "d" / name).write_bytes(whole)
                done = self.train("--on-error", "skip", expect=None)
                self.assertIn(word, done.stderr)
                self.assertNotIn("TFRecord", done.stderr)

    def test_an_archive_of_pictures_and_labels_apart_is_trained_on(self):
        (self.dir / "d").mkdir()
        (self.dir / "d" / "a.tar").write_bytes(WHOLE["apart.tar"][0])
        self.train()

    def test_training_names_a_sample_without_bytes(self):
        for name, content, text in (("1.png", b"", message("file-is-empty", name="1.png")),
                                    ("a.tar", tar(("1.png", png()), ("2.png", b"")), message("sample-is-empty", name="a.tar"))):
            with self.subTest(name):
                shutil.rmtree(self.dir / "d", ignore_errors=True)
                (self.dir / "d").mkdir()
                (self.dir / "d" / name).write_bytes(content)
                self.assertIn(text, self.train(expect=1).stderr)


if __name__ == "__main__":
    penstock_cli.main()
