"""Files that h5py, NumPy, TensorFlow, PyTables and netCDF4 write, read by penstock and compared sample by sample. Called by ci/interop."""

import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "e2e"))
from manifest_file import ManifestFile, crc32c  # noqa: E402  (it is in ci/e2e)

ROWS, SHAPE = 23, (9, 14, 3)


class Folder:
    """A folder that one file after another is put into."""

    def __init__(self, penstock, where):
        self.penstock, self.where = penstock, pathlib.Path(where)

    def clear(self):
        shutil.rmtree(self.where / "data", ignore_errors=True)
        (self.where / "data").mkdir()
        return self.where / "data"

    def run(self, *words):
        return subprocess.run([self.penstock, *words, "--no-config"], capture_output=True, text=True, cwd=self.where)

    def samples(self, *words):
        """The checksums of the samples that a scan finds, or the reason why there are none."""
        manifest = self.where / "data.manifest"
        manifest.unlink(missing_ok=True)
        done = self.run("describe", "data", "--scan", "--checksum", "--save", str(manifest), "--json", *words)
        if done.returncode not in (0, 1, 2, 77):
            raise AssertionError(f"exit {done.returncode}: {done.stderr}")
        if done.returncode != 0:
            return None, done.stderr.strip()
        for check in (("verify", "data", "--manifest", str(manifest)),
                      ("read", "data", "--manifest", str(manifest), "--verify", "--min-time", "0s", "--repeat", "1", "--no-baseline", "--no-ceiling",
                       "--results", str(self.where / "results"))):
            checked = self.run(*check)
            if checked.returncode != 0:
                raise AssertionError(f"{' '.join(check)}: exit {checked.returncode}: {checked.stderr}")
        return [crc for _, _, _, crc in ManifestFile(manifest).samples], done.stderr.strip()

    def expect(self, name, rows, *words):
        found, why = self.samples(*words)
        if found != [crc32c(bytes(row)) for row in rows]:
            raise AssertionError(f"{name}: {'other samples' if found else why}")

    def expect_refused(self, name, reason, *words):
        found, why = self.samples(*words)
        if found is not None or reason not in why:
            raise AssertionError(f"{name}: {why or 'it was read'}, where the reason is: {reason}")


