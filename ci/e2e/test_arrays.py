"""Samples in NPY, NPZ and HDF5: NumPy and h5py read them."""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest
import zipfile

from array_case import ArrayTest
from other_formats import npy, npz
import penstock_cli


class NumpyReadsThem(ArrayTest):
    def test_npz_of_one(self):
        files = self.plain_files()
        self.generate("data", "--format", "npz", "--set", "samples_per_file=1")
        for path in (self.dir / "data").rglob("*.npz"):
            with zipfile.ZipFile(path) as archive:
                self.assertIsNone(archive.testzip())
                self.assertEqual(archive.namelist(), ["image.npy", "label.npy"])
                self.assertEqual({(info.compress_type, info.date_time) for info in archive.infolist()},
                                 {(zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))})
        code = """
import pathlib
arrays = {str(p.relative_to("data").with_suffix("")): numpy.load(p) for p in pathlib.Path("data").rglob("*.npz")}
print(json.dumps({key: [a["image"].tobytes().hex(), str(a["image"].dtype), a["image"].ndim, str(a["label"].dtype),
                        a["label"].tolist()] for key, a in arrays.items()}))"""
        read = self.python("numpy", code)
        self.assertEqual(read, {key: [content.hex(), "uint8", 1, "int64", [i % 5]]
                                for i, (key, content) in enumerate(files.items())})

    def test_npz_of_many(self):
        files = list(self.plain_files().values())
        self.generate("data", "--format", "npz", "--set", "samples_per_file=9")
        code = """
a = numpy.load(f"data/imagenet-{int(sys.argv[1]):05}-of-00003.npz")
o = a["image_offsets"]
print(json.dumps([[a["image"][b:e].tobytes().hex() for b, e in zip(o, o[1:])], a["label"].tolist(), a.files]))"""
        for shard in range(3):
            images, labels, names = self.python("numpy", code, shard)
            self.assertEqual(names, ["image", "image_offsets", "label"])
            self.assertEqual(images, [content.hex() for content in files[shard * 9:shard * 9 + 9]])
            self.assertEqual(labels, [i % 5 for i in range(23)][shard * 9:shard * 9 + 9])

    def test_npy(self):
        files = self.plain_files()
        self.generate("data", "--format", "npy", "--set", "samples_per_file=1")
        code = """
import pathlib
print(json.dumps({str(p.relative_to("data").with_suffix("")): numpy.load(p, mmap_mode="r").tobytes().hex()
                  for p in pathlib.Path("data").rglob("*.npy")}))"""
        self.assertEqual(self.python("numpy", code), {key: content.hex() for key, content in files.items()})
        self.assertIn("samples_per_file=1", self.generate("no", "--format", "npy", expect=2).stderr)


class H5pyReadsThem(ArrayTest):
    def test_pictures_of_one_and_of_many(self):
        files = self.plain_files()
        self.generate("one", "--format", "hdf5", "--set", "samples_per_file=1")
        code = """
import pathlib
files = {str(p.relative_to("one").with_suffix("")): h5py.File(p, "r") for p in pathlib.Path("one").rglob("*.h5")}
print(json.dumps({key: [f["image"][()].tobytes().hex(), str(f["image"].dtype), f["label"][()].tolist(), sorted(f)]
                  for key, f in files.items()}))"""
        self.assertEqual(self.python("h5py", code), {
            key: [content.hex(), "uint8", [i % 5], ["image", "label"]] for i, (key, content) in enumerate(files.items())})
        self.generate("many", "--format", "hdf5", "--set", "samples_per_file=9")
        code = """
f = h5py.File("many/imagenet-00001-of-00003.h5", "r")
o = f["image_offsets"][()]
print(json.dumps([[f["image"][b:e].tobytes().hex() for b, e in zip(o, o[1:])], f["label"][()].tolist(), sorted(f)]))"""
        images, labels, names = self.python("h5py", code)
        self.assertEqual(images, [content.hex() for content in files.values()][9:18])
        self.assertEqual(labels, [i % 5 for i in range(9, 18)])
        self.assertEqual(names, ["image", "image_offsets", "label"])

    @unittest.skipUnless(shutil.which("h5dump"), "no h5dump here")
    def test_the_tools_read_them_without_a_word(self):
        self.generate("data", "--format", "hdf5", "--set", "samples_per_file=9")
        for path in (self.dir / "data").glob("*.h5"):
            dumped = subprocess.run(["h5dump", "-p", "-d", "label", path], capture_output=True, text=True, check=True)
            self.assertEqual(dumped.stderr, "")
            self.assertIn("H5T_STD_I64LE", dumped.stdout)


if __name__ == "__main__":
    penstock_cli.main()
