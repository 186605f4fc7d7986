"""Penstock over the ranks of a real mpirun: one job, one measurement, one record."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from messages import message
import penstock_cli

ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
QUICK = ("--min-time", "100ms", "--repeat", 2, "--seed", 7, "--no-ceiling", "--threads", 2)
MODULE = pathlib.Path(penstock_cli.PENSTOCK).resolve().parent / "libpenstock_mpi.so"


def open_mpi():
    if penstock_cli.SANITIZED or not MODULE.exists() or shutil.which("mpirun") is None:
        return False
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=60, check=False)
    return message("mpirun-is-open-mpi") in done.stdout


def romio():
    """What this Open MPI calls its other implementation of MPI-IO, or None."""
    if not open_mpi() or shutil.which("ompi_info") is None:
        return None
    done = subprocess.run(["ompi_info", "--parsable", "--param", "io", "all"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"romio\d+", done.stdout)
    return found and found[0]


ROMIO = romio()


class RanksTest(penstock_cli.CliTest):
    def implementations(self):
        """Open MPI's implementations of MPI-IO; the one that is not there is told as skipped."""
        yield "ompio"
        if ROMIO:
            yield ROMIO
            return
        with self.subTest(implementation="romio"):
            self.skipTest("this Open MPI has no ROMIO")

    def corpus(self, files=100, bytes_each=3000):
        folder = self.dir / "corpus"
        numbers = random.Random(1)
        for i in range(files):
            file = folder / f"class{i % 3}" / f"{i:04d}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(numbers.randbytes(bytes_each + i))
        self.run_cli("describe", folder, "--scan", "--checksum", "--save", self.dir / "manifest")
        return folder

    def over(self, ranks, *args, expect=0, program=penstock_cli.PENSTOCK, environment=None):
        """mpirun of `penstock ARGS`; what the launcher itself says of a failed job stays in stderr."""
        done = subprocess.run(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", str(ranks), str(program),
                               *map(str, args)], capture_output=True, text=True, cwd=self.dir, env={**ENVIRONMENT, **(environment or {})},
                              stdin=subprocess.DEVNULL, timeout=penstock_cli.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def read(self, ranks, *args, quick=QUICK, **kwargs):
        done = self.over(ranks, "read", self.dir / "corpus", "--manifest", self.dir / "manifest", *args, *quick, "--json",
                         **kwargs)
        return [json.loads(line) for line in done.stdout.splitlines()]


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class Reading(RanksTest):
    def assert_one_job(self, record, ranks):
        self.assertEqual(record["parameters"]["ranks"], ranks)
        self.assertEqual(record["parameters"]["rank_scaling"], "strong")
        metrics = {name: metric["samples"] for name, metric in record["metrics"].items()}
        for i, payload in enumerate(metrics["payload_bytes"]):
            self.assertEqual(payload % record["corpus"]["bytes"], 0, "whole passes, each sample read by one rank")
            rate = payload / metrics["wall_s"][i]
            self.assertAlmostEqual(metrics["payload_bytes_per_s"][i], rate, delta=rate * 1e-6)
            least, middle, most = (metrics[f"rank_{which}_bytes_per_s"][i] for which in ("min", "median", "max"))
            self.assertTrue(0 < least <= middle <= most)
            # The slowest rank's wall, whose share is that of the others but for a few per cent; several passes make it longer.
            slowest = payload / ranks / least
            self.assertGreaterEqual(metrics["wall_s"][i], slowest * 0.95)
            if payload == record["corpus"]["bytes"]:
                self.assertLessEqual(metrics["wall_s"][i], slowest * 1.05)

    def test_one_record_of_all_ranks(self):
        self.corpus()
        for ranks in (2, 4):
            record, = self.read(ranks, "--verify")
            self.assertEqual(record["verdict"], "ok", record["reason"])
            self.assert_one_job(record, ranks)
            self.assertGreaterEqual(min(record["metrics"]["wall_s"]["samples"]), 0.1)
            self.assertEqual(record["metrics"]["errors"]["value"], 0)
            self.assertEqual(len(record["metrics"]["baseline_samples_per_s"]["samples"]), 2)
        files = sorted((self.dir / "penstock-results").glob("*-read-*.jsonl"))
        self.assertEqual([len(file.read_text().splitlines()) for file in files], [1, 1])

    def test_one_pass_lasts_as_long_as_its_slowest_rank(self):
        self.corpus()
        record, = self.read(4, quick=("--min-time", "1us", "--repeat", 3, "--threads", 1, "--no-ceiling", "--no-baseline"))
        self.assertEqual(set(record["metrics"]["payload_bytes"]["samples"]), {record["corpus"]["bytes"]})
        self.assert_one_job(record, 4)

    def test_clocks_are_compared_at_the_start_and_at_the_end(self):
        self.corpus()
        record, = self.read(4, "--no-baseline")
        ranks = record["environment"]["ranks"]
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1, 2, 3])
        for rank in ranks:
            self.assertEqual(len(rank["clock"]), 2)
            for clock in rank["clock"]:
                # One machine has one clock: the error that is given must cover all that they seem to differ.
                self.assertLessEqual(abs(clock["offset_ns"]), clock["error_ns"])

    def test_durations_depths_orders_and_shifts(self):
        self.corpus()
        for flags in (("--duration", "200ms"), ("--depth", 4), ("--order", "sequential"), ("--order", "physical"), ("--cache", "asis")):
            record, = self.read(2, *flags)
            self.assertEqual(record["verdict"], "ok", record["reason"])
            self.assertGreater(record["metrics"]["rank_min_bytes_per_s"]["value"], 0)
        record, = self.read(2, "--rank-shift", 1, "--verify")
        self.assert_one_job(record, 2)
        self.assertNotIn("baseline_samples_per_s", record["metrics"])

    def test_the_table_is_printed_once_and_says_so(self):
        self.corpus()
        done = self.over(2, "read", "corpus", "--manifest", "manifest", *QUICK)
        self.assertEqual(done.stdout.count(message("strong-scaling-ranks", n=2)), 1)
        self.assertEqual(done.stderr.count("record: "), 1, done.stderr)

    def test_one_rank_is_a_plain_process(self):
        self.corpus()
        record, = self.read(1)
        self.assertEqual(record["parameters"]["ranks"], 1)
        self.assertNotIn("ranks", record["environment"])

    def test_a_fault_of_a_share_is_the_fault_of_the_job(self):
        folder = self.corpus()
        victim = folder / "class2" / "0098.jpg"  # one of the last rank's
        victim.write_bytes(bytes(victim.stat().st_size))
        record, = self.read(4, expect=1)
        self.assertEqual(record["verdict"], "wrong_bytes")
        self.assertIn("0098.jpg", record["reason"])
        victim.unlink()
        record, = self.read(4, "--on-error", "skip")
        self.assertEqual(record["verdict"], "degraded")
        per_pass = record["corpus"]["bytes"] - 3098
        for payload in record["metrics"]["payload_bytes"]["samples"]:
            self.assertEqual(payload % per_pass, 0)

    def test_what_cannot_be_shared_is_refused_once(self):
        self.corpus(files=3)
        done = self.over(4, "read", "corpus", "--manifest", "manifest", *QUICK, expect=2)
        self.assertEqual(done.stderr.count(message("too-few-samples-for-ranks", n=4, n2=3)), 1, done.stderr)
        done = self.over(2, "read", "nowhere", expect=2)
        self.assertEqual(done.stderr.count("penstock read:"), 1, done.stderr)
        done = self.over(2, "describe", "corpus", expect=2)
        self.assertEqual(done.stderr.count(message("launched-as-ranks", n=2)), 1, done.stderr)

    def test_a_signal_to_one_rank_stops_all_in_the_middle_of_a_repeat(self):
        self.corpus()
        job = subprocess.Popen(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", "3", penstock_cli.PENSTOCK, "read", "corpus",
                                "--manifest", "manifest", "--duration", "1h", "--threads", "1", "--no-ceiling", "--no-baseline"], cwd=self.dir,
                               env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(job.kill)
        ranks = []
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while len(ranks) < 2 or min(seconds for seconds, _ in ranks) < 1:  # of a processor: nothing before the repeat takes that
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
            listed = subprocess.run(["ps", "-o", "cputimes=,pid=", "--ppid", str(job.pid)], capture_output=True, text=True, timeout=60, check=False)
            ranks = sorted([tuple(map(int, line.split())) for line in listed.stdout.splitlines()], key=lambda rank: rank[1])
        os.kill(ranks[-1][1], signal.SIGTERM)
        output, _ = job.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(job.returncode, 143, output)
        record = json.loads(next((self.dir / "penstock-results").glob("*-read-*.jsonl")).read_text())
        self.assertEqual((record["verdict"], record["parameters"]["ranks"]), ("interrupted", 3))

    def test_a_stonewall_is_worn_out(self):
        self.corpus()
        record, = self.read(2, "--stonewall", "200ms", "--order", "sequential", quick=("--repeat", 2, "--no-ceiling", "--threads", 2))
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertEqual(record["parameters"]["stonewall_s"], 0.2)
        metrics = {name: metric["samples"] for name, metric in record["metrics"].items()}
        self.assertEqual(len(metrics["stonewall_bytes_per_s"]), 2)
        for i, payload in enumerate(metrics["payload_bytes"]):
            self.assertEqual(round(metrics["samples_per_s"][i] * metrics["wall_s"][i]) % 2, 0, "equally many samples each")
            self.assertGreater(metrics["rank_min_bytes_per_s"][i], 0)
            self.assertGreaterEqual(metrics["wall_s"][i], 0.19)
            self.assertLessEqual(metrics["stonewall_bytes_per_s"][i] * 0.19, payload)
        done = self.over(2, "read", "corpus", "--manifest", "manifest", "--stonewall", "1s", "--duration", "1s", expect=2)
        self.assertEqual(done.stderr.count(message("options-exclude-each-other")), 1, done.stderr)


