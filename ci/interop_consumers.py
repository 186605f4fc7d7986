#!/usr/bin/env python3
"""Data sets of penstock, read by those who will read them. Called by ci/interop; see there."""

import functools
import importlib
import io
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib

PENSTOCK = os.environ.get("PENSTOCK", "penstock")
SAMPLES = 60


class Skipped(Exception):
    pass


def module(name):
    try:
        return importlib.import_module(name)
    except Exception as missing:  # a broken installation raises whatever it likes
        raise Skipped(f"{name} cannot be imported: {missing}") from None


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def equal(got, expected, what):
    check(got == expected, f"{what}: {got!r} instead of {expected!r}")


class Corpora:
    """Makes each data set once."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    @functools.lru_cache(maxsize=None)
    def get(self, recipe, form, *settings, samples=SAMPLES):
        out = self.folder / "-".join([recipe, form, *(s.replace("=", "_").replace(":", "_") for s in settings)])
        words = [PENSTOCK, "generate", recipe, "--format", form, "--out", str(out), "--samples", str(samples), "--seed", "7",
                 "--results", str(self.folder / "results"), "--json", "--no-config"]
        for setting in settings:
            words += ["--set", setting]
        done = subprocess.run(words, capture_output=True, text=True)
        check(done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}")
        return out

    def pictures(self, recipe="imagenet"):
        """The samples as files, by key: what every other format must hold."""
        folder = self.get(recipe, "files")
        return {str(path.relative_to(folder).with_suffix("")): path.read_bytes()
                for path in sorted(folder.rglob("*")) if path.is_file() and ".penstock" not in path.parts}


def label_of(key):
    """imagenet's classes are folders n00000000, n00000001 ...: the label is the number."""
    return int(key.split("/")[0][1:])


CIFAR_CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]  # in the order of their labels


def objects(folder, suffix):
    found = sorted(path for path in folder.rglob(f"*{suffix}") if ".penstock" not in path.parts)
    check(found, f"no {suffix} in {folder}")
    return found


