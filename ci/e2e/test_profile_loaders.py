#!/usr/bin/env python3
"""Input pipelines of other projects under the profiler: PyTorch's DataLoader, its workers joined and killed, and TensorFlow's
tf.data on TFRecord and on pictures. Files by their bytes against strace and against their sizes; what tf-Darshan found of
TensorFlow; and the scaling chart of an unmodified reader, drawn from its sessions alone.

PENSTOCK_LOADERS_PYTHON names an interpreter that has one of the two; else those of this machine and of ci/interop are asked."""

import json
import os
import re
import subprocess
import textwrap
import unittest

from penstock_cli import PENSTOCK, has_library, main
from profile_case import QUIET, ProgramsTest, has, python_with


class LoaderTest(ProgramsTest):
    MODULE = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = python_with(cls.MODULE)
        if cls.python is None:
            raise unittest.SkipTest(f"no Python with {cls.MODULE} here (ci/interop brings one)")

    def generate(self, name, *words):
        folder = self.folder / name
        subprocess.run([PENSTOCK, "generate", *map(str, words), "--out", folder, "--progress", "never"], check=True, capture_output=True)
        return folder

    def is_data(self, path):
        return super().is_data(path) and path != str(self.folder / "program.py")  # which Python reads through a stream

    def script(self, text, *words):
        path = self.folder / "program.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return [self.python, path, *words]

    def watched(self, text, *words, session="session"):
        """The session's row, those of the test's own files, and what the program said, as JSON."""
        row, files, out = self.profiled(self.script(text, *words), session=session, env=os.environ | QUIET)
        self.assertEqual(row["dropped"], 0)
        return row, {path: file for path, file in files.items() if self.is_data(path)}, json.loads(out.splitlines()[-1])


# Files by a map-style data set of four workers. "joined": the loader is used up, the workers end by themselves; "killed": they are in
# the midst of it when they get SIGTERM, which Python's multiprocessing sends and whose default is death without a word.
DATA_LOADER = """
    import glob, json, os, sys, time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Files(Dataset):
        def __init__(self, folder, log):
            self.paths, self.log = sorted(glob.glob(os.path.join(folder, "**", "*.JPEG"), recursive=True)), log
        def __len__(self):
            return len(self.paths)
        def __getitem__(self, i):
            with open(self.paths[i], "rb") as file:
                size = len(file.read())
            with open(f"{self.log}.{os.getpid()}", "a") as log:  # what was read, by who read it
                log.write(self.paths[i] + "\\n")
            return size

    if __name__ == "__main__":
        folder, log, way = sys.argv[1:]
        files = Files(folder, log)
        loader = DataLoader(files, batch_size=4, num_workers=4)
        batches = iter(loader)
        if way == "joined":
            total = sum(int(batch.sum()) for batch in batches)
        else:
            total = int(next(batches).sum())
            time.sleep(0.5)
            for worker in batches._workers:
                worker.terminate()
            for worker in batches._workers:
                worker.join()
        print(json.dumps({"bytes": total, "files": len(files)}))
        sys.stdout.flush()
        if way != "joined":
            os._exit(0)
"""


class DataLoader(LoaderTest):
    MODULE = "torch.utils.data"

    def setUp(self):
        super().setUp()
        self.pictures = self.generate("pictures", "imagenet", "--samples", 64)

    def check(self, way):
        session, files, output = self.watched(DATA_LOADER, self.pictures, self.folder / "log", way)
        read = [line for log in self.folder.glob("log.*") for line in log.read_text().splitlines()]
        self.assertTrue(read)
        self.assertEqual(len(read), len(set(read)))
        seen = {path: row for path, row in files.items() if path.endswith(".JPEG") and row["opens"]}
        self.assertLessEqual(set(read), set(seen))
        for path in read:
            self.assertEqual(seen[path]["bytes_read"], os.path.getsize(path), path)
        return session, read, seen, output

    def test_workers_that_end(self):
        session, read, seen, output = self.check("joined")
        self.assertEqual(len(read), output["files"])
        self.assertEqual(set(seen), set(read))
        self.assertEqual(sum(row["bytes_read"] for row in seen.values()), output["bytes"])
        self.assertGreaterEqual(session["processes"], 5)

    def test_workers_that_are_killed(self):
        session, read, seen, _ = self.check("killed")
        self.assertLessEqual(len(set(seen) - set(read)), 4)  # each worker was at one file at most
        self.assertGreaterEqual(session["processes"], 5)


RECORDS = """
    import glob, json, os, sys
    import tensorflow as tf
    files = sorted(glob.glob(os.path.join(sys.argv[1], "**", "*.tfrecord"), recursive=True))
    records = tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4)
    print(json.dumps({"files": files, "records": sum(1 for _ in records)}))
"""

