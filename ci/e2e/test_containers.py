"""Samples in TFRecord and tar shards: other programs read them, scans find them again, damage is reported."""

import gzip
import pathlib
import shutil
import signal
import struct
import subprocess
import tarfile
import time
import zlib

from messages import message
import penstock_cli
from manifest_file import ManifestFile, crc32c, varint
from penstock_cli import tree

SMALL = ("--samples", 23, "--seed", 7, "--set", "median=8KB", "--set", "classes=5")
FORMATS = {"tfrecord": ".tfrecord", "webdataset": ".tar"}


def masked_crc32c(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records_of(path):
    """The payloads of a TFRecord file, both checksums of each looked at."""
    data = pathlib.Path(path).read_bytes()
    at = 0
    while at < len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        payload = data[at + 12:at + 12 + length]
        (payload_crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert length_crc == masked_crc32c(data[at:at + 8]), (path, at)
        assert payload_crc == masked_crc32c(payload), (path, at)
        yield payload
        at += 16 + length
    assert at == len(data), path


def fields_of(message):
    """(number, content) of every length-delimited field of a protobuf message that has no others."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        assert tag & 7 == 2, tag
        length, at = varint(message, at)
        yield tag >> 3, message[at:at + length]
        at += length


def example_of(message):
    """Feature name -> list of byte strings or numbers, of a tf.Example."""
    features = {}
    ((_, content),) = fields_of(message)
    for _, entry in fields_of(content):
        parts = dict(fields_of(entry))
        ((kind, values),) = fields_of(parts[2])
        if kind == 1:
            features[parts[1].decode()] = [value for _, value in fields_of(values)]
        else:
            ((_, packed),) = fields_of(values)
            numbers, at = [], 0
            while at < len(packed):
                number, at = varint(packed, at)
                numbers.append(number)
            features[parts[1].decode()] = numbers
    return features


class ContainerTest(penstock_cli.CliTest):
    def generate(self, out, *args, **kwargs):
        return self.run_cli("generate", "imagenet", "--out", out, *SMALL, *args, **kwargs)

    def plain_files(self):
        """Key -> bytes, of the same samples as plain files."""
        self.generate("files")
        root = self.dir / "files"
        return {str(path.relative_to(root).with_suffix("")): path.read_bytes() for path in root.rglob("*.JPEG")}


class OthersReadThem(ContainerTest):
    def test_tf_examples(self):
        files = self.plain_files()
        self.generate("data", "--format", "tfrecord", "--set", "shards=3")
        shards = sorted((self.dir / "data").glob("*"))
        self.assertEqual([path.name for path in shards],
                         [".penstock"] + [f"imagenet-{i:05}-of-00003.tfrecord" for i in range(3)])
        examples = [example_of(record) for path in shards[1:] for record in records_of(path)]
        self.assertEqual(len(examples), len(files))
        for i, example in enumerate(examples):
            (name,) = example["image/filename"]
            self.assertTrue(name.endswith(b".JPEG"))
            self.assertEqual(example["image/encoded"], [files[name.decode()[:-5]]])
            self.assertEqual(example["image/format"], [b"JPEG"])
            self.assertEqual(example["image/class/label"], [i % 5])
            self.assertEqual(example["image/class/text"], [f"n{i % 5:08}".encode()])

    def test_tars(self):
        files = self.plain_files()
        self.generate("data", "--format", "webdataset", "--set", "shards=3")
        found, labels = {}, {}
        for path in sorted((self.dir / "data").glob("*.tar")):
            with tarfile.open(path) as archive:
                for member in archive:
                    self.assertTrue(member.isfile())
                    self.assertEqual((member.mtime, member.uid, member.mode), (0, 0, 0o644))
                    key, extension = member.name.split(".")
                    (labels if extension == "cls" else found)[key] = archive.extractfile(member).read()
            if shutil.which("tar"):
                listed = subprocess.run(["tar", "tf", path], capture_output=True, text=True, check=True)
                self.assertEqual(listed.stderr, "")
                self.assertEqual(len(listed.stdout.splitlines()) % 2, 0)
        self.assertEqual(found, files)
        self.assertEqual(labels, {key: str(int(key[1:9])).encode() for key in files})


class ScansFindThem(ContainerTest):
    def test_the_same_samples_as_the_manifest_has(self):
        for name in FORMATS:
            self.generate(name, "--format", name, "--set", "shards=3")
            made = self.records("describe", name)[0]
            scanned = self.records("describe", name, "--scan", "--checksum", "--save", f"{name}.manifest")[0]
            for key in ("samples", "bytes", "objects", "size_bytes", "codec", "format"):
                self.assertEqual(made[key], scanned[key], key)
            self.assertEqual(scanned["labels"]["used"], 5)
            self.assertIn("3 right", self.run_cli("verify", name, "--manifest", f"{name}.manifest").stdout)
            self.run_cli("train", "alexnet", "--data", name, "--scan", "--steps", 2, "--batch", 4)

    def test_archives_that_others_made(self):
        pictures = sorted(self.plain_files().items())
        (self.dir / "theirs").mkdir()
        for name, style in (("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
            with tarfile.open(self.dir / "theirs" / f"{name}.tar", "w", format=style) as archive:
                archive.add(self.dir / "files" / "n00000001", arcname=".", recursive=False)
                for i, (key, content) in enumerate(pictures):
                    (self.dir / "content").write_bytes(content)
                    archive.add(self.dir / "content", arcname=f"./{'deep/' * (40 * (i % 2))}{key}.jpg")
        corpus = self.records("describe", "theirs", "--scan")[0]
        self.assertEqual((corpus["samples"], corpus["codec"]), (2 * len(pictures), "jpeg"))
        self.assertEqual(corpus["bytes"], 2 * sum(len(content) for _, content in pictures))

    def test_damage_is_told_by_name_and_place(self):
        for name, extension in FORMATS.items():
            self.generate(name, "--format", name, "--set", "shards=1")
            (path,) = (self.dir / name).glob(f"*{extension}")
            whole = path.read_bytes()
            for damaged in (whole[:len(whole) // 2], whole[:5], whole[:3] + b"\xff" + whole[4:]):
                path.write_bytes(damaged)
                output = self.run_cli("describe", name, "--scan", expect=1).stderr
                self.assertIn(path.name, output)
                self.assertRegex(output, "at byte [0-9]+")

    def test_names_that_lead_out_are_refused(self):
        (self.dir / "theirs").mkdir()
        with tarfile.open(self.dir / "theirs" / "a.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo("../../etc/passwd.jpg"))
        output = self.run_cli("describe", "theirs", "--scan", expect=1).stderr
        self.assertIn(message("member-leaves-archive"), output)

    def test_names_that_forge_lines_are_escaped(self):
        (self.dir / "theirs").mkdir()
        with tarfile.open(self.dir / "theirs" / "a.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo("/\x1b[2K\rx\npenstock: all is well"))
        escaped = r"'/\x1b[2K\x0dx\npenstock: all is well'"
        output = self.run_cli("describe", "theirs", "--scan", expect=1).stderr
        self.assertIn(escaped, output)
        self.assertEqual(output.count("\n"), 1, output)
        (self.dir / "theirs" / "b\n.jpg").write_bytes(b"jpg")  # then it is left out
        output = self.run_cli("describe", "theirs", "--scan").stderr
        self.assertIn(escaped, output)
        self.assertEqual(output.count("\n"), 1, output)


class Compressed(ContainerTest):
    """TFRecord with each record in a gzip member of its own."""

    WORDS = ("--format", "tfrecord", "--set", "shards=3", "--set", "compression=gzip")

    def setUp(self):
        super().setUp()
        done = self.generate("data", *self.WORDS, expect=None)
        if message("build-lacks-zlib") in done.stderr:
            self.assertEqual(done.returncode, 77)
            self.skipTest("this build lacks zlib")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.shards = sorted((self.dir / "data").glob("*.tfrecord.gz"))
        self.assertEqual([path.name for path in self.shards], [f"imagenet-{i:05}-of-00003.tfrecord.gz" for i in range(3)])

    def test_gunzip_makes_the_plain_shards_and_each_sample_is_a_member(self):
        self.generate("plain", "--format", "tfrecord", "--set", "shards=3")
        manifest = ManifestFile(self.dir / "data" / ".penstock" / "manifest")
        for path in self.shards:
            stored = path.read_bytes()
            plain = (self.dir / "plain" / path.name[:-3]).read_bytes()
            self.assertEqual(gzip.decompress(stored), plain)
            records, at = b"", 0
            for offset, length in manifest.payloads(path.name):
                self.assertEqual(offset, at)
                member = zlib.decompressobj(31)
                records += member.decompress(stored[offset:offset + length])
                self.assertTrue(member.eof)
                self.assertEqual(member.unused_data, b"")
                at += length
            self.assertEqual((at, records), (len(stored), plain))

    def test_commands_take_it_as_they_take_any(self):
        made = self.records("describe", "data", "--content")[0]
        self.assertEqual((made["codec"], made["samples"]), ("jpeg.tfrecord.gz", 23))
        self.assertEqual((made["content"]["pictures"]["jpeg"], made["content"]["pictures"]["failed"]), (23, 0))
        scanned = self.records("describe", "data", "--scan", "--checksum", "--save", "scan.manifest")[0]
        for key in ("samples", "bytes", "objects", "size_bytes", "codec", "format"):
            self.assertEqual(made[key], scanned[key], key)
        self.assertEqual(scanned["labels"]["used"], 5)
        ours, theirs = (ManifestFile(self.dir / name) for name in ("data/.penstock/manifest", "scan.manifest"))
        self.assertEqual(sorted(ours.checksums), sorted(theirs.checksums))
        for words in (("data",), ("data", "--scan")):
            self.run_cli("train", "alexnet", "--data", *words, "--steps", 2, "--batch", 4)
        record = self.records("read", "data", "--decode", "full", "--threads", 1, "--no-ceiling", "--min-time", "0.05s",
                              "--repeat", 1, "--verify")[-1]
        self.assertEqual(record["metrics"]["errors"]["value"], 0, record["reason"])
        self.assertIn("3 right", self.run_cli("verify", "data").stdout)
        at = self.shards[1].stat().st_size // 2
        content = bytearray(self.shards[1].read_bytes())
        content[at] ^= 4
        self.shards[1].write_bytes(content)
        self.assertIn(self.shards[1].name, self.run_cli("verify", "data", expect=1).stdout)

    def test_the_same_bytes_by_any_threads_and_after_a_kill(self):
        whole = tree(self.dir / "data")
        self.generate("four", *self.WORDS, "--threads", 4)
        self.assertEqual(tree(self.dir / "four"), whole)
        out = self.dir / "killed"
        words = [penstock_cli.PENSTOCK, "generate", "imagenet", "--out", f"posix:{out},latency=50ms", "--threads", 1, *SMALL,
                 *self.WORDS]
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.dir)
        deadline = time.monotonic() + 60
        while not list(out.glob("*.gz")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
        self.assertEqual(process.wait(), -signal.SIGKILL)
        self.generate("killed", *self.WORDS, "--resume")
        self.assertEqual(tree(out), whole)

    def test_what_others_compress_as_one_stream_is_read_by_sample(self):
        plain = [gzip.decompress(path.read_bytes()) for path in self.shards]
        theirs = self.dir / "theirs"
        checksums = {}
        for name, content in (("plain", plain[0]), ("gzip", gzip.compress(plain[0])), ("zlib", zlib.compress(plain[0])),
                              ("members", b"".join(gzip.compress(plain[0][i:i + 5000]) for i in range(0, len(plain[0]), 5000)))):
            theirs.mkdir(exist_ok=True)
            (theirs / "a.tfrecord").write_bytes(content)
            corpus = self.records("describe", "theirs", "--scan", "--checksum", "--save", f"{name}.manifest")[0]
            self.assertEqual(corpus["codec"], "jpeg")
            self.assertEqual(corpus.get("stored_forms", {}).get("samples"), None if name == "plain" else corpus["samples"])
            found = ManifestFile(self.dir / f"{name}.manifest")
            checksums[name] = [crc for _, _, _, crc in found.samples], found.lengths, corpus["bytes"]
            self.run_cli("verify", "theirs", "--manifest", f"{name}.manifest")
            read = self.records("read", "theirs", "--manifest", f"{name}.manifest", "--verify", "--decode", "full", "--order", "shuffled",
                                "--threads", 2, "--repeat", 1, "--min-time", "0s", "--no-ceiling", "--no-baseline")[0]
            self.assertEqual(read["verdict"], "ok")
            trained = self.records("train", "alexnet", "--data", "theirs", "--manifest", f"{name}.manifest", "--batch", 2, "--steps", 3)[0]
            self.assertEqual(trained["verdict"], "ok")
        for name in ("gzip", "zlib", "members"):
            self.assertEqual(checksums[name], checksums["plain"], name)

    def test_a_plan_is_the_most_that_it_takes(self):
        words = ("generate", "cifar10", *self.WORDS, "--samples", 200, "--seed", 3, "--out", "arrays")
        plan = self.records(*words, "--dry-run")[0]
        self.assertIs(plan["bytes_at_most"], True)
        self.assertIn(message("size-at-most-about"), self.run_cli(*words, "--dry-run").stdout)
        self.run_cli(*words)
        made = sum(path.stat().st_size for path in (self.dir / "arrays").glob("*.gz"))
        self.assertLessEqual(made, plan["bytes"])


if __name__ == "__main__":
    penstock_cli.main()
