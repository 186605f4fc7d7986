"""benchmarks/self/rates: the commands that measure how fast data sets are made run, compare like with like, and clean up. How
fast anything was decides nothing here."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import unittest

import penstock_cli

RATES = penstock_cli.SOURCE / "benchmarks" / "self" / "rates"
sys.path.insert(0, str(RATES.parent))
WRITE_CONSTANT = pathlib.Path(penstock_cli.BUILD, "benchmarks", "self", "rates", "penstock_write_constant")


def call(*words, text=None):
    environment = {**os.environ, "PENSTOCK_BUILD": str(penstock_cli.BUILD)}
    return subprocess.run([str(word) for word in words], input=text, env=environment, capture_output=True, text=True, timeout=300,
                          check=False)


@unittest.skipUnless(WRITE_CONSTANT.exists(), "this build has no benchmarks (PENSTOCK_BENCHMARKS)")
class Rates(penstock_cli.CliTest):
    def test_constant_files_have_the_wanted_sizes(self):
        done = call(WRITE_CONSTANT, self.dir, "--threads", 3, text="10 a/b/c\n2097153 a/d\n0 e f\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(int(done.stdout.split()[1]), 2097163)
        sizes = {str(path.relative_to(self.dir)): path.stat().st_size for path in self.dir.rglob("*") if path.is_file()}
        self.assertEqual(sizes, {"a/b/c": 10, "a/d": 2097153, "e f": 0})

    def test_constant_files_from_a_stock_are_the_same(self):
        names = {"a": 3000001, "b": 10, "c": 1048577}
        done = call(WRITE_CONSTANT, self.dir, "--threads", 2, "--stock", 5000000,
                    text="".join(f"{size} {name}\n" for name, size in names.items()))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({path.name: path.read_bytes() for path in self.dir.iterdir()},
                         {name: b"Z" * size for name, size in names.items()})
        self.assertEqual(call(WRITE_CONSTANT, self.dir, "--stock", 1000, text="").returncode, 2, "less than a write")

    def test_constant_files_replace_nothing(self):
        (self.dir / "there").write_text("mine", encoding="utf-8")
        done = call(WRITE_CONSTANT, self.dir, text="10 there\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("'there'", done.stderr)
        self.assertEqual((self.dir / "there").read_text(encoding="utf-8"), "mine")
        self.assertEqual(call(WRITE_CONSTANT, self.dir, text="ten there\n").returncode, 2)

    def test_ratios_are_those_of_compare(self):
        os.environ["PENSTOCK_BUILD"] = str(penstock_cli.BUILD)
        from side_by_side import added_by, all_of, is_within, ratio_of, status_of, surely_above, surely_below
        plain = [100 + turn for turn in range(8)]
        figures = ratio_of([1.1 * one for one in plain], plain)
        self.assertEqual((figures["pairs"], figures["confidence"]), (8, 0.95))
        self.assertAlmostEqual(figures["theirs"], 103.5)
        for name in ("ratio", "low", "high"):
            self.assertAlmostEqual(figures[name], 1.1)
        self.assertTrue(surely_above(figures, 1.09) and surely_below(figures, 1.11))
        self.assertFalse(surely_above(figures, 1.11) or surely_below(figures, 1.09))
        self.assertAlmostEqual(added_by([one + 10 for one in plain], plain)["added"], 10, delta=0.2)
        few = ratio_of([2, 3], [1, 1])
        self.assertFalse(surely_above(few, 0) or surely_below(few, 9), "two pairs give no interval")
        self.assertIsNone(is_within(few, surely_above(few, 0)))
        self.assertEqual((is_within(figures, surely_above(figures, 1.09)), is_within(figures, surely_above(figures, 1.11))), (False, True))
        self.assertEqual([status_of(all_of(each)) for each in ((True, True), (True, None), (None, False), (True, False))], [0, 3, 1, 1])

    def test_generate_against_constant_bytes(self):
        out = self.dir / "out"
        done = call(RATES / "generate", "--out", out, "imagenet:files", "unet3d:npz:mean=1MB", "--pairs", 2, "--min-seconds", 0,
                    "--most-bytes", "2MiB", "--threads", 2, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["workload"]: row for row in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(set(rows), {"imagenet:files", "unet3d:npz:mean=1MB"})
        for row in rows.values():
            self.assertEqual((row["pairs"], row["files"]), (2, row["samples"]))
            self.assertGreater(row["bytes"], 1 << 20)
            ratios = [b / a for a, b in zip(row["generate_s"], row["yardstick_s"])]
            self.assertAlmostEqual(row["ratio"]["ratio"], statistics.geometric_mean(ratios))  # the estimate of two pairs
            self.assertIsNone(row["ratio"]["low"], "two pairs give no interval")
        self.assertFalse(out.exists(), "it leaves nothing behind")

    def test_generate_against_bytes_in_no_cache(self):
        done = call(RATES / "generate", "--out", self.dir / "out", "imagenet:tfrecord", "--against", "memory", "--pairs", 1,
                    "--min-seconds", 0, "--most-bytes", "2MiB", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual((row["against"], row["workload"]), ("memory", "imagenet:tfrecord"))

    def test_prefetching_against_its_parts(self):
        out = self.dir / "out"
        done = call(RATES / "prefetch", "--dir", out, "--samples", 32, "--batch", 4, "--steps", 4, "--runs", 2, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["row"]: row for row in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(set(rows), {"fast", "slow", "none", "awake"})
        for row in rows.values():
            self.assertEqual((row["pairs"], row["steps"]), (2, 4))
            self.assertGreater(row["ratio"], 0)
        for row in ("none", "awake"):
            self.assertGreater(rows[row]["ours"], 4 * rows[row]["step_s"], "without prefetching nothing hides a step")
        self.assertFalse(out.exists(), "it leaves nothing behind")

    def test_a_recipe_that_is_not_there(self):
        done = call(RATES / "generate", "--out", self.dir, "imagnet:files")
        self.assertEqual(done.returncode, 1)
        self.assertIn("imagenet", done.stderr)
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_dlio_is_skipped_where_it_cannot_be_had(self):
        venv = self.dir / "venv"
        (venv / "bin").mkdir(parents=True)
        pip = venv / "bin" / "pip"
        pip.write_text("#!/bin/sh\necho no network >&2\nexit 1\n", encoding="utf-8")
        pip.chmod(0o755)
        done = call(RATES / "dlio", "--out", self.dir / "out", "--venv", venv)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("numpy cannot be had from PyPI: no network", done.stderr)
        self.assertFalse((self.dir / "out").exists())


if __name__ == "__main__":
    penstock_cli.main()