def pictures(np, kind="u1"):
    """Rows that compress."""
    values = np.arange(ROWS * SHAPE[0] * SHAPE[1] * SHAPE[2]).reshape(ROWS, *SHAPE)
    return (values // 7 % 50).astype(kind)


# Names of kinds and how h5py stores them.
STORED = {
    "contiguous": {}, "row chunks": {"chunks": (1, *SHAPE)}, "several rows a chunk": {"chunks": (5, *SHAPE)},
    "one chunk": {"chunks": (ROWS, *SHAPE)}, "cut rows": {"chunks": (4, 5, 6, 2)}, "gzip": {"compression": "gzip"},
    "gzip and shuffle": {"compression": "gzip", "compression_opts": 9, "shuffle": True},
    "gzip and fletcher32": {"compression": "gzip", "fletcher32": True, "chunks": (3, *SHAPE)},
    "lzf": {"compression": "lzf", "chunks": (4, 9, 7, 3)}, "shuffle": {"shuffle": True, "chunks": (6, *SHAPE)},
    "fletcher32": {"fletcher32": True, "chunks": (6, 4, 14, 3)},
    "all filters": {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (7, 4, 14, 2)},
    "rows to come": {"maxshape": (None, *SHAPE), "compression": "gzip"},
    "two sides to come": {"maxshape": (None, None, *SHAPE[1:]), "compression": "lzf", "chunks": (2, *SHAPE)},
    "one compressed chunk": {"chunks": (ROWS, *SHAPE), "compression": "gzip"},
}


def h5py_kinds(h5, np, folder):
    count = 0
    kinds = ("u1", "<f4", ">f4", ">i2", "<f8")
    for (name, how), version, kind in itertools.product(STORED.items(), ("earliest", "latest"), kinds):
        rows = pictures(np, kind)
        with h5.File(folder.clear() / "a.h5", "w", libver=version) as file:
            file.create_dataset("data", data=rows, **how)
            file["label"] = np.arange(ROWS)
        folder.expect(f"{name}, {version}, {kind}", [row.tobytes() for row in rows])
        count += 1
    rows = pictures(np)
    for version in ("earliest", "latest"):
        with h5.File(folder.clear() / "a.h5", "w", libver=version, userblock_size=2048, track_order=True) as file:
            group = file.create_group("deep/down", track_order=True)
            for i in range(40):
                group[f"text{i}"] = "no number"
            group.create_dataset("data", data=rows, compression="gzip")
            group.create_dataset("label", data=np.arange(ROWS), compression="gzip", chunks=(4,))
            group.create_dataset("lists of numbers", (5,), dtype=h5.vlen_dtype("i4"))[:] = [np.arange(i + 1) for i in range(5)]
            file["version"] = 7
        folder.expect(f"groups, {version}", [row.tobytes() for row in rows])
        with h5.File(folder.clear() / "a.h5", "w", libver=version) as file:
            grown = file.create_dataset("data", (0, *SHAPE), "u1", maxshape=(None, *SHAPE), chunks=(2, *SHAPE), compression="gzip")
            for i in range(ROWS):
                grown.resize(i + 1, 0)
                grown[i] = rows[i]
        folder.expect(f"row by row, {version}", [row.tobytes() for row in rows])
        count += 2
    with h5.File(folder.clear() / "a.h5", "w", libver="latest") as file:
        data = file.create_dataset("data", data=rows, maxshape=(None, *SHAPE), chunks=(1, *SHAPE))
        file.swmr_mode = True
        data.flush()
    folder.expect("SWMR, closed", [row.tobytes() for row in rows])
    with h5.File(folder.clear() / "a.h5", "w") as file:
        file["left"], file["right"], file["label"] = rows, rows[::-1], np.arange(ROWS)
    folder.expect("the second of two", [row.tobytes() for row in rows[::-1]], "--set", "field=right")
    with h5.File(folder.clear() / "a.h5", "w") as file:
        create = h5.h5p.create(h5.h5p.DATASET_CREATE)
        create.set_layout(h5.h5d.COMPACT)
        h5.h5d.create(file.id, b"data", h5.h5t.STD_U8LE, h5.h5s.create_simple((4, 5)), create).write(h5.h5s.ALL, h5.h5s.ALL, rows[:4, :5, 0, 0].copy())
    folder.expect("compact", [row.tobytes() for row in rows[:4, :5, 0, 0]])
    count += many_chunks(h5, np, folder)
    for version, kind in itertools.product(("earliest", "latest"), ("u1", ">f4", "<i8")):
        with h5.File(folder.clear() / "a.h5", "w", libver=version) as file:
            data = file.create_dataset("data", rows.shape, kind, chunks=(1, 5, 14, 3), compression="gzip", fillvalue=9)
            data[3:7], data[20] = rows[3:7], rows[20]
            expected = [row.tobytes() for row in data[()]]
        folder.expect(f"chunks that were never written, {version}, {kind}", expected)
        count += 1
    return count + 3


def many_chunks(h5, np, folder):
    """Datasets whose chunk index has pages, and chunks that follow one another with gaps for a dataset that grows."""
    numbers = np.arange(1, 140_001, dtype="<i4").reshape(-1, 2)
    kinds = {"an extensible array of 140 000 chunks": {"data": numbers.reshape(-1, 1), "chunks": (1, 1), "maxshape": (None, 1)},
             "a fixed array of 3000 chunks": {"data": numbers[:3000], "chunks": (1, 2)},
             "a fixed array of 5000, of which 3000": {"data": numbers[:3000], "chunks": (1, 2), "maxshape": (5000, 2)},
             "a tree of 4000": {"data": numbers[:2000], "chunks": (1, 1), "maxshape": (None, None)}}
    for name, how in kinds.items():
        with h5.File(folder.clear() / "a.h5", "w", libver="latest") as file:
            file.create_dataset("data", **how)
        folder.expect(name, [row.tobytes() for row in how["data"]])
    numbers = numbers[:48].reshape(4, 4, 6)
    for most in ((4, 4, 6), (4, 9, 6), (8, 4, 13)):
        with h5.File(folder.clear() / "a.h5", "w", libver="latest") as file:
            create = h5.h5p.create(h5.h5p.DATASET_CREATE)
            create.set_chunk((2, 3, 4))
            create.set_alloc_time(h5.h5d.ALLOC_TIME_EARLY)
            h5.h5d.create(file.id, b"data", h5.h5t.STD_I32LE, h5.h5s.create_simple((4, 4, 6), most), create).write(
                h5.h5s.ALL, h5.h5s.ALL, np.ascontiguousarray(numbers))
        folder.expect(f"implicit chunks, at most {most}", [row.tobytes() for row in numbers])
    return len(kinds) + 3


def library_kinds(h5, np, folder, plugins):
    """Chunks with filters that penstock leaves to HDF5's own library."""
    chunks = {"chunks": (4, 9, 7, 3)}
    kinds = {"scale-offset": {"scaleoffset": 0, **chunks}, "scale-offset in one chunk": {"scaleoffset": 0, "chunks": (ROWS, *SHAPE)},
             "scale-offset, shuffle, gzip": {"scaleoffset": 0, "shuffle": True, "compression": "gzip"},
             "scale-offset, lzf": {"scaleoffset": 0, "compression": "lzf", **chunks},
             "szip": {"compression": "szip", **chunks}, "szip ec": {"compression": "szip", "compression_opts": ("ec", 8), **chunks},
             "Blosc": plugins.Blosc(cname="zstd", shuffle=plugins.Blosc.BITSHUFFLE), "Blosc, fletcher32": {**plugins.Blosc(), "fletcher32": True},
             "Blosc2": plugins.Blosc2(), "bitshuffle": plugins.Bitshuffle(), "bzip2": plugins.BZip2(), "LZ4": {**plugins.LZ4(), "shuffle": True},
             "Zstandard": plugins.Zstd(), "shuffle, Zstandard, fletcher32": {**plugins.Zstd(clevel=9), "shuffle": True, "fletcher32": True}}
    count = 0
    for (name, how), version, kind in itertools.product(kinds.items(), ("earliest", "latest"), ("u1", "<f4", ">i2")):
        if "scaleoffset" in how and kind == "<f4":
            how = {**how, "scaleoffset": 2}
        with h5.File(folder.clear() / "a.h5", "w", libver=version) as file:
            data = file.create_dataset("data", data=pictures(np, kind), **how)
            file["label"] = np.arange(ROWS)
            expected = [row.tobytes() for row in data[()]]
        folder.expect(f"{name}, {version}, {kind}", expected)
        count += 1
    rows = pictures(np, "<f4")
    with h5.File(folder.clear() / "a.h5", "w") as file:
        file.create_dataset("data", data=rows, **plugins.Zfp(reversible=True))
    folder.expect("ZFP", [row.tobytes() for row in rows])
    with h5.File(folder.clear() / "a.h5", "w") as file:
        data = file.create_dataset("data", rows.shape, "u1", chunks=(1, 5, 14, 3), fillvalue=9, **plugins.Zstd())
        data[3:7], data[20] = rows[3:7], rows[20]
        expected = [row.tobytes() for row in data[()]]
    folder.expect("chunks that were never written", expected)
    return count + 2


def h5py_refused(h5, np, folder, plugins):
    rows = pictures(np)
    with h5.File(folder.clear() / "a.h5", "w") as file:
        file.create_dataset("data", data=rows, **plugins.Zstd())
    path = os.environ.pop("HDF5_PLUGIN_PATH")
    folder.expect_refused("a filter without its plug-in", "its chunks are filtered (Zstandard), and")
    folder.expect_refused("a filter without its plug-in", "HDF5_PLUGIN_PATH")
    os.environ["HDF5_PLUGIN_PATH"] = path
    with h5.File(folder.clear() / "a.h5", "w", libver="latest") as file:
        layout = h5.VirtualLayout(rows.shape, "u1")
        layout[:] = h5.VirtualSource("b.h5", "data", rows.shape)
        file.create_virtual_dataset("data", layout)
    folder.expect_refused("virtual", "virtual")
    with h5.File(folder.clear() / "a.h5", "w") as file:
        file.create_dataset("data", rows.shape, "u1", external=[(str(folder.where / "data" / "a.raw"), 0, rows.size)])[:] = rows
    folder.expect_refused("external", "external")
    with h5.File(folder.clear() / "a.h5", "w") as file:
        file.create_dataset("data", rows.shape, "u1", chunks=(1, *SHAPE))
    folder.expect_refused("chunks that were never written", "never written")
    with h5.File(folder.clear() / "a.h5", "w") as file:
        file["data"] = np.zeros(5, dtype=[("a", "f4"), ("b", "i8")])
    folder.expect_refused("compounds", "compounds")
    folder.clear()
    code = ("import h5py, numpy, os, signal; f = h5py.File('data/a.h5', 'w', libver='latest'); f['data'] = numpy.zeros((9, 9)); f.flush(); "
            "os.kill(os.getpid(), signal.SIGKILL)")
    killed = subprocess.run([sys.executable, "-c", code], cwd=folder.where, check=False)
    if killed.returncode != -signal.SIGKILL:
        raise AssertionError("the writer was not killed")
    folder.expect_refused("a killed writer", "h5clear")
    whole = folder.clear() / "a.h5"
    with h5.File(whole, "w") as file:
        file.create_dataset("data", data=rows, compression="gzip")
    whole.write_bytes(whole.read_bytes()[:-100])
    folder.expect_refused("a truncated file", "should end at byte")
    return 7


def archives(np, folder):
    rows = pictures(np, "<f4")
    np.savez_compressed(folder.clear() / "a.npz", x=rows, y=np.arange(ROWS))
    folder.expect("savez_compressed, rows", [row.tobytes() for row in rows])
    np.savez_compressed(folder.clear() / "a.npz", *rows)
    folder.expect("savez_compressed, an array a sample", [row.tobytes() for row in rows])
    flat, offsets = rows.ravel(), np.array([0, 10, 10, 5000, rows.size])
    np.savez_compressed(folder.clear() / "a.npz", x=flat, x_offsets=offsets)
    folder.expect("savez_compressed, ranges", [flat[a:b].tobytes() for a, b in itertools.pairwise(offsets)])
    return 3


def records(tf, np, folder):
    payloads = [os.urandom(3000 + 97 * i) + bytes(5000) for i in range(200)]
    for kind in ("GZIP", "ZLIB"):
        path = folder.clear() / "a.tfrecord"
        with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=kind)) as writer:
            for i, payload in enumerate(payloads):
                features = {"image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[payload])),
                            "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        folder.expect(f"TFRecord, {kind}", payloads)
    return 2


def netcdf(nc, np, folder):
    rows = pictures(np, "i2")
    filters = {"zlib": True, "shuffle": True, "fletcher32": True, "chunksizes": (2, 9, 5, 3)}
    kinds = (("<i2", {}), ("<i2", {"zlib": True}), ("<i2", filters), (">i2", {"zlib": True, "endian": "big"}))
    for kind, how in kinds:
        with nc.Dataset(folder.clear() / "a.h5", "w") as file:
            for name, size in zip(("time", "y", "x", "band"), (None, *SHAPE)):
                file.createDimension(name, size)
            file.createVariable("time", "f8", ("time",))[:] = np.arange(ROWS)
            file.createVariable("data", kind, ("time", "y", "x", "band"), **how)[:] = rows
        folder.expect(f"netCDF-4, {kind}, {how}", [row.tobytes() for row in rows.astype(kind)], "--set", "field=data")
    return len(kinds)


def is_readable(h5, found):
    """Whether penstock claims to read this dataset: numbers of 1, 2, 4 or 8 bytes, of which something was written to the file, by filters of penstock, HDF5 or hdf5plugin."""
    create, kind = found.id.get_create_plist(), found.id.get_type()
    filters = {create.get_filter(i)[0] for i in range(create.get_nfilters())}
    return (kind.get_class() in (h5.h5t.INTEGER, h5.h5t.FLOAT) and kind.get_size() in (1, 2, 4, 8) and found.size > 0 and
            found.id.get_storage_size() > 0 and not found.is_virtual and not found.external and filters <= {1, 2, 3, 4, 5, 6, 307, 32000, 32001})


def shipped(h5, np, folder, package, pattern):
    """The HDF5 files that a package ships for its own tests: each array that is_readable() is read as h5py reads it, others may be refused."""
    read = refused = 0
    for path in sorted(pathlib.Path(package.__file__).parent.glob(pattern)):
        shutil.copy(path, folder.clear() / "a.h5")
        try:
            file = h5.File(path)
        except OSError:
            if folder.samples()[0] is not None:
                raise AssertionError(f"{path.name} was read, which h5py refuses") from None
            refused += 1
            continue
        with file:
            names = []
            file.visititems(lambda name, found: names.append(name) if isinstance(found, h5.Dataset) and found.shape is not None else None)
            for name in names:
                found, why = folder.samples("--set", f"field={name}")
                if found is None:
                    if is_readable(h5, file[name]):
                        raise AssertionError(f"{name} of {path.name} is refused: {why}")
                    refused += 1
                    continue
                array = np.asarray(file[name][()])
                whole = [crc32c(array.tobytes())]
                if found != whole and (array.ndim == 0 or found != [crc32c(row.tobytes()) for row in array]):
                    raise AssertionError(f"{name} of {path.name} ({array.dtype}, {array.shape}): other samples than h5py's")
                read += 1
    if read + refused == 0:
        raise AssertionError(f"{package.__name__} ships no {pattern}")
    return f"{read} read, {refused} refused"


def run(penstock, module):
    """A text about what was compared. `module` imports a package, or raises what says that it is missing."""
    h5, np, plugins = module("h5py"), module("numpy"), module("hdf5plugin")
    os.environ["HDF5_PLUGIN_PATH"] = plugins.PLUGIN_PATH
    with tempfile.TemporaryDirectory(prefix="penstock-foreign-") as where:
        folder = Folder(penstock, where)
        results = [f"{h5py_kinds(h5, np, folder)} kinds of HDF5 files read, {h5py_refused(h5, np, folder, plugins)} refused with their reasons",
                   f"{library_kinds(h5, np, folder, plugins)} kinds with filters of HDF5's library",
                   f"{archives(np, folder)} archives of savez_compressed"]
        results.append(f"{netcdf(module('netCDF4'), np, folder)} kinds of netCDF-4 files")
        for name, pattern in (("tables", "tests/*.h5"), ("scipy", "io/matlab/tests/data/testhdf5*")):
            results.append(f"arrays of {name}'s test files: " + shipped(h5, np, folder, module(name), pattern))
        results.append(f"{records(module('tensorflow'), np, folder)} compressed TFRecords")
    return "; ".join(results)
