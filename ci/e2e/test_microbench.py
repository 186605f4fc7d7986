"""benchmarks/self/micro: what is next to a plain loop says so in a counter. How fast anything was decides nothing here."""

import json
import pathlib
import subprocess
import unittest

import penstock_cli

MICROBENCH = pathlib.Path(penstock_cli.BUILD, "benchmarks", "self", "micro", "penstock_microbench")


def lacking():
    return None if MICROBENCH.exists() else "this build has no micro-benchmarks (PENSTOCK_BENCHMARKS, Google Benchmark)"


class Counters(penstock_cli.CliTest):
    def rows(self, *names):
        done = subprocess.run([str(MICROBENCH.resolve()), "--smoke", *names, "--benchmark_format=json"], cwd=self.dir, capture_output=True,
                              text=True, timeout=penstock_cli.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["benchmarks"]

    def test_each_has_a_rate_and_what_it_is_of_the_plain_loop(self):
        for name, rate in (("read_at", "bytes_per_second"), ("open_close", "items_per_second"), ("crc32c", "_per_second"),
                           ("queue_hand_over", "items_per_second"), ("manifest_lookup", "items_per_second"),
                           ("histogram_add", "items_per_second")):
            rows = self.rows(name)
            self.assertGreater(len(rows), 0)
            for row in rows:
                with self.subTest(row["name"]):
                    self.assertTrue(any(key.endswith(rate) and row[key] > 0 for key in row), row)
                    if row["name"].startswith("open_close/mem/"):
                        continue  # no file that a plain loop could open
                    self.assertGreater(row["of_baseline"], 0)

    def test_decoding_has_bytes_a_second(self):
        row, = self.rows("jpeg_decode")
        self.assertGreater(row["bytes_per_s"], 0)


if __name__ == "__main__":
    penstock_cli.main(lacking)