SMALL = ("--samples", 60, "--seed", 7, "--set", "median=12KB", "--set", "classes=20")
SLOW = ("--samples", 400, "--seed", 7, "--set", "median=40KB", "--set", "classes=20", "--set", "encode=full", "--threads", 1)


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class Generating(RanksTest):
    def generate(self, ranks, out, *args, recipe="imagenet", words=SMALL, **kwargs):
        done = self.over(ranks, "generate", recipe, "--out", out, *words, *args, "--json", **kwargs)
        return [json.loads(line) for line in done.stdout.splitlines()], done

    def assert_same_tree(self, one, other):
        self.assertEqual(penstock_cli.tree(self.dir / one), penstock_cli.tree(self.dir / other))

    def test_the_number_of_ranks_does_not_matter(self):
        for name, words in (("files", SMALL), ("shards", (*SMALL, "--format", "tfrecord", "--set", "shards=7")),
                            ("hdf5", (*SMALL, "--format", "hdf5", "--set", "samples_per_file=9"))):
            (alone,), _ = self.generate(1, f"{name}-1", words=words)
            self.assertNotIn("rank_scaling", alone["parameters"])
            for ranks in (2, 3):
                (record,), done = self.generate(ranks, f"{name}-{ranks}", words=words)
                self.assert_same_tree(f"{name}-1", f"{name}-{ranks}")
                self.assertEqual(record["corpus"], {**alone["corpus"], "over_ram": record["corpus"]["over_ram"]})
                self.assertEqual(record["parameters"]["ranks"], ranks)
                self.assertEqual(record["parameters"]["rank_scaling"], "strong")
                metrics = {name: metric["value"] for name, metric in record["metrics"].items()}
                self.assertAlmostEqual(metrics["payload_bytes_per_s"] * metrics["wall_s"], alone["corpus"]["bytes"], delta=1)
                self.assertTrue(0 < metrics["rank_min_bytes_per_s"] <= metrics["rank_median_bytes_per_s"] <= metrics["rank_max_bytes_per_s"])
                self.assertEqual(len(record["environment"]["ranks"]), ranks)
                self.assertEqual(done.stderr.count("record: "), 1, done.stderr)
        self.run_cli("verify", "shards-3")

    def test_a_place_that_one_rank_cannot_open_ends_all(self):
        words = ("generate", "imagenet", *SMALL, "--out")
        done = self.over(1, *words, "out", ":", "-np", 1, penstock_cli.PENSTOCK, *words, "nowhere:x", expect=2)
        self.assertEqual(done.stderr.count("penstock generate:"), 1, done.stderr)
        self.assertFalse((self.dir / "out").exists())

    def test_a_place_that_only_rank_0_sees_ends_all_and_nothing_was_started(self):
        words = ("generate", "imagenet", *SMALL, "--out")
        done = self.over(1, *words, "one", ":", "-np", 1, penstock_cli.PENSTOCK, *words, "other", expect=1)
        self.assertIn(message("resume-target-moved", n=0), done.stderr)
        self.assertNotIn("--resume", done.stderr)
        self.generate(2, "one")

    def test_ranks_without_an_object_are_told(self):
        words = (*SMALL, "--format", "tfrecord", "--set", "shards=2")
        self.generate(1, "alone", words=words)
        _, done = self.generate(4, "four", words=words)
        self.assertEqual(done.stderr.count("2 objects for 4 ranks: 2 of them have no work"), 1, done.stderr)
        self.assert_same_tree("alone", "four")

    def begin(self, ranks, out):
        """A job in the middle of its making; its launcher, and its ranks' processes."""
        job = subprocess.Popen(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", str(ranks), penstock_cli.PENSTOCK,
                                *map(str, ("generate", "imagenet", "--out", out, *SLOW))], cwd=self.dir, env=ENVIRONMENT,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(job.kill)
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while len(penstock_cli.present(self.dir / out, "*.JPEG")) < 20:
            self.assertIsNone(job.poll(), "it was to be stopped in the middle")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        processes = subprocess.run(["ps", "-o", "pid=", "--ppid", str(job.pid)], capture_output=True, text=True, timeout=60, check=True)
        return job, sorted(map(int, processes.stdout.split()))

    def test_stopped_by_a_signal_to_one_rank_and_resumed_by_others(self):
        job, processes = self.begin(2, "stopped")
        os.kill(processes[-1], signal.SIGTERM)
        output, _ = job.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(job.returncode, 143, output)
        self.assertIn("--resume", output)
        self.assertFalse((self.dir / "stopped" / ".penstock" / "manifest").exists())
        record = json.loads(next((self.dir / "penstock-results").glob("*-generate-*.jsonl")).read_text())
        self.assertEqual(record["verdict"], "interrupted")
        self.assert_resumed("stopped")

    def test_killed_and_resumed(self):
        job, processes = self.begin(2, "killed")
        os.kill(processes[-1], signal.SIGKILL)
        output, _ = job.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertNotEqual(job.returncode, 0, output)
        self.assertFalse((self.dir / "killed" / ".penstock" / "manifest").exists())
        self.assert_resumed("killed")

    def assert_resumed(self, out):
        self.run_cli("generate", "imagenet", "--out", "whole", *SLOW)
        (record,), done = self.generate(3, out, "--resume", words=SLOW)
        self.assertEqual(record["verdict"], "ok", done.stderr)
        self.assert_same_tree(out, "whole")
        done = self.over(2, "generate", "imagenet", "--out", out, "--resume")
        self.assertEqual(done.stderr.count(message("nothing-to-do")), 1, done.stderr)

    def test_what_is_refused_is_said_once(self):
        self.generate(2, "there")
        done = self.over(2, "generate", "imagenet", "--out", "there", *SMALL, expect=1)
        self.assertEqual(done.stderr.count(message("target-holds-corpus")), 1, done.stderr)
        self.assertNotIn(message("rank-prefix"), done.stderr)
        done = self.over(2, "generate", "imagenet", "--out", "new", *SMALL, "--dry-run")
        self.assertFalse((self.dir / "new").exists())
        self.assertEqual(done.stdout.count("imagenet"), self.run_cli("generate", "imagenet", "--out", "new", *SMALL, "--dry-run").stdout.count("imagenet"))


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class Probing(RanksTest):
    PROBE = ("--probe", "--probe-size", "2MiB", "--min-time", "30ms", "--repeat", 2, "--threads", "1,2", "--depths", "1,4", "--blocks", "4KiB")

    def test_each_rank_works_on_files_of_its_own_and_one_record_has_the_sum(self):
        (self.dir / "place").mkdir()
        done = self.over(2, "tiers", "--tier", f"disk={self.dir}/place", *self.PROBE, "--json")
        records = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([record["parameters"]["threads"] for record in records], [1, 2])
        for record in records:
            self.assertIn(record["verdict"], ("ok", "short"), record["reason"])
            self.assertEqual((record["parameters"]["ranks"], record["parameters"]["rank_scaling"]), (2, "weak"))
            probes = [name.removesuffix(".bytes_per_s") for name in record["metrics"] if name.endswith(".bytes_per_s")]
            self.assertIn("write.sequential.1m.1", probes)
            self.assertIn("read.random.4k.4", probes)
            for probe in probes:
                metrics = {name: record["metrics"][f"{probe}.{name}"]["samples"] for name in (
                    "bytes_per_s", "bytes_per_s_per_client", "rank_min_bytes_per_s", "rank_median_bytes_per_s", "rank_max_bytes_per_s")}
                for i, rate in enumerate(metrics["bytes_per_s"]):
                    clients = 2 * record["parameters"]["threads"]
                    self.assertAlmostEqual(metrics["bytes_per_s_per_client"][i] * clients, rate, delta=rate * 1e-6)
                    least, middle, most = (metrics[f"rank_{which}_bytes_per_s"][i] for which in ("min", "median", "max"))
                    self.assertTrue(0 < least <= middle <= most)
                    # The sum over the slowest rank's wall is no more than the ranks' own rates together.
                    self.assertLessEqual(rate, (least + most) * (1 + 1e-6))
        self.assertEqual(list((self.dir / "place").iterdir()), [])
        self.assertEqual(len(list((self.dir / "penstock-results").glob("*.jsonl"))), 1)

    def test_the_table_says_whose_the_figures_are(self):
        (self.dir / "place").mkdir()
        done = self.over(2, "tiers", "--tier", f"disk={self.dir}/place", *self.PROBE)
        self.assertEqual(done.stdout.count(message("weak-scaling-ranks", n=2)), 1, done.stdout)
        self.assertEqual(done.stderr.count("record: "), 1, done.stderr)

    def test_what_ranks_cannot_do_is_said_once(self):
        done = self.over(2, "tiers", expect=2)
        self.assertEqual(done.stderr.count(message("launched-as-ranks", n=2)), 1, done.stderr)
        done = self.over(2, "tiers", "--probe", expect=2)
        self.assertEqual(done.stderr.count(message("probe-needs-tier")), 1, done.stderr)


