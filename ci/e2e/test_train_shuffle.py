#!/usr/bin/env python3
"""`penstock train --shuffle buffer:N`: the samples that come out of a bounded buffer, over processes and ranks."""

import unittest

from messages import message
from penstock_cli import PENSTOCK, main
from test_ranks import RanksTest, open_mpi
from test_train import SAMPLES, TrainTest

PLACES = 6


class ShuffleBuffer(TrainTest):
    def order(self, shuffle, *args, **kwargs):
        """The indices of each of two epochs."""
        lines = self.log("--batch", "8", "--epochs", "2", "--shuffle", shuffle, *args, **kwargs)
        return [[index for of, _, _, index in lines if of == epoch] for epoch in (0, 1)]

    def test_samples_wait_in_the_buffer_and_nowhere_else(self):
        epochs = self.order(f"buffer:{PLACES}")
        for order in epochs:
            self.assertEqual(sorted(order), list(range(SAMPLES)))
            self.assertNotEqual(order, list(range(SAMPLES)))
            for position, index in enumerate(order):
                self.assertLess(index, position + PLACES, "it was not in the buffer yet")
        self.assertNotEqual(epochs[0], epochs[1])

    def test_the_order_depends_on_the_seed_and_on_nothing_else(self):
        first = self.order("buffer:1k", "--threads", "1", "--prefetch", "0")
        self.assertEqual(self.order("buffer:1000", "--threads", "4", "--prefetch", "5"), first)
        self.assertNotEqual(self.order("buffer:1000", seed="4"), first)
        self.assertEqual(self.order("buffer:1"), self.order("none"))

    def test_a_bad_sample_changes_nothing_that_depends_on_timing(self):
        folder, pictures = self.corpus()
        pictures[11].unlink()
        words = ("--on-error", "skip", "--prefetch", "2")
        first = self.order("buffer:5", *words, "--threads", "1", data=folder)
        self.assertEqual(len(set(first[0])), SAMPLES - 8)
        for threads in ("2", "4"):
            self.assertEqual(self.order("buffer:5", *words, "--threads", threads, data=folder), first)

    def test_the_record_names_it(self):
        [record] = self.train("--batch", "8", "--shuffle", "buffer:2k")
        self.assertEqual(record["parameters"]["shuffle"], "buffer:2000")

    def test_wrong_arguments(self):
        for word, hint in (("buffer", "buffer:1000"), ("buffer:0", "buffer:1000"), ("buffer:many", "whole number"), ("buffre:3", "buffer:N")):
            with self.subTest(word=word):
                done = self.run_cli("train", "alexnet", "--data", self.made / "corpus", "--shuffle", word, expect=2)
                self.assertIn(hint, done.stderr)
                self.assertEqual(done.stdout, "")


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class ShuffleBufferOfRanks(RanksTest):
    def command(self, shuffle):
        return ("train", "stream", "--data", self.dir / "corpus", "--manifest", self.dir / "manifest", "--seed", 3, "--batch", 4, "--threads", 2,
                "--epochs", 2, "--shuffle", shuffle, "--sample-log", "log")

    def test_each_rank_has_a_buffer_in_front_of_its_part(self):
        self.corpus(files=50)
        self.over(3, *self.command(f"buffer:{PLACES}"))
        for rank in range(3):
            lines = [tuple(map(int, line.split())) for line in (self.dir / f"log.{rank}").read_text().splitlines()]
            for epoch in range(2):
                order = [index for of, _, _, index in lines if of == epoch]
                self.assertEqual(len(order), 50 // 3 // 4 * 4)
                self.assertEqual(len(set(order)), len(order))
                self.assertEqual({index % 3 for index in order}, {rank}, "every third sample")
                for position, index in enumerate(order):
                    self.assertLess(index // 3, position + PLACES, "it was not in the buffer yet")

    def test_ranks_with_buffers_of_other_sizes_are_refused(self):
        self.corpus(files=50)
        done = self.over(1, *self.command("buffer:5"), ":", "-np", 1, PENSTOCK, *self.command("buffer:6"), expect=2)
        self.assertIn(message("ranks-different-flags"), done.stderr)


if __name__ == "__main__":
    main()
