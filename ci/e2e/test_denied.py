"""Without root, and where io_uring and cachestat are forbidden: the program and the back ends' own tests do without.

All of ctest can be run so by hand: ci/testbed/denied ctest --test-dir BUILD, where the user nobody may write.
"""

import json
import os
import pathlib
import subprocess
import unittest

from messages import message
import penstock_cli

DENIED = penstock_cli.SOURCE / "ci" / "testbed" / "denied"
QUICK = ("--min-time", "30ms", "--repeat", "2", "--progress", "never", "--no-ceiling")


class Denied(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.dir.chmod(0o777)
        tried = subprocess.run([DENIED, penstock_cli.PENSTOCK, "--version"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(tried.stderr.strip())

    def start(self, *args, **kwargs):
        kwargs.setdefault("cwd", self.dir)
        return subprocess.Popen([DENIED, penstock_cli.PENSTOCK, *map(str, args)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **kwargs)

    def backends(self):
        rows = [json.loads(line) for line in self.run_cli("--version", "--json").stdout.splitlines()]
        return {row["name"] for row in rows if row.get("kind") == "backend" and row["present"]}

    def corpus(self):
        self.run_cli("generate", "cosmoflow", "--out", "corpus", "--samples", "24", "--format", "files", "--set", "mean=20kB")
        return self.dir / "corpus"

    def test_threads_keep_reads_in_flight_and_the_record_says_so(self):
        if "uring" not in self.backends():
            self.skipTest("this build has no back end uring")
        self.corpus()
        record, = self.records("read", "uring:corpus", "--threads", "2", "--depth", "8", *QUICK)
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertTrue(any(message("io-uring-unavailable") in remark for remark in record["tiers"]["data"]["remarks"]), record)

    def test_every_back_end_reads_what_was_made(self):
        corpus = self.corpus()
        for backend in sorted(self.backends() & {"posix", "mmap", "mpiio", "uring", "libaio"}):
            for depth in ("1", "8"):
                record, = self.records("read", f"{backend}:{corpus}", "--threads", "1", "--depth", depth, "--verify", *QUICK)
                self.assertEqual(record["verdict"], "ok", record["reason"])
                self.assertEqual(record["metrics"]["errors"]["value"], 0)

    def test_what_is_in_the_cache_is_measured_by_other_means_or_not_claimed(self):
        corpus = self.corpus()
        record, = self.records("read", corpus, "--threads", "1", "--cache", "warm", *QUICK)
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertIn(record["cache"]["client_data"], ("warm", "memory", "unverified"))

    @unittest.skipIf(penstock_cli.SANITIZED, "they run under the sanitizers anyway, and what is denied is the same without")
    def test_the_back_ends_own_tests_pass_or_skip(self):
        folder = penstock_cli.BUILD / "io_backends"
        contract, table = folder / "backend_contract_test", folder / "io_backends_test"
        if not os.access(table, os.X_OK) or not os.access(contract, os.X_OK):
            self.skipTest("the tests are not built")
        rows = [[contract, name, "--gtest_filter=*/plain"] for name in sorted(self.backends())]
        rows.append([table, "--gtest_filter=FileFaults.*:AsyncFiles*:Mmap.*"])
        for command in rows:
            done = subprocess.run([DENIED, *command], capture_output=True, text=True, cwd=self.dir, check=False,
                                  timeout=penstock_cli.PATIENCE_S)
            self.assertIn(done.returncode, (0, 77), f"{pathlib.Path(command[0]).name} {command[1]}\n{done.stdout[-4000:]}")
            self.assertNotIn("[  FAILED  ]", done.stdout)


if __name__ == "__main__":
    penstock_cli.main()