@unittest.skipUnless(open_mpi(), "needs Open MPI's mpirun and a build with the MPI module")
class MpiIo(RanksTest):
    """The back end mpiio over Open MPI's two implementations of MPI-IO."""
    def shards(self):
        self.run_cli("generate", "cosmoflow", "--samples", 50, "--set", "mean=20kB", "--set", "samples_per_file=13", "--format", "tfrecord",
                     "--out", "corpus")
        return self.dir / "corpus"

    def read_by(self, implementation, *args, where=None, expect=0, quick=("--min-time", "50ms", "--repeat", 1, "--no-ceiling", "--seed", 7)):
        done = self.over(4, "read", f"mpiio:{where or self.dir / 'corpus'}", *args, *quick, "--json", expect=expect,
                         environment={"OMPI_MCA_io": implementation})
        record, = (json.loads(line) for line in done.stdout.splitlines())
        return record

    def test_every_sample_comes_once_a_pass_and_with_the_right_bytes(self):
        corpus = self.shards()
        for implementation in self.implementations():
            for flags in (("--threads", 2, "--depth", 3), ("--collective",), ("--collective", "--order", "sequential", "--rank-shift", 1)):
                record = self.read_by(implementation, "--verify", *flags)
                self.assertEqual(record["verdict"], "ok", record["reason"])
                self.assertEqual(record["tiers"]["data"].get("remarks", []), [])
                self.assertEqual(record["metrics"]["errors"]["value"], 0)
                for payload in record["metrics"]["payload_bytes"]["samples"]:
                    self.assertEqual(payload % record["corpus"]["bytes"], 0, "whole passes, each sample read by one rank")
        record = self.read_by("ompio", "--collective", "--block", "4k", where=corpus)
        self.assertEqual(record["verdict"], "ok", record["reason"])

    def test_what_is_wrong_with_a_share_is_told_while_the_others_read_on(self):
        whole = self.shards()
        torn = self.dir / "torn"
        shutil.copytree(whole, torn)
        shard = sorted(torn.glob("*.tfrecord"))[1]
        os.truncate(shard, 200_000)
        for implementation in self.implementations():
            record = self.read_by(implementation, "--collective", where=torn, expect=1)
            self.assertEqual(record["verdict"], "failed", record["reason"])
            self.assertIn(shard.name, record["reason"])
            self.assertIn(message("object-ends-early"), record["reason"])
            record = self.read_by(implementation, "--collective", "--on-error", "skip", where=torn)
            self.assertEqual(record["verdict"], "degraded", record["reason"])
            self.assertGreater(record["metrics"]["payload_bytes"]["samples"][0], 0)

    def test_writes_are_said_to_be_none_of_mpi_io(self):
        (self.dir / "place").mkdir()
        record, = self.records("tiers", "--tier", f"mpiio:{self.dir}/place", "--probe", "--probe-size", "2MiB", "--min-time", "10ms", "--repeat", 1,
                               "--threads", 1, "--depths", 1, "--blocks", "4KiB", "--cache", "asis")
        self.assertGreater(record["metrics"]["write.sequential.1m.1.bytes_per_s"]["value"], 0)
        self.assertIn(message("mpiio-reads-only"), " ".join(record["tiers"]["data"]["remarks"]))

    @unittest.skipUnless(ROMIO, "this Open MPI has no ROMIO, which can say its hints")
    def test_hints_reach_the_library(self):
        corpus = self.shards()
        done = self.over(2, "read", f"mpiio:{corpus},hints=cb_buffer_size:1234567+romio_cb_read:disable", "--collective", *QUICK[:4],
                         "--no-baseline", "--no-ceiling", environment={"OMPI_MCA_io": ROMIO, "ROMIO_PRINT_HINTS": "1"})
        output = done.stdout + done.stderr
        self.assertRegex(output, r"cb_buffer_size\s+value = 1234567")
        self.assertRegex(output, r"romio_cb_read\s+value = disable")

    def test_what_cannot_be_read_together_is_refused(self):
        corpus = self.shards()
        for args, word in ((("posix:" + str(corpus), "--collective"), "only the back end mpiio"),
                           ((f"mpiio:{corpus}", "--collective", "--threads", "2"), "one sample at a time"),
                           ((f"mpiio:{corpus}", "--collective", "--duration", "1s"), "one sample at a time")):
            done = self.run_cli("read", *args, expect=2)
            self.assertIn(word, done.stderr)
        done = self.run_cli("read", f"mpiio:{corpus},hints=nonsense", expect=2)
        self.assertIn(message("hints-syntax"), done.stderr)

    def test_a_fifo_in_a_shard_s_place_is_not_waited_for(self):
        corpus = self.shards()
        shard = sorted(corpus.glob("*.tfrecord"))[1]
        shard.unlink()
        os.mkfifo(shard)
        record = self.read_by("ompio", "--threads", 2, where=corpus, expect=1)
        self.assertEqual(record["verdict"], "failed", record["reason"])
        self.assertIn(shard.name, record["reason"])
        done = self.over(4, "read", f"mpiio:{corpus}", "--collective", *QUICK[:4], "--no-ceiling", expect=1)
        self.assertIn(shard.name, done.stderr)

    def test_a_job_of_one_rank_needs_no_launcher(self):
        corpus = self.shards()
        for flags in (("--threads", "2"), ("--collective",)):
            done = self.run_cli("read", f"mpiio:{corpus}", "--verify", "--min-time", "50ms", "--repeat", "2", "--no-ceiling", *flags,
                                "--json")
            self.assertEqual(json.loads(done.stdout)["verdict"], "ok")
        self.assertEqual([file.name for file in corpus.iterdir() if not file.name.endswith(".tfrecord")], [".penstock"],
                         "only the shards are left")


