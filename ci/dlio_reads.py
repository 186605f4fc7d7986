#!/usr/bin/env python3
"""Runs DLIO and writes what its readers have read. ci/interop lets it read data sets of penstock.

    dlio_reads.py OUTPUT DLIO'S_OWN_WORDS...

Runs in a virtual environment that has DLIO. OUTPUT gets a line of JSON for each sample that a reader has read: the number of bytes,
their CRC-32, the number of dimensions of its array, and the number `size` of a TFRecord."""

import json
import sys
import zlib

OUTPUT = open(sys.argv.pop(1), "a", buffering=1, encoding="utf-8")


def say(data, **more):
    OUTPUT.write(json.dumps({"bytes": len(data), "crc32": zlib.crc32(data), **more}) + "\n")


def watch_archives():
    from dlio_benchmark.reader.npz_reader import NPZReader

    get_sample = NPZReader.get_sample

    def watched(self, filename, sample_index):
        get_sample(self, filename, sample_index)
        array = self.open_file_map[filename]
        say(array[..., sample_index].tobytes(), sides=array.ndim)

    NPZReader.get_sample = watched


def watch_pictures():
    from dlio_benchmark.reader.image_reader import ImageReader

    get_sample = ImageReader.get_sample

    def watched(self, filename, sample_index):
        get_sample(self, filename, sample_index)
        with open(filename, "rb") as file:
            say(file.read(), sides=self.open_file_map[filename].ndim)

    ImageReader.get_sample = watched


def watch_records():
    import tensorflow as tf

    parse_example = tf.io.parse_example

    def watched_parse(*words, **more):
        parsed = parse_example(*words, **more)
        for image, size in zip(parsed["image"].numpy(), parsed["size"].numpy(), strict=True):
            say(image, size=int(size))
        return parsed

    tf.io.parse_example = watched_parse


watch_archives()
watch_pictures()
watch_records()

from dlio_benchmark.main import main

main()