def tensorflow(corpora):
    tf = module("tensorflow")
    pictures = corpora.pictures()
    for settings in (("shards=3",), ("samples_per_file=1",)):
        files = [str(path) for path in objects(corpora.get("imagenet", "tfrecord", *settings), ".tfrecord")]
        seen = set()
        for record in tf.data.TFRecordDataset(files):  # checks both CRCs of each record
            features = tf.io.parse_single_example(record, {
                "image/encoded": tf.io.FixedLenFeature([], tf.string),
                "image/class/label": tf.io.FixedLenFeature([], tf.int64),
                "image/class/text": tf.io.FixedLenFeature([], tf.string),
                "image/filename": tf.io.FixedLenFeature([], tf.string)})
            key = features["image/filename"].numpy().decode().rsplit(".", 1)[0]
            encoded = features["image/encoded"].numpy()
            equal(encoded, pictures[key], f"the picture of {key} in TFRecord")
            equal(key.split("/")[0], features["image/class/text"].numpy().decode(), f"class of {key}")
            equal(int(features["image/class/label"].numpy()), label_of(key), f"label of {key}")
            image = tf.io.decode_jpeg(encoded)
            equal(image.shape[2], 3, f"channels of {key}")
            seen.add(key)
        equal(len(seen), SAMPLES, "pictures in TFRecord")
    packed = corpora.get("imagenet", "tfrecord", "shards=3", "compression=gzip")
    seen = set()
    for record in tf.data.TFRecordDataset([str(path) for path in objects(packed, ".tfrecord.gz")], compression_type="GZIP"):
        features = tf.io.parse_single_example(record, {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/filename": tf.io.FixedLenFeature([], tf.string)})
        key = features["image/filename"].numpy().decode().rsplit(".", 1)[0]
        encoded = features["image/encoded"].numpy()
        equal(encoded, pictures[key], f"the picture of {key} in compressed TFRecord")
        equal(tf.io.decode_jpeg(encoded).shape[2], 3, f"channels of {key}")
        seen.add(key)
    equal(len(seen), SAMPLES, "pictures in compressed TFRecord")
    count = 0
    for record in tf.data.TFRecordDataset([str(p) for p in objects(corpora.get("cosmoflow", "tfrecord", samples=4),
                                                                   ".tfrecord")]):
        example = tf.train.Example.FromString(record.numpy())
        payload = max((f.bytes_list.value[0] for f in example.features.feature.values() if f.bytes_list.value), key=len)
        check(len(payload) > 1_000_000, "cosmoflow's samples are megabytes")
        count += 1
    equal(count, 4, "cosmoflow's samples")
    return f"{3 * SAMPLES} pictures parsed and decoded, both CRCs of each record checked, a third of them in gzip; 4 of cosmoflow"


def webdataset(corpora):
    wds = module("webdataset")
    pictures = corpora.pictures()
    shards = [str(path) for path in objects(corpora.get("imagenet", "webdataset", "shards=3"), ".tar")]
    seen = set()
    for sample in wds.WebDataset(shards, shardshuffle=False):
        [extension] = [name for name in sample if name.lower() in ("jpeg", "jpg")]
        equal(sample[extension], pictures[sample["__key__"]], f"the picture of {sample['__key__']} in tar")
        equal(int(sample["cls"]), label_of(sample["__key__"]), f"label of {sample['__key__']}")
        seen.add(sample["__key__"])
    equal(len(seen), SAMPLES, "pictures in tar")
    return f"{SAMPLES} pictures of 3 shards, byte for byte the files'"


# Of a sample: shape, type, and chunks where it has some (else it is in one piece). HEPCNNB's program reads the first five; the papers
# count nine data sets and do not name the others.
HEPCNN = {"data": ((3, 224, 224), "<f4", None), "label": ((), "<i4", None), "normweight": ((), "<f4", None), "weight": ((), "<f4", None),
          "psr": ((), "<f4", None), "met": ((), "<f4", None), "njets": ((), "<i4", None), "ht": ((), "<f4", None),
          "event": ((), "<i8", None)}
CLIMATE = {"climate/data": ((16, 768, 1152), "<f4", (16, 768, 1152)), "climate/labels": ((768, 1152), "<f4", (768, 1152)),
           "climate/stats": ((16, 4), "<f4", None)}


def layout_of(h5, file):
    """Name -> (shape, type, chunks) of all data sets of an HDF5 file."""
    found = {}

    def visit(name, thing):
        if isinstance(thing, h5.Dataset):
            found[name] = (thing.shape, thing.dtype.str, thing.chunks)

    file.visititems(visit)
    return found


def h5py(corpora):
    h5 = module("h5py")
    np = module("numpy")
    labels = {content: label_of(key) for key, content in corpora.pictures().items()}
    singles = objects(corpora.get("imagenet", "hdf5", "samples_per_file=1"), ".h5")
    equal(len(singles), SAMPLES, "files of one sample")
    for path in singles:
        with h5.File(path) as file:
            equal(labels.get(file["image"][()].tobytes()), int(np.ravel(file["label"][()])[0]), f"label of the picture in {path.name}")
            equal(file["image"].dtype, np.uint8, "type of pictures")
    several = objects(corpora.get("imagenet", "hdf5", "shards=2"), ".h5")
    seen = 0
    for path in several:
        with h5.File(path) as file:
            offsets = file["image_offsets"][()]
            everything = file["image"][()].tobytes()
            for begin, end, label in zip(offsets[:-1], offsets[1:], file["label"][()], strict=True):
                equal(labels.get(everything[begin:end]), int(label), f"label of a picture of {path.name}, which is one of the files")
                seen += 1
    equal(seen, SAMPLES, "pictures in HDF5 shards")
    with h5.File(objects(corpora.get("cifar10", "hdf5", "shards=1"), ".h5")[0]) as file:
        equal(file["image"].shape, (SAMPLES, 3, 32, 32), "shape of cifar10 in HDF5")
        equal(file["image"].dtype, np.uint8, "type of cifar10 in HDF5")
    with h5.File(objects(corpora.get("hepcnn", "hdf5", "samples_per_file=5", samples=5), ".h5")[0]) as file:
        equal(layout_of(h5, file), {name: ((5, *shape), kind, chunks and (1, *chunks)) for name, (shape, kind, chunks) in HEPCNN.items()},
              "hepcnn's nine data sets (shape, type, chunks)")
        for name in HEPCNN:
            check(np.isfinite(file[name][()]).all(), f"{name} of hepcnn is numbers")
    files = {path.name: path for path in objects(corpora.get("climate", "hdf5", samples=1), ".h5")}
    equal(sorted(files), ["data-00000.h5", "stats.h5"], "climate's files")
    with h5.File(files["data-00000.h5"]) as file:
        equal(layout_of(h5, file), CLIMATE, "climate's data sets (shape, type, chunks)")
    with h5.File(files["stats.h5"]) as file:
        equal(layout_of(h5, file), {"climate/stats": CLIMATE["climate/stats"]}, "data sets of climate's stats.h5")
    return f"{2 * SAMPLES} pictures with their labels, cifar10 as an array, hepcnn's nine data sets, climate's one chunk and stats.h5"


def numpy(corpora):
    np = module("numpy")
    labels = {content: label_of(key) for key, content in corpora.pictures().items()}
    for path in objects(corpora.get("imagenet", "npz", "samples_per_file=1"), ".npz"):
        with np.load(path) as arrays:
            equal(labels.get(arrays["image"].tobytes()), int(np.ravel(arrays["label"])[0]), f"label of the picture in {path.name}")
        with zipfile.ZipFile(path) as archive:
            equal(archive.testzip(), None, f"CRCs of {path.name}")
    with np.load(objects(corpora.get("cifar10", "npz", "shards=1"), ".npz")[0]) as arrays:
        equal(arrays["image"].shape, (SAMPLES, 3, 32, 32), "shape of cifar10 in NPZ")
        stacked, stacked_labels = arrays["image"], arrays["label"]
    labels = {content: CIFAR_CLASSES.index(key.split("/")[0]) for key, content in corpora.pictures("cifar10").items()}
    equal([labels.get(a.tobytes()) for a in stacked], stacked_labels.tolist(), "labels of cifar10 in NPZ")
    several = [np.load(path) for path in objects(corpora.get("cifar10", "npy", "samples_per_file=1"), ".npy")]
    equal({a.shape for a in several}, {(3, 32, 32)}, "shape of cifar10 in NPY")
    check({a.tobytes() for a in several} == {a.tobytes() for a in stacked}, "NPY and NPZ hold the same samples")
    records = b"".join(path.read_bytes() for path in objects(corpora.get("cifar10", "cifar"), ".bin"))
    rows = np.frombuffer(records, np.uint8).reshape(-1, 3073)  # a label, then planes of red, green and blue
    equal(len(rows), SAMPLES, "records of CIFAR's layout")
    equal({row[1:].tobytes(): int(row[0]) for row in rows}, labels, "CIFAR's layout holds the same samples with the same labels")
    with np.load(objects(corpora.get("unet3d", "npz", samples=1), ".npz")[0]) as arrays:
        check(arrays["x"].nbytes > 1_000_000, "unet3d's volume")
    return "NPZ with its CRCs, NPY, CIFAR's layout and unet3d; the same samples in each"


def pillow(corpora):
    image = module("PIL.Image")
    seen = 0
    for recipe in ("imagenet", "caltech101"):
        for key, data in corpora.pictures(recipe).items():
            with image.open(io.BytesIO(data)) as picture:
                equal(picture.format, "JPEG", key)
                picture.load()
                check(min(picture.size) >= 16, f"size of {key}")
                seen += 1
    for path in objects(corpora.get("imagenet", "files", "codec=png", samples=10), ".png"):
        with image.open(path) as picture:
            equal((picture.format, picture.mode), ("PNG", "RGB"), path.name)
            picture.load()
            seen += 1
    return f"{seen} JPEG and PNG decoded"


# torchvision is often the system's (Debian: python3-torchvision), since PyPI's torch brings gigabytes of CUDA.
TORCHVISION = """
import os, sys
import torchvision
from torchvision import io
from torchvision.datasets import ImageFolder

class Pictures(ImageFolder):  # a class is a folder that is not hidden; of releases that know it, allow_empty=True does as well
    def find_classes(self, directory):
        classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir() and not entry.name.startswith("."))
        return classes, {name: i for i, name in enumerate(classes)}

found = Pictures(sys.argv[1], is_valid_file=lambda path: path.endswith(".JPEG"))
for path, _ in found.samples:
    if io.decode_jpeg(io.read_file(path)).shape[0] != 3:
        sys.exit(f"{path} does not have three channels")
picture, label = found[0]
print(len(found), len(found.classes), picture.mode, torchvision.__version__)
"""


def torchvision(corpora):
    pythons = [python for python in (sys.executable, "/usr/bin/python3") if os.path.exists(python) and
               subprocess.run([python, "-c", "import torchvision.datasets"], capture_output=True).returncode == 0]
    if not pythons:
        raise Skipped("no Python on this machine has torchvision")
    folder = corpora.get("imagenet", "files")
    done = subprocess.run([pythons[0], "-c", TORCHVISION, str(folder)], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr.strip())
    seen, classes, mode, release = done.stdout.split()
    equal((int(seen), mode), (SAMPLES, "RGB"), "pictures in ImageFolder, and what they are")
    equal(int(classes), len({path.parent for path in objects(folder, ".JPEG")}), "classes in ImageFolder")
    return f"{SAMPLES} pictures in {classes} classes through ImageFolder and decode_jpeg (torchvision {release})"


def tests_of(file, *classes):
    """Tests that ctest runs wherever it finds what they need; how many ran, and how many were skipped."""
    environment = {**os.environ, "PENSTOCK_BUILD": str(pathlib.Path(PENSTOCK).resolve().parent), "PENSTOCK_LOADERS_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / "e2e" / file), *classes], capture_output=True, text=True,
                          env=environment)
    ran, skipped = (int(found.group(1)) if (found := re.search(words, done.stderr)) else 0 for words in (r"Ran (\d+) test", r"skipped=(\d+)"))
    check(done.returncode == 0 or ran <= skipped, done.stderr)
    if ran <= skipped:
        raise Skipped(done.stderr)
    return done.stdout, f"{ran - skipped} tests, {skipped} skipped"


def darshan(_):
    module("darshan")
    return f"totals of sessions are the report's ({tests_of('test_profile_exporters.py', 'Darshan')[1]})"


def tensorboard(_):
    module("tensorboard")
    return f"totals of sessions are the report's ({tests_of('test_profile_exporters.py', 'TensorBoard')[1]})"


def loaders(_):
    """tf.data and PyTorch's DataLoader under the profiler, whichever there are."""
    output, counts = tests_of("test_profile_loaders.py")
    return "; ".join([f"every file's bytes are known ({counts})", *output.splitlines()])


def hdf5_libraries(_):
    """h5py, netCDF4 and PyTables, which bring an HDF5 library each, in one process under the profiler."""
    output, counts = tests_of("test_profile_two_libraries.py")
    return "; ".join([f"each has its own functions ({counts})", *output.splitlines()])


DLIO = pathlib.Path(os.environ.get("PENSTOCK_DLIO", "build/dlio")).absolute()


def trained_by_dlio(corpora, folder, form, files, samples_per_file):
    """What the readers of dlio_benchmark, a program that trains with `folder`/train for one epoch, have read."""
    scratch = pathlib.Path(tempfile.mkdtemp(dir=corpora.folder))
    output = scratch / "read"
    workload = {"framework": "tensorflow", "workflow.generate_data": False, "workflow.train": True, "workflow.evaluation": False,
                "dataset.data_folder": folder, "dataset.format": form, "dataset.num_files_train": files, "dataset.num_files_eval": 0,
                "dataset.num_subfolders_train": 0, "dataset.num_subfolders_eval": 0, "dataset.num_samples_per_file": samples_per_file,
                "dataset.record_length": 20_000, "reader.data_loader": "tensorflow", "reader.read_threads": 1, "reader.batch_size": 4,
                "train.epochs": 1, "train.computation_time": 0, "output.folder": scratch / "out"}
    done = subprocess.run(
        [DLIO / "bin" / "python", pathlib.Path(__file__).absolute().with_name("dlio_reads.py"), output, "workload=default",
         *(f"++workload.{key}={value}" for key, value in workload.items()), f"hydra.run.dir={scratch / 'hydra'}"],
        capture_output=True, text=True, cwd=scratch, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, timeout=300)
    check(done.returncode == 0, f"DLIO reading {form}: {(done.stderr or done.stdout)[-2000:]}")
    return [json.loads(line) for line in output.read_text().splitlines()]


def dlio(corpora):
    """DLIO's own program and readers, over links in a folder `train` next to an empty `valid`: it lists both."""
    if not (DLIO / "bin" / "dlio_benchmark").exists():
        raise Skipped(f"no DLIO in {DLIO}: 'ci/interop dlio' fetches it")
    output = []
    for recipe, form, settings, suffix, samples, samples_per_file in (
            ("unet3d", "npz", ("mean=20000",), ".npz", 12, 1), ("resnet50", "tfrecord", ("samples_per_file=8",), ".tfrecord", 24, 8),
            ("cosmoflow", "tfrecord", ("mean=20000",), ".tfrecord", 12, 1), ("resnet50", "files", ("dirs=flat",), ".jpeg", 12, 1)):
        made = objects(corpora.get(recipe, form, *settings, samples=samples), suffix)
        folder = corpora.folder / f"dlio-{recipe}-{form}"
        for name in ("train", "valid"):
            (folder / name).mkdir(parents=True)
        for path in made:
            (folder / "train" / path.name).symlink_to(path)
        read = trained_by_dlio(corpora, folder, suffix[1:], len(made), samples_per_file)
        if suffix == ".npz":
            payloads = [payload_of_array(path, "x") for path in made]
        else:
            alone = corpora.get(recipe, "files", *(s for s in settings if s.startswith("mean=") or s == "dirs=flat"), samples=samples)
            payloads = [path.read_bytes() for path in objects(alone, "") if path.is_file()]
        equal(sorted((one["bytes"], one["crc32"]) for one in read), sorted((len(data), zlib.crc32(data)) for data in payloads),
              f"samples of {recipe} in {form} that DLIO has read")
        equal(len(read), samples, f"samples of {recipe} in {form}")
        equal({one["sides"] for one in read if "sides" in one}, {"tfrecord": set()}.get(form, {3}), f"sides of {recipe}'s arrays")
        for one in read:
            equal(one.get("size", math.isqrt(one["bytes"])), math.isqrt(one["bytes"]), f"size of a record of {recipe}")
        output.append(f"{len(read)} of {recipe} in {suffix[1:]}")
    return "every sample read once, with its bytes: " + ", ".join(output)


def payload_of_array(path, name):
    """The bytes of an array of an archive, behind the header of NumPy's format 1.0."""
    with zipfile.ZipFile(path) as archive:
        member = archive.read(f"{name}.npy")
    return member[10 + int.from_bytes(member[8:10], "little"):]


def foreign(_):
    """The other way round: penstock reads what others write."""
    import foreign_files
    return foreign_files.run(PENSTOCK, module)


CONSUMERS = {f.__name__: f for f in (tensorflow, webdataset, h5py, numpy, pillow, torchvision, darshan, tensorboard, loaders, hdf5_libraries, foreign,
                                     dlio)}


def main():
    names = sys.argv[1:] or list(CONSUMERS)
    unknown = [name for name in names if name not in CONSUMERS]
    if unknown:
        print(f"interop: unknown consumer '{unknown[0]}'; choose from: {' '.join(CONSUMERS)}", file=sys.stderr)
        return 2
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory(prefix="penstock-interop-") as folder:
        corpora = Corpora(folder)
        for name in names:
            try:
                output = CONSUMERS[name](corpora)
                passed += 1
                print(f"{name:<12} ok       {output}", flush=True)
            except Skipped as why:
                skipped += 1
                print(f"{name:<12} skipped  {why}", flush=True)
            except Exception as why:  # whatever a consumer raises, it does not take the data
                failed += 1
                print(f"{name:<12} FAILED   {type(why).__name__}: {why}", flush=True)
    print(f"interop: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0 if passed else 77


if __name__ == "__main__":
    sys.exit(main())