class Launchers(RanksTest):
    def test_several_ranks_without_the_module_are_told_what_is_missing(self):
        program = self.dir / "bin" / "penstock"
        program.parent.mkdir()
        shutil.copy(penstock_cli.PENSTOCK, program)
        for names in ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}, {"PMI_SIZE": "2", "PMI_RANK": "0"},
                      {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}):
            done = subprocess.run([str(program), "read", "corpus"], capture_output=True, text=True, cwd=self.dir,
                                  env={**os.environ, **names}, timeout=60, check=False)
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn(message("mpi-module-missing"), done.stderr)

    def test_a_batch_script_is_one_process(self):
        self.corpus(files=4)
        self.run_cli("read", "corpus", "--scan", *QUICK, env={**os.environ, "SLURM_NTASKS": "4", "SLURM_PROCID": "0"})

    @unittest.skipUnless(open_mpi(), "needs a build with the MPI module")
    def test_a_launcher_of_another_mpi_is_told_from_a_job(self):
        done = self.run_cli("read", "corpus", env={**ENVIRONMENT, "PMI_SIZE": "3", "PMI_RANK": "0"}, expect=77)
        self.assertIn(message("mpi-size-mismatch", n=3, n2=1), done.stderr)

    def test_the_program_itself_does_not_need_mpi(self):
        done = subprocess.run(["ldd", penstock_cli.PENSTOCK], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            self.skipTest("ldd says nothing of this program")
        self.assertNotIn("libmpi", done.stdout)


if __name__ == "__main__":
    penstock_cli.main()