PICTURES = """
    import glob, json, os, sys
    import tensorflow as tf
    suffix, threads, decodes = sys.argv[2], int(sys.argv[3]), sys.argv[4] == "decode"
    files = sorted(glob.glob(os.path.join(sys.argv[1], "**", "*" + suffix), recursive=True))
    def load(path):
        data = tf.io.read_file(path)
        return tf.shape(tf.io.decode_jpeg(data, channels=3))[0] if decodes else tf.strings.length(data)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    pictures = tf.data.Dataset.from_tensor_slices(files).map(load, num_parallel_calls=threads).batch(8).with_options(options)
    print(json.dumps({"files": files, "sum": int(sum(int(tf.reduce_sum(batch)) for batch in pictures))}))
"""


class TensorFlow(LoaderTest):
    MODULE = "tensorflow"

    def as_they_are(self, files, output):
        """All that the program opened was read whole, once."""
        for path in output["files"]:
            self.assertEqual(files[path]["bytes_read"], os.path.getsize(path), path)
            self.assertEqual(files[path]["opens"], 1, path)

    def test_records(self):
        shards = self.generate("shards", "imagenet", "--samples", 48, "--format", "tfrecord")
        session, files, output = self.watched(RECORDS, shards)
        self.assertEqual(output["records"], 48)
        self.as_they_are(files, output)
        self.assertGreater(session["coverage"]["rchar"]["fraction"], 0.99)

    def test_records_against_strace(self):
        if not has("strace"):
            self.skipTest("no strace here")
        shards = self.generate("shards", "imagenet", "--samples", 48, "--format", "tfrecord")
        # strace's log of a program of TensorFlow's size takes minutes unless it looks at little else.
        self.same_as_strace(self.script(RECORDS, shards), env=os.environ | QUIET)

    def test_pictures(self):
        pictures = self.generate("pictures", "imagenet", "--samples", 96)
        _, files, output = self.watched(PICTURES, pictures, ".JPEG", "4", "decode")
        self.as_they_are(files, output)
        self.finding("imagenet", [files[path] for path in output["files"]])

    def test_malware(self):
        folder = self.generate("malware", "malware", "--samples", 24)
        suffix = next(path.suffix for path in sorted(folder.rglob("*")) if path.is_file() and ".penstock" not in path.parts)
        _, files, output = self.watched(PICTURES, folder, suffix, "1", "as it is")
        self.as_they_are(files, output)
        self.assertEqual(output["sum"], sum(os.path.getsize(path) for path in output["files"]))
        self.finding("malware", [files[path] for path in output["files"]])

    def finding(self, name, rows):
        """tf-Darshan, of TensorFlow 2.2: read_file() reads until a read gives nothing, so that of a picture that one read brings half of
        the reads are empty, in the bucket of the least, and the other half begin at byte 0, which is neither sequential nor
        consecutive. What today's does is said."""
        reads = sum(row["reads"] for row in rows)
        sequential = sum(row["sequential_reads"] for row in rows)
        least = sum(row["read_sizes"]["0_100"] for row in rows)
        self.assertGreaterEqual(reads, len(rows))
        first = reads - sequential
        self.assertEqual(first, len(rows))  # the one of each file that begins at byte 0
        print(f"{name}: {len(rows)} files, {reads / len(rows):.2f} reads each, {least / reads:.1%} of them of at most 100 bytes, "
              f"{first / reads:.1%} neither sequential nor consecutive")

    @unittest.skipUnless(has_library("uplot"), "this build has no uplot (ci/fetch_chart_library brings it)")
    def test_scaling_is_drawn_from_sessions_alone(self):
        pictures = self.generate("pictures", "imagenet", "--samples", 96)
        sessions = []
        for threads in (1, 2, 4):
            session = f"session-{threads}"
            self.watched(PICTURES, pictures, ".JPEG", str(threads), "decode", session=session)
            sessions.append(self.folder / session)
        results = self.folder / "scaling"
        subprocess.run([PENSTOCK, "profile", "export", "--to", "records", *sessions, "-o", results], check=True, capture_output=True)
        records = [json.loads(line) for file in results.rglob("*.jsonl") for line in file.read_text().splitlines()]
        threads = sorted(record["parameters"]["threads"] for record in records)
        self.assertEqual(len(threads), 3)
        self.assertEqual(threads[0], 1)
        self.assertLessEqual(threads[-1], 4)
        page = self.folder / "report.html"
        subprocess.run([PENSTOCK, "report", results, "-o", page, "--progress", "never"], check=True, capture_output=True)
        charts = json.loads(re.search(r'<script type="application/json" id="charts">(.*?)</script>', page.read_text(), re.DOTALL)[1])
        chart = next(chart for chart in charts if chart["title"].startswith("Bandwidth against threads"))
        self.assertEqual(chart["x"], sorted(set(threads)))
        [series] = chart["series"]
        rates = {record["parameters"]["threads"]: record["metrics"]["payload_bytes_per_s"]["value"] / (1 << 20) for record in records}
        if len(rates) == 3:  # sessions with the same number of threads share a point
            self.assertEqual([round(y, 6) for y in series["y"]], [round(rates[x], 6) for x in chart["x"]])


main()
