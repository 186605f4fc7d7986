"""Scans of NPY, NPZ and HDF5 that Penstock or others made: they find the samples, and damage is reported."""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import unittest
import zipfile

from array_case import ArrayTest
from manifest_file import ManifestFile, crc32c
from messages import message
from other_formats import integers, npy, npz
import penstock_cli


class ScansFindThem(ArrayTest):
    def test_the_same_samples_as_the_manifest_has(self):
        for words in (("npz", "shards=3"), ("npz", "samples_per_file=1"), ("npy", "samples_per_file=1"),
                      ("hdf5", "shards=3"), ("hdf5", "samples_per_file=1")):
            out = words[0] + words[1][:6]
            self.generate(out, "--format", words[0], "--set", words[1])
            made = self.records("describe", out)[0]
            scanned = self.records("describe", out, "--scan", "--checksum", "--save", f"{out}.manifest")[0]
            for key in ("samples", "bytes", "objects", "size_bytes", "codec", "format"):
                self.assertEqual(made[key], scanned[key], key)
            self.assertIn(f"{made['objects']} right",
                          self.run_cli("verify", out, "--manifest", f"{out}.manifest").stdout)

    def test_recipes_of_several_fields(self):
        for recipe, *words in (("hepcnn", "samples_per_file=4", "shape=3,8,8"), ("climate", "shape=2,8,8"),
                               ("hepcnn", "samples_per_file=1", "shape=3,8,8")):
            out = recipe + str(len(words)) + words[0][-1]
            sets = [part for word in words for part in ("--set", word)]
            self.generate(out, *sets, recipe=recipe, small=("--samples", 10))
            made = self.records("describe", out)[0]
            scanned = self.records("describe", out, "--scan")[0]
            for key in ("samples", "bytes", "objects", "size_bytes", "codec", "format"):
                self.assertEqual(made[key], scanned[key], (out, key))

    def test_archives_that_others_made(self):
        code = """
import io, zipfile
rows = numpy.arange(5 * 2 * 3, dtype="<f4").reshape(5, 2, 3)
numpy.savez("theirs/rows.npz", data=rows, labels=numpy.array([3, 1, 2, 250, 0], dtype=">i2"))
numpy.savez("theirs/only.npz", rows)
numpy.savez("theirs/one.npz", data=rows, mask=rows[0], factor=numpy.float64(2))
numpy.savez_compressed("packed/rows.npz", data=rows)
numpy.savez("fortran/rows.npz", data=numpy.asfortranarray(rows))
numpy.savez("one_hot/rows.npz", data=rows, label=numpy.eye(10, dtype="<i8")[[3, 1, 2, 9, 0]])
print("{}")"""
        for folder in ("theirs", "packed", "fortran", "one_hot"):
            (self.dir / folder).mkdir()
        self.python("numpy", code)
        corpus = self.records("describe", "theirs", "--scan")[0]
        self.assertEqual((corpus["samples"], corpus["bytes"]), (5 + 5 + 1, 3 * 5 * 2 * 3 * 4))
        self.assertEqual(corpus["labels"]["used"], 5)
        one_hot = self.records("describe", "one_hot", "--scan")[0]
        self.assertEqual((one_hot["samples"], one_hot["labels"]["used"], one_hot["scan"]["arrays"]), (5, 0, 1))
        self.assertIn(message("labels-of-several-numbers"), self.run_cli("describe", "one_hot", "--scan").stderr)
        packed = self.records("describe", "packed", "--scan")[0]
        self.assertEqual((packed["samples"], packed["bytes"], packed["stored_forms"]["samples"]), (5, 5 * 2 * 3 * 4, 5))
        self.assertIn(message("samples-not-contiguous"), self.run_cli("describe", "fortran", "--scan", expect=77).stderr)

    def test_an_array_a_sample(self):
        """Archives of pictures without any table: each is read, whole, in the order that people count in."""
        code = """
images = [numpy.full((8, 9), i, "u1") for i in range(100)]
numpy.savez("npz/a.npz", *images)
numpy.savez("pair/a.npz", signal=numpy.zeros(160000), time=numpy.zeros(160000))
print("{}")"""
        for folder in ("npz", "pair", "hdf5"):
            (self.dir / folder).mkdir()
        self.python("numpy", code)
        corpus = self.records("describe", "npz", "--scan", "--checksum", "--save", "npz.manifest")[0]
        self.assertEqual((corpus["samples"], corpus["bytes"], corpus["scan"]["arrays"]), (100, 100 * 8 * 9, 0))
        self.assertIn("1 right", self.run_cli("verify", "npz", "--manifest", "npz.manifest").stdout)
        read = self.records("read", "npz", "--scan", "--threads", 1, "--repeat", 1, "--min-time", "0s", "--no-ceiling",
                            "--no-baseline")[0]
        self.assertEqual(read["metrics"]["payload_bytes"]["samples"], [100 * 8 * 9])
        pair = self.run_cli("describe", "pair", "--scan")
        self.assertIn(message("arrays-that", n=1), pair.stderr)
        self.assertIn("1 raw in 1 object ", pair.stdout)
        self.python("h5py, numpy", """
with h5py.File("hdf5/a.h5", "w") as f:
    for i in range(12):
        f[f"image_{i}"] = numpy.full((8, 9), i, "u1")
print("{}")""")
        corpus = self.records("describe", "hdf5", "--scan")[0]
        self.assertEqual((corpus["samples"], corpus["bytes"]), (12, 12 * 8 * 9))

    def test_hdf5_that_others_made(self):
        code = """
rows = numpy.arange(6 * 2 * 3, dtype="<f4").reshape(6, 2, 3)
label = numpy.arange(6, dtype="<i2")
def write(path, *args, libver="earliest", labels=True, userblock_size=0, **kwargs):
    with h5py.File(path, "w", libver=libver, userblock_size=userblock_size) as f:
        f.create_dataset("deep/data", *args, data=kwargs.pop("data", rows), **kwargs)
        f["words"] = "not a number"
        f["again"] = f["deep"]
        if labels:
            f["deep/label"] = label
write("good/contiguous.h5")
write("good/userblock.h5", userblock_size=1024)
for libver in ("earliest", "latest"):
    for rows_each in (1, 2, 6):
        write(f"good/chunks-{rows_each}-{libver}.hdf5", chunks=(rows_each, 2, 3), libver=libver)
    write(f"good/deflate-{libver}.h5", compression="gzip", libver=libver)
    write(f"good/filters-{libver}.h5", chunks=(4, 1, 2), compression="lzf", shuffle=True, fletcher32=True, libver=libver)
    write(f"good/cut-{libver}.h5", chunks=(1, 1, 3), libver=libver)
with h5py.File("good/compact.h5", "w") as f:
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(f.id, b"data", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(rows.shape), create).write(
        h5py.h5s.ALL, h5py.h5s.ALL, rows)
    f["label"] = label
with h5py.File("good/many_links.h5", "w") as f:
    for i in range(50):
        f[f"group{i}/nothing{i}"] = "text"
    f["data"], f["label"] = rows, label
for extension in ("nc", "nc4", "he5", "h5ad"):
    write(f"good/other.{extension}")
with h5py.File("bad/never.h5", "w") as f:
    f.create_dataset("data", (6, 2, 3), "<f4")
with open("bad/classic.nc", "wb") as f:
    f.write(b"CDF\\x01" + bytes(100))
with h5py.File("good/dense.h5", "w", libver="latest") as f:
    for i in range(50):
        f[f"text{i}"] = "no number"
    f["data"], f["label"] = rows, label
with h5py.File("bad/virtual.h5", "w", libver="latest") as f:
    layout = h5py.VirtualLayout(rows.shape, "<f4")
    layout[:] = h5py.VirtualSource("contiguous.h5", "deep/data", rows.shape)
    f.create_virtual_dataset("data", layout)
with h5py.File("bad/words.h5", "w") as f:
    f["words"] = "not a number"
json.dump({}, sys.stdout)"""
        for folder in ("good", "bad"):
            (self.dir / folder).mkdir()
        self.python("numpy, h5py", code)
        good = len(list((self.dir / "good").iterdir()))
        corpus = self.records("describe", "good", "--scan")[0]
        self.assertEqual((corpus["samples"], corpus["bytes"]), (6 * good, good * 6 * 2 * 3 * 4))
        self.assertEqual(corpus["labels"]["used"], 6)
        self.run_cli("describe", "good", "--scan", "--checksum", "--save", "good.manifest")
        found = ManifestFile(self.dir / "good.manifest")
        rows = [crc32c(struct.pack("<6f", *range(6 * i, 6 * i + 6))) for i in range(6)]
        self.assertEqual([crc for _, _, _, crc in found.samples], rows * good)
        self.assertIn(f"{good} right", self.run_cli("verify", "good", "--manifest", "good.manifest").stdout)
        read = self.records("read", "good", "--manifest", "good.manifest", "--verify", "--threads", 2, "--repeat", 1, "--min-time", "0s",
                            "--no-ceiling", "--no-baseline")[0]
        self.assertEqual(read["verdict"], "ok")
        for name, words in (("never.h5", "never written"), ("virtual.h5", "virtual"), ("words.h5", "'words' is of an unsupported type"),
                            ("classic.nc", "nccopy")):
            folder = self.dir / f"only {name}"
            folder.mkdir()
            (self.dir / "bad" / name).rename(folder / name)
            output = self.run_cli("describe", folder.name, "--scan", expect=1 if name == "classic.nc" else 77).stderr
            self.assertIn(words, output)
            self.assertIn(name, output)

    def test_filtered_and_cut_chunks_are_read_by_sample(self):
        """Files that h5py made: six rows of 5x4 bytes that count to 6 again and again, and their labels."""
        seeds = penstock_cli.SOURCE / "datagen" / "fuzz_seeds" / "format_hdf5"
        rows = [crc32c(bytes((20 * i + k) % 7 for k in range(20))) for i in range(6)]
        for name in ("gzip_rows_early", "gzip_cut_late", "lzf_late", "cut_early"):
            (self.dir / name).mkdir()
            shutil.copy(seeds / f"{name}.h5", self.dir / name / "a.h5")
            corpus = self.records("describe", name, "--scan", "--checksum", "--save", f"{name}.manifest")[0]
            self.assertEqual((corpus["bytes"], corpus["labels"]["used"], corpus["stored_forms"]["samples"]), (120, 6, 6), name)
            self.assertEqual([crc for _, _, _, crc in ManifestFile(self.dir / f"{name}.manifest").samples], rows, name)
            trained = self.records("train", "stream", "--data", name, "--manifest", f"{name}.manifest", "--batch", 2, "--epochs", 2)[0]
            fetched = sum(length for _, _, length, _ in ManifestFile(self.dir / f"{name}.manifest").samples)
            self.assertEqual((trained["verdict"], trained["metrics"]["payload_bytes"]["samples"]), ("ok", [2 * fetched]), name)
            self.assertEqual((trained["corpus"]["bytes"], trained["corpus"]["object_bytes"]), (120, (self.dir / name / "a.h5").stat().st_size))
            read = self.run_cli("read", name, "--manifest", f"{name}.manifest", "--repeat", 1, "--min-time", "0s", "--no-ceiling", "--no-baseline")
            self.assertIn(message("rates-count-stored-bytes"), read.stdout)
            self.assertIn(message("checksums-not-compared"), read.stdout)
            read = self.run_cli("read", name, "--manifest", f"{name}.manifest", "--verify", "--repeat", 1, "--min-time", "0s", "--no-ceiling", "--no-baseline")
            self.assertNotIn(message("checksums-not-compared"), read.stdout)
            damaged = bytearray((self.dir / name / "a.h5").read_bytes())
            damaged[-30] ^= 1
            (self.dir / name / "a.h5").write_bytes(damaged)
            problem = self.records("verify", name, "--manifest", f"{name}.manifest", expect=1)[0]
            self.assertEqual((problem["object"], problem["problem"]), ("a.h5", "wrong_bytes"), name)

    def test_filters_of_hdf5s_own_library(self):
        """Scale-offset, and a filter (300) that inverts all bytes, and crashes if the first of a chunk is 1."""
        code = """
rows = numpy.arange(24, dtype="<f4").reshape(6, 4)
for name, first in (("good", 0), ("bad", 1)):
    with h5py.File(f"{name}/a.h5", "w") as f:
        data = f.create_dataset("data", (6, 40), "u1", chunks=(1, 40), compression=300, allow_unknown_filter=True)
        for i in range(6):
            data.id.write_direct_chunk((i, 0), bytes([255 - 7 * i if i != 3 or not first else first] * 40))
with h5py.File("scaled/a.h5", "w") as f:
    f.create_dataset("data", data=rows, chunks=(4, 3), scaleoffset=3)
print("{}")"""
        for name in ("good", "bad", "scaled"):
            (self.dir / name).mkdir()
        self.python("numpy, h5py", code)
        if not penstock_cli.has_library("hdf5"):
            refused = self.run_cli("describe", "scaled", "--scan", expect=77).stderr
            self.assertIn(message("chunks-are-filtered", name="scale-offset"), refused)
            self.assertIn("penstock_hdf5_filters", refused)
            return
        plug_in = {**os.environ, "HDF5_PLUGIN_PATH": str(pathlib.Path(penstock_cli.BUILD, "datagen", "hdf5").resolve())}
        for name, rows, environment in (("scaled", [struct.pack("<4f", *range(4 * i, 4 * i + 4)) for i in range(6)], None),
                                        ("good", [bytes([7 * i] * 40) for i in range(6)], plug_in)):
            manifest = ("--manifest", f"{name}.manifest")
            self.run_cli("describe", name, "--scan", "--checksum", "--save", manifest[1], env=environment)
            self.assertEqual([crc for _, _, _, crc in ManifestFile(self.dir / manifest[1]).samples], [crc32c(row) for row in rows], name)
            self.assertIn("1 right", self.run_cli("verify", name, *manifest, env=environment).stdout)
            self.run_cli("read", name, *manifest, "--verify", "--threads", 3, "--repeat", 1, "--min-time", "0s", "--no-ceiling", "--no-baseline",
                         env=environment)
            self.run_cli("train", "stream", "--data", name, *manifest, "--batch", 2, "--epochs", 1, env=environment)
        self.assertIn("HDF5_PLUGIN_PATH", self.run_cli("describe", "good", "--scan", expect=77).stderr)
        without = self.records("read", "good", "--manifest", "good.manifest", "--verify", "--repeat", 1, "--min-time", "0s", "--no-ceiling", "--no-baseline",
                               expect=77)[0]
        self.assertEqual(without["verdict"], "skipped")
        self.assertIn("HDF5_PLUGIN_PATH", without["reason"])
        problem = self.records("verify", "good", "--manifest", "good.manifest", expect=1)[0]
        self.assertEqual(problem["problem"], "unreadable")
        self.assertIn("HDF5_PLUGIN_PATH", problem["detail"])
        if not penstock_cli.SANITIZED:  # the profiler's library reserves much of the addresses
            self.run_cli("profile", "run", "-o", "session", "--", penstock_cli.PENSTOCK, "verify", "scaled", "--manifest", "scaled.manifest")
        crashed = self.run_cli("describe", "bad", "--scan", "--checksum", expect=1, env=plug_in).stderr
        self.assertIn(message("library-crashed", signal=signal.SIGABRT.value), crashed)
        self.assertIn("'a.h5'", crashed)
        done = subprocess.run(["sh", "-c", "trap '' CHLD; exec \"$@\"", "sh", penstock_cli.PENSTOCK, "describe", "bad", "--scan", "--checksum", "--no-config"],
                              cwd=self.dir, env=plug_in, capture_output=True, text=True, check=False)
        self.assertIn(message("library-crashed", signal=signal.SIGABRT.value), done.stderr)

    @unittest.skipIf(penstock_cli.SANITIZED, "copies a program of hundreds of megabytes")
    def test_a_filter_program_that_cannot_be_loaded_is_no_damage(self):
        self.python("numpy, h5py", """
with h5py.File("a.h5", "w") as f:
    f.create_dataset("data", data=numpy.arange(24, dtype="<f4").reshape(6, 4), chunks=(4, 3), scaleoffset=3)
print("{}")""")
        (self.dir / "data").mkdir()
        (self.dir / "a.h5").rename(self.dir / "data" / "a.h5")
        (self.dir / "bin").mkdir()
        shutil.copy(penstock_cli.PENSTOCK, self.dir / "bin" / "penstock")
        (self.dir / "bin" / "penstock_hdf5_filters").write_text("#!/bin/sh\nexit 127\n")
        (self.dir / "bin" / "penstock_hdf5_filters").chmod(0o755)
        done = subprocess.run([self.dir / "bin" / "penstock", "describe", "data", "--scan", "--no-config"], cwd=self.dir, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn(message("filters-not-loaded"), done.stderr)
        (self.dir / "bin" / "penstock_hdf5_filters").chmod(0o644)
        (self.dir / "data" / "b.npz").write_bytes(npz(("x.npy", npy("|u1", (3, 4), bytes(12)))))
        done = subprocess.run([self.dir / "bin" / "penstock", "describe", "data", "--scan", "--json", "--no-config"], cwd=self.dir, capture_output=True,
                              text=True, check=False)
        self.assertEqual(json.loads(done.stdout)["samples"], 3, done.stderr)
        self.assertIn("penstock_hdf5_filters", done.stderr)

    def test_a_chunk_without_bytes_is_damage(self):
        content = bytearray((penstock_cli.SOURCE / "datagen" / "fuzz_seeds" / "format_hdf5" / "gzip_rows_early.h5").read_bytes())
        trees = [at for at in range(len(content)) if content[at:at + 5] == b"TREE\x01"]
        self.assertEqual(len(trees), 2)
        for tree in trees:  # the number of stored bytes begins the first key, after the head of the node
            content[tree + 24:tree + 28] = bytes(4)
        (self.dir / "empty").mkdir()
        (self.dir / "empty" / "a.h5").write_bytes(content)
        self.assertIn(message("chunk-without-bytes", n=0), self.run_cli("describe", "empty", "--scan", expect=1).stderr)

    def test_labels_that_cannot_be_read_are_those_that_are_named(self):
        objects = npy("|O", (3,), b"\x80\4.")
        images = npy("|u1", (3, 4, 4), bytes(48))
        (self.dir / "d").mkdir()
        for masks, labels in ((objects, ()), (npy("|u1", (), b"1"), ()), (objects, ("--set", "field=labels"))):
            (self.dir / "d" / "a.npz").write_bytes(npz(("images.npy", images), ("masks.npy", masks), ("labels.npy", images if labels else objects)))
            done = self.run_cli("describe", "d", "--scan", "--json", *labels)
            found = json.loads(done.stdout)
            self.assertEqual((found["samples"], found["array"], found["scan"]["arrays"]), (1, "labels", 1) if labels else (3, "images", 2))
            self.assertIn("'masks'" if labels else "'labels'", done.stderr)

    def test_content_is_of_samples_not_of_the_streams_that_they_are_stored_in(self):
        (self.dir / "d").mkdir()
        rows = b"".join(bytes([i]) * 4096 for i in range(64))
        (self.dir / "d" / "a.npz").write_bytes(npz(("x.npy", npy("|u1", (64, 4096), rows), zipfile.ZIP_DEFLATED)))
        content = json.loads(self.run_cli("describe", "d", "--scan", "--content", "--json").stdout)["content"]
        self.assertEqual((content["samples"], content["unreadable"], content["bytes"]), (64, 0, len(rows)))
        if content["zstd"] is not None:
            self.assertGreater(content["zstd"]["ratio_alone"], 50)

    def test_an_old_header_without_its_messages_is_damage(self):
        good = (penstock_cli.SOURCE / "datagen" / "fuzz_seeds" / "format_hdf5" / "gzip_rows_early.h5").read_bytes()
        shape = struct.pack("<HH", 1, 24)  # the head of a message with the shape and the shape that it can become
        self.assertGreater(good.count(shape), 0)
        (self.dir / "d").mkdir()
        for changed in (struct.pack("<HH", 0, 24), struct.pack("<HH", 1, 23), struct.pack("<HH", 257, 24)):
            (self.dir / "d" / "a.h5").write_bytes(good.replace(shape, changed))
            self.assertIn("'a.h5'", self.run_cli("describe", "d", "--scan", expect=1).stderr)

    def test_labels_and_offsets_that_are_not_used_are_counted(self):
        x = ("x.npy", npy("|u1", (9, 5), bytes(45)))
        labels = npy("<i8", (9,), bytes(72))
        flat = ("x.npy", npy("|u1", (20,), bytes(20)))
        (self.dir / "d").mkdir()
        for arrays, samples in (((x, ("label.npy", labels), ("y.npy", labels)), 9), ((flat, ("x_offsets.npy", npy("<f8", (3,), bytes(24)))), 1),
                                ((flat, ("x_offsets.npy", npy("<i8", (2, 2), bytes(32)))), 1)):
            (self.dir / "d" / "a.npz").write_bytes(npz(*arrays))
            found = json.loads(self.run_cli("describe", "d", "--scan", "--json").stdout)
            self.assertEqual((found["samples"], found["scan"]["arrays"]), (samples, 1))

    def test_an_array_as_large_that_cannot_be_read_is_not_advised(self):
        self.python("numpy, h5py", """
with h5py.File("a.h5", "w") as f:
    f["data"], f["label"] = numpy.ones((9, 5), "<f4"), numpy.arange(9)
    f.create_dataset("never", (9, 5), "<f4", chunks=(3, 5))
    virtual = h5py.VirtualLayout((9, 5), "<f4")
    virtual[:] = h5py.VirtualSource(".", "data", (9, 5))
    f.create_virtual_dataset("virtual", virtual)
print("{}")""")
        (self.dir / "d").mkdir()
        (self.dir / "a.h5").rename(self.dir / "d" / "a.h5")
        done = self.run_cli("describe", "d", "--scan", "--json")
        self.assertEqual((json.loads(done.stdout)["samples"], json.loads(done.stdout)["array"]), (9, "data"))
        self.assertNotIn("--set field", done.stderr)

    def test_of_arrays_as_large_one_is_named_and_can_be_chosen(self):
        (self.dir / "two").mkdir()
        arrays = {"images": bytes(range(48)), "masks": bytes(range(100, 148))}
        (self.dir / "two" / "a.npz").write_bytes(npz(*((f"{name}.npy", npy("|u1", (3, 4, 4), content)) for name, content in arrays.items()),
                                                     ("label.npy", integers(0, 1, 2))))
        for words, name, equal in (((), "images", 1), (("--set", "field=masks"), "masks", 0)):
            done = self.run_cli("describe", "two", "--scan", "--checksum", "--save", f"{name}.manifest", "--json", *words)
            self.assertEqual(json.loads(done.stdout)["scan"].get("equal_arrays", 0), equal)
            self.assertEqual(json.loads(done.stdout)["array"], name)
            self.assertEqual("--set field=masks" in done.stderr, equal == 1)
            found = [crc for _, _, _, crc in ManifestFile(self.dir / f"{name}.manifest").samples]
            self.assertEqual(found, [crc32c(arrays[name][16 * i:16 * i + 16]) for i in range(3)])
        # An array called 'mixed' is not several arrays.
        for folder, names, array in (("one", ("mixed", "mixed"), "mixed"), ("several", ("mixed", "images"), None)):
            (self.dir / folder).mkdir()
            for i, name in enumerate(names):
                (self.dir / folder / f"{i}.npz").write_bytes(npz((f"{name}.npy", npy("|u1", (3, 4, 4), arrays["images"]))))
            self.assertEqual(json.loads(self.run_cli("describe", folder, "--scan", "--json").stdout)["array"], array)
        (self.dir / "blank").mkdir()
        (self.dir / "blank" / "a.npz").write_bytes(npz(*((f"{name} eye.npy", npy("|u1", (3, 4, 4), content)) for name, content in arrays.items())))
        self.assertIn("--set 'field=masks eye'", self.run_cli("describe", "blank", "--scan").stderr)
        for words in (("--set", "field="), ("--set", "field=images", "--set", "field=masks")):
            self.run_cli("train", "stream", "--data", "two", "--scan", "--steps", 1, *words, expect=2)
        self.assertIn("'images', 'masks'", self.run_cli("describe", "two", "--scan", "--set", "field=x", expect=77).stderr)
        with zipfile.ZipFile(self.dir / "two" / "b.npz", "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("x.npy", npy("|u1", (3, 4), bytes(12)))
        self.assertIn(message("array-compressed", name="x.npy"), self.run_cli("describe", "two", "--scan").stderr)
        (self.dir / "two" / "b.npz").unlink()
        self.run_cli("describe", "two", "--scan", "--set", "fields=masks", expect=2)
        (self.dir / "pictures").mkdir()
        (self.dir / "pictures" / "a.jpg").write_bytes(b"no picture")
        self.run_cli("describe", "pictures", "--scan", "--set", "field=masks", expect=2)
        self.run_cli("describe", "pictures", "--scan", "--save", "sizes.manifest")
        self.assertIn(message("right-size"), self.run_cli("verify", "pictures", "--manifest", "sizes.manifest", expect=77).stdout)
        self.run_cli("read", "two", "--set", "field=masks", expect=2)
        self.run_cli("generate", "imagenet", "--format", "npz", "--samples", 2, "--out", "made", "--set", "field=masks", expect=2)
        trained = self.records("train", "stream", "--data", "two", "--scan", "--set", "field=masks", "--batch", 1, "--steps", 3)[0]
        self.assertEqual(trained["verdict"], "ok")

    def test_hdf5_with_other_arrays_and_links(self):
        self.python("numpy, h5py", """
import os, signal
for folder in ("scalars", "tracked", "closed", "open"):
    os.mkdir(folder)
with h5py.File("scalars/a.h5", "w", libver="latest") as f:
    f["data"], f["version"], f["none"] = numpy.zeros((64, 16), "f4"), 3, h5py.Empty("f4")
with h5py.File("tracked/a.h5", "w", libver="earliest", track_order=True) as f:
    for i in range(20):
        f[f"s{i:02}"] = numpy.zeros(16, "f4")
for name in ("closed", "open"):
    f = h5py.File(name + "/a.h5", "w", libver="latest")
    f["data"], f["label"] = numpy.zeros((64, 16), "f4"), numpy.arange(64)
    f.flush()
    if name == "closed":
        f.close()
print("{}", flush=True)
os._exit(0)""")
        self.assertEqual(self.records("describe", "scalars", "--scan")[0]["samples"], 64)
        self.check_labels_of_other_types()
        closed = self.run_cli("describe", "closed", "--scan", "--json")
        self.assertEqual((json.loads(closed.stdout)["samples"], closed.stderr), (64, ""))
        self.assertIn("h5clear", self.run_cli("describe", "open", "--scan", expect=None).stderr)
        tracked = self.run_cli("describe", "tracked", "--scan", "--json", expect=None)
        if tracked.returncode == 0:
            self.assertEqual(json.loads(tracked.stdout)["samples"], 20)
        self.assertNotIn("earliest", tracked.stderr)

    def check_labels_of_other_types(self):
        """Labels that are truth values or enumerations are used; others are counted and named, and are never the samples."""
        self.python("numpy, h5py", """
import os
label = numpy.arange(64) % 2
kinds = {"text": ["cat"] * 64, "vectors": numpy.eye(64, dtype="f4"), "truth": label == 0, "none": None}
for folder, labels in kinds.items():
    os.mkdir(folder)
    with h5py.File(folder + "/a.h5", "w") as f:
        f["data"] = numpy.zeros((64, 16), "f4")
        if labels is not None:
            f["label"] = labels
        else:
            f.create_dataset("label", data=label, dtype=h5py.enum_dtype({"a": 0, "b": 1}, basetype="i1"))
for folder, kind in {"compound": [("a", "f4"), ("b", "f8")], "vectors_of": "(4,)f4", "complex": "c8"}.items():
    os.mkdir(folder)
    with h5py.File(folder + "/a.h5", "w") as f:
        f.create_dataset("data", (64,), dtype=numpy.dtype(kind))
        f["label"] = label
print("{}")""")
        for folder in ("text", "vectors", "truth", "none"):
            corpus = self.records("describe", folder, "--scan")[0]
            is_used = folder in ("truth", "none")
            self.assertEqual((corpus["samples"], corpus["labels"]["used"], corpus["scan"]["arrays"]), (64, 2, 0) if is_used else (64, 0, 1), folder)
        for folder in ("compound", "vectors_of", "complex"):
            self.assertIn("'data'", self.run_cli("describe", folder, "--scan", expect=77).stderr)

    def test_damage_is_told_by_name_and_place(self):
        for name, extension in (("npz", "npz"), ("npy", "npy"), ("hdf5", "h5")):
            self.generate(name, "--format", name, "--set", "samples_per_file=1", "--set", "dirs=flat")
            path = sorted((self.dir / name).glob(f"*.{extension}"))[0]
            whole = path.read_bytes()
            for damaged in (whole[:len(whole) // 2], whole[:5]):
                path.write_bytes(damaged)
                output = self.run_cli("describe", name, "--scan").stderr
                self.assertIn(message("arrays-unreadable", n=1), output)
                self.assertIn(path.name, output)
                self.assertRegex(output, "at byte [0-9]+")


if __name__ == "__main__":
    penstock_cli.main()
