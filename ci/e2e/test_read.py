"""`penstock read` from outside: rows, records, proofs, bad input, interruption, privileges."""

import csv
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest
import zlib

from messages import message
import penstock_cli

QUICK = ("--min-time", "30ms", "--repeat", "2", "--seed", "7", "--progress", "never")
NOBODY = 65534
METRICS = {
    "samples_per_s", "payload_bytes_per_s", "bytes_per_s_first_done", "read_call_bytes_per_s", "wall_s", "latency_ns_p50",
    "latency_ns_p95", "latency_ns_p99", "latency_ns_p999", "scaling", "baseline_samples_per_s", "ceiling_bytes_per_s",
    "ceiling_fraction", "errors", "payload_bytes", "tier_bytes_read",
}


def photo_folder():
    package, folder = penstock_cli.SOURCE.joinpath("ci/photo_package").read_text(encoding="utf-8").split()
    return package, pathlib.Path(folder)


class ReadTest(penstock_cli.CliTest):
    def corpus(self, name="corpus", files=60, bytes_each=5000):
        """A folder of files that only look like photographs, and what is in it."""
        folder = self.dir / name
        numbers = random.Random(1)
        for i in range(files):
            file = folder / f"class{i % 3}" / f"{i:04d}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(numbers.randbytes(bytes_each + i))
        return folder

    def read(self, *args, **kwargs):
        return self.records("read", *args, *QUICK, **kwargs)


class Rows(ReadTest):
    def assert_whole_seconds(self, record):
        walls = record["metrics"]["wall_s"]["samples"]
        self.assertEqual("payload_bytes" in record["series"], max(walls) >= 0.99)
        if series := record["series"].get("payload_bytes"):
            self.assertEqual(len(series["values"]), sum(max(1, int(wall + 0.01)) for wall in walls))
            self.assertEqual(sum(series["values"]), sum(record["metrics"]["payload_bytes"]["samples"]))
            self.assertAlmostEqual(sum(series["lengths_s"]), sum(walls))

    def test_seconds_of_cold_passes_are_seconds(self):
        corpus = self.corpus()
        record = self.records("read", f"posix:{corpus},limit=20MB/s", "--scan", "--threads", 1, "--cache", "cold", "--min-time",
                              "1200ms", "--repeat", 2, "--no-ceiling", "--no-baseline")[0]
        if record["verdict"] == "failed":
            self.skipTest(record["reason"])
        self.assertEqual(len(record["metrics"]["wall_s"]["samples"]), 2)
        self.assert_whole_seconds(record)

    def test_one_thread_hides_latency_behind_reads_in_flight(self):
        tier = f"far=posix:{self.corpus(files=512, bytes_each=1000)},latency=50ms"
        rates = {}
        for depth in (1, 64):
            record, = self.records("read", tier, "--scan", "--threads", "1", "--depth", depth, "--duration", "1s", "--repeat", "1", "--cache", "asis",
                                   "--no-ceiling", "--no-baseline", "--progress", "never")
            self.assertEqual(record["verdict"], "ok", record["reason"])
            rates[depth] = record["metrics"]["samples_per_s"]["value"]
        self.assertLess(rates[1], 1 / 0.05, "each takes at least 50 ms")
        self.assertLess(rates[64], 64 / 0.05)
        self.assertGreaterEqual(rates[64], 30 * rates[1], rates)

    def test_one_record_a_cell_with_all_that_was_promised(self):
        corpus = self.corpus()
        shutil.copytree(corpus, self.dir / "copy")
        records = self.read(corpus, "--scan", "--tier", f"copy=posix:{self.dir / 'copy'}", "--threads", "1,2")
        cells = [(r["parameters"]["tier"], r["parameters"]["threads"]) for r in records]
        self.assertEqual(len(set(cells)), 4)
        self.assertEqual([threads for _, threads in cells], [1, 2, 1, 2])
        self.assertEqual(cells[2][0], "copy")
        for record in records:
            self.assertEqual(record["command"], "read")
            self.assertIn(record["verdict"], ("ok", "ceiling_invalid"), record["reason"])
            self.assertEqual(METRICS - set(record["metrics"]), set())
            self.assertEqual({name for name, metric in record["metrics"].items() if metric.get("headline")},
                             {"payload_bytes_per_s", "errors"})
            for metric in ("samples_per_s", "wall_s", "baseline_samples_per_s", "latency_ns_p99"):
                self.assertEqual(len(record["metrics"][metric]["samples"]), 2, metric)
                self.assertGreater(min(record["metrics"][metric]["samples"]), 0, metric)
            self.assertGreaterEqual(min(record["metrics"]["wall_s"]["samples"]), 0.03)
            self.assertEqual(record["corpus"]["samples"], 60)
            self.assertEqual(record["seed"], 7)
            self.assertEqual(record["parameters"]["order"], "shuffled")
            self.assert_whole_seconds(record)
            whole_passes = sum(record["metrics"]["payload_bytes"]["samples"]) / record["corpus"]["bytes"]
            self.assertEqual(whole_passes, round(whole_passes))
            self.assertGreater(record["metrics"]["tier_bytes_read"]["value"], sum(record["metrics"]["payload_bytes"]["samples"]))
        self.assertEqual(records[0]["metrics"]["scaling"]["value"], 1.0)
        stored = [json.loads(line) for file in (self.dir / "penstock-results").glob("*-read-*.jsonl") for line in file.read_text().splitlines()]
        self.assertEqual([r["id"] for r in stored], [r["id"] for r in records])

    def test_the_table_says_what_it_measured(self):
        done = self.run_cli("read", self.corpus(), "--scan", "--threads", "1,2", *QUICK)
        self.assertIn(message("corpus-count-of-jpeg", n=60), done.stdout)
        self.assertRegex(done.stdout, r"tier +threads +files/s +MiB/s +spread +scaling +baseline +of ceiling +p50 [mu]s +p99 [mu]s")
        self.assertRegex(done.stdout, r"\n\S+ +2 +[\d ]+")
        self.assertRegex(done.stdout, r"(stops scaling|still gains|is fastest|gains up to|loses \d+% from|More than) (at )?\d thread")
        done = self.run_cli("read", self.corpus(), "--scan", "--threads", "1", "--units", "si", *QUICK)
        self.assertIn(" MB/s ", done.stdout)

    def test_its_median_size_is_that_of_describe(self):
        for i, size in enumerate((1000, 102300, 103700, 107990)):
            (self.dir / f"{i}.jpg").write_bytes(bytes(size))
        heading = self.run_cli("read", ".", "--scan", "--threads", 1, *QUICK).stdout
        lines = self.run_cli("describe", ".", "--scan").stdout.splitlines()
        names = next(number for number, line in enumerate(lines) if " p50 " in line)
        sizes = dict(zip(lines[names].split(), re.findall(r"[\d.]+ [KMG]?i?B", lines[names + 1])))
        self.assertEqual(re.search(r"median ([\d.]+ \w+)", heading)[1], sizes["p50"])

    def test_tiers_of_one_name_get_rows_of_their_own(self):
        corpus = self.corpus()
        shutil.copytree(corpus, self.dir / "copy")
        records = self.read(corpus, "--scan", "--tier", self.dir / "copy", "--tier", self.dir / "copy", "--threads", "1",
                            "--no-ceiling")
        self.assertEqual(len({r["parameters"]["tier"] for r in records}), 3)
        heading = self.run_cli("read", corpus, "--scan", "--tier", f"posix:{self.dir / 'copy'},latency=1us", "--tier", f"fast={self.dir / 'copy'}",
                               "--threads", "1", "--no-ceiling", *QUICK).stdout
        self.assertIn(f" (posix:{corpus}): ", heading)
        self.assertIn(f"-2 (posix:{self.dir / 'copy'},latency=1us): emulated", heading)
        self.assertIn("\nfast: ", heading)
        records = self.read(corpus, "--scan", "--tier", f"fast={self.dir / 'copy'}", "--only-tiers", "--threads", "1", "--no-ceiling")
        self.assertEqual([r["parameters"]["tier"] for r in records], ["fast"])

    def test_yardsticks_can_be_left_out(self):
        record, = self.read(self.corpus(), "--scan", "--threads", "1", "--no-baseline", "--no-ceiling")
        self.assertNotIn("baseline_samples_per_s", record["metrics"])
        self.assertNotIn("ceiling_bytes_per_s", record["metrics"])

    def test_depth_orders_duration_and_ramp(self):
        corpus = self.corpus()
        for flags in (("--depth", "4"), ("--iodepth", "2"), ("--order", "sequential")):
            record, = self.read(corpus, "--scan", "--threads", "2", "--no-ceiling", *flags)
            self.assertEqual(record["verdict"], "ok", record["reason"])
        record, = self.read(corpus, "--scan", "--threads", "2", "--no-ceiling", "--duration", "200ms", "--ramp", "50ms")
        self.assertEqual(record["verdict"], "ok", record["reason"])
        for wall in record["metrics"]["wall_s"]["samples"]:
            self.assertGreaterEqual(wall, 0.19)

    def test_a_duration_that_is_kept_is_not_short(self):
        record, = self.records("read", self.corpus(), "--scan", "--threads", 1, "--duration", "100ms", "--repeat", 2,
                               "--no-ceiling", "--no-baseline")
        self.assertNotEqual(record["verdict"], "short", record["reason"])
        self.assertEqual((record["parameters"]["duration_s"], record["parameters"]["min_time_s"]), (0.1, 0.09))

    def test_an_open_loop_counts_from_when_samples_are_due(self):
        folder = self.corpus()
        flags = (folder, "--scan", "--threads", "1,2", "--duration", "300ms", "--repeat", 1)
        for rate in ("200", "0.2k/s,poisson"):
            for record in self.records("read", *flags, "--rate", rate):
                self.assertIn(record["verdict"], ("ok", "short"), record["reason"])
                metrics = record["metrics"]
                offered = metrics["offered_samples_per_s"]["value"]
                if "poisson" in rate:
                    self.assertGreater(offered, 0)
                else:
                    self.assertAlmostEqual(offered, 200, delta=4)
                self.assertLessEqual(metrics["kept_up"]["value"], 1)
                self.assertLessEqual(metrics["samples_per_s"]["value"], offered + 1e-9)
                self.assertGreaterEqual(metrics["wall_s"]["value"], 0.299)
                self.assertLessEqual(metrics["late_ns_p50"]["value"], metrics["latency_ns_p50"]["value"])
                self.assertNotIn("baseline_samples_per_s", metrics)
                self.assertNotIn("ceiling_bytes_per_s", metrics)
        output = self.run_cli("read", f"posix:{folder},latency=20ms", *flags[1:], "--rate", "1k").stdout
        self.assertIn(message("arrivals-not-kept-up", n=1), output)
        self.assertNotIn("gains", output, "a rate that was given is no limit")
        for wrong, word in ((("--rate", "fast"), "not a number of samples per second"), (("--rate", "9", "--depth", "4"), "leave out --depth"),
                            (("--rate", "9", "--collective"), "--collective")):
            self.assertIn(word, self.run_cli("read", *flags[:2], *wrong, expect=2).stderr)

    def test_wrong_bytes_that_are_skipped_degrade(self):
        folder = self.corpus()
        self.run_cli("describe", folder, "--scan", "--checksum", "--save", self.dir / "m")
        victim = folder / "class1" / "0001.jpg"
        victim.write_bytes(bytes(victim.stat().st_size))
        flags = (folder, "--manifest", self.dir / "m", "--threads", 1, "--no-ceiling", "--no-baseline")
        failed, = self.read(*flags, expect=1)
        self.assertEqual(failed["verdict"], "wrong_bytes")
        for more, sentence in (((), "the warm-up pass found 1 sample with wrong bytes; without --verify the repeats do not check, and count it;"),
                               (("--verify",), "1 sample was skipped, 1 of them for wrong bytes;")):
            record, = self.read(*flags, "--on-error", "skip", *more)
            self.assertEqual(record["verdict"], "degraded")
            self.assertIn(sentence, record["reason"])
            self.assertIn(message("wrong-bytes-in-object", name="class1/0001.jpg"), record["reason"])
            errors = record["metrics"]["errors"]["value"]
            (self.assertGreaterEqual if more else self.assertLess)(errors, 1)
            bytes_a_pass = sum(file.stat().st_size for file in folder.rglob("*.jpg")) - (victim.stat().st_size if more else 0)
            for payload in record["metrics"]["payload_bytes"]["samples"]:
                self.assertEqual(payload % bytes_a_pass, 0)

    def test_decoding_knows_png_and_refuses_what_is_no_picture(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        pictures = self.dir / "pictures"
        pictures.mkdir()
        for i in range(8):
            rows = b"".join(b"\0" + bytes(64 * 3) for _ in range(32 + i))
            header = struct.pack(">IIBBBBB", 64, 32 + i, 8, 2, 0, 0, 0)
            (pictures / f"{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
                                               + chunk(b"IEND", b""))
        flags = (pictures, "--scan", "--types", "png", "--threads", 1, "--decode", "full", "--no-ceiling")
        if message("build-lacks-libpng") not in self.run_cli("read", *flags, *QUICK, expect=None).stderr:
            record, = self.read(*flags)
            self.assertEqual(record["metrics"]["errors"]["value"], 0)
            self.assertIn("baseline_samples_per_s", record["metrics"])
            for picture in pictures.glob("*.png"):
                picture.rename(picture.with_suffix(""))
            record, = self.read(pictures, "--scan", "--types", "any", "--threads", 1, "--decode", "full", "--no-ceiling")
            self.assertEqual(record["metrics"]["errors"]["value"], 0, record["reason"])
        self.run_cli("generate", "cifar10", "--samples", 20, "--out", self.dir / "arrays")
        self.assertIn(message("decode-needs-jpeg-or-png"), self.run_cli("read", self.dir / "arrays", "--decode", "full", expect=2).stderr)

    def test_less_than_the_least_time_is_short(self):
        record, = self.records("read", self.corpus(), "--scan", "--threads", "1", "--duration", "50ms", "--min-time", "1h",
                               "--repeat", "1", "--no-ceiling", "--no-baseline")
        self.assertEqual(record["verdict"], "short")
        self.assertIn("--min-time", record["reason"])

    def test_live_csv_has_lines_for_every_repeat(self):
        live = self.dir / "live.csv"
        self.read(self.corpus(), "--scan", "--threads", "1,2", "--no-ceiling", "--no-baseline", "--live-csv", live)
        with live.open(encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(list(lines[0]), ["time", "tier", "threads", "files_per_s", "mib_per_s"])
        self.assertEqual({line["threads"] for line in lines}, {"1", "2"})
        self.assertGreaterEqual(len(lines), 4)
        self.assertLess(abs(float(lines[-1]["time"]) - time.time()), 60)
        self.assertTrue(all(float(line["files_per_s"]) > 0 for line in lines))

    def test_live_csv_on_a_full_disk_is_an_error(self):
        done = self.run_cli("read", self.corpus(files=3), "--scan", "--threads", 1, "--repeat", 1, "--min-time", "20ms", "--no-ceiling",
                            "--no-baseline", "--live-csv", "/dev/full", expect=1)
        self.assertIn("/dev/full", done.stderr)

    def test_live_csv_grows_while_it_runs(self):
        live = self.dir / "live.csv"
        process = self.start("read", self.corpus(), "--scan", "--threads", "1", "--repeat", "1", "--min-time", "20s",
                             "--no-ceiling", "--no-baseline", "--live-csv", live)
        until = time.monotonic() + 15
        while time.monotonic() < until and (not live.exists() or live.read_text(encoding="utf-8").count("\n") < 3):
            time.sleep(0.1)
        running = process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertTrue(running)
        self.assertGreaterEqual(live.read_text(encoding="utf-8").count("\n"), 3)


class Cache(ReadTest):
    def test_warm_is_proven(self):
        record, = self.read(self.corpus(), "--scan", "--threads", "1", "--no-ceiling", "--cache", "warm")
        if record["cache"]["client_data"] == "memory":
            self.skipTest("the temporary folder is in memory: nothing to warm")
        self.assertEqual(record["cache"]["client_data"], "warm")
        self.assertGreaterEqual(record["cache"]["resident_fraction_before"], 0.99)

    def test_cold_is_proven_before_every_repeat(self):
        record, = self.read(self.corpus(files=200), "--scan", "--threads", "2", "--cache", "cold")
        if record["cache"]["client_data"] == "memory":
            self.skipTest("the temporary folder is in memory: nothing there is ever cold")
        self.assertEqual(record["cache"]["client_data"], "cold", record["reason"])
        self.assertLessEqual(record["cache"]["resident_fraction_before"], 0.01)
        self.assertEqual(record["cache"]["method"], "evict")
        self.assertEqual(record["cache"]["client_metadata"], "warm")
        self.assertGreaterEqual(min(record["metrics"]["wall_s"]["samples"]), 0.03, "passes repeat until it is long enough")
        if "device_bytes_fraction" in record["cache"]:
            self.assertGreater(record["cache"]["device_bytes_fraction"], 0.9)

    @unittest.skipUnless(os.access("/proc/sys/vm/drop_caches", os.W_OK), "only root drops the page cache")
    def test_cold_by_drop_is_cold_metadata_for_direct_reads_too(self):
        tier = f"posix:{self.corpus(files=20)},direct=1"
        before = penstock_cli.slabs_dropped()
        done = self.run_cli("read", tier, "--scan", "--threads", "1", "--cache", "cold", "--cold-by", "drop", "--repeat", "2",
                            "--min-time", "1ms", "--no-ceiling", "--no-baseline", "--json", "--progress", "never", expect=None)
        if message("no-direct-io") in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        cache = json.loads(done.stdout)["cache"]
        if cache["client_data"] == "memory":
            self.skipTest("the temporary folder is in memory: nothing there is ever cold")
        self.assertEqual((cache["client_data"], cache["client_metadata"], cache["method"]), ("bypassed", "cold", "drop"))
        self.assertGreaterEqual(penstock_cli.slabs_dropped() - before, 2, "before every repeat")

    def test_memory_says_memory_and_not_cold(self):
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("no writable /dev/shm")
        folder = pathlib.Path("/dev/shm", f"penstock-test-{os.getpid()}")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        shutil.copytree(self.corpus(), folder)
        record, = self.read(folder, "--scan", "--threads", "1", "--cache", "cold", "--no-ceiling")
        self.assertEqual(record["cache"]["client_data"], "memory")
        self.assertIsNone(record["cache"].get("resident_fraction_before"))
        done = self.run_cli("read", folder, "--scan", "--threads", "1", "--cache", "cold", "--no-ceiling", *QUICK)
        self.assertIn(message("cache-state-does-not-apply"), done.stdout)

    def test_another_user_on_roots_files_is_unverified_and_never_a_made_up_zero(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv to become somebody else")
        corpus = self.corpus()
        os.chmod(self.dir, 0o755)
        program = self.dir / "penstock"  # a copy that is not executable
        shutil.copy(penstock_cli.PENSTOCK, program)
        out = self.dir / "out"
        out.mkdir()
        os.chown(out, NOBODY, NOBODY)
        become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", str(program)]
        # A sanitizer's list of suppressions is in the checkout, which may be closed to others.
        environment = {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
        for cold_by in ("evict", "drop"):
            done = subprocess.run([*become, "read", corpus, "--scan", "--threads", "2", "--cache", "cold", "--cold-by", cold_by,
                                   "--results", out / "records", "--json", "--no-ceiling", *QUICK], env=environment,
                                  cwd=out, capture_output=True, text=True, timeout=penstock_cli.PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            record = json.loads(done.stdout)
            if record["cache"]["client_data"] == "memory":
                self.skipTest("the temporary folder is in memory")
            self.assertEqual(record["cache"]["client_data"], "unverified")
            self.assertIsNone(record["cache"].get("resident_fraction_before"))
            self.assertEqual(record["cache"]["method"], "evict")
            if cold_by == "drop":
                self.assertIn("drop", done.stderr)
                self.assertIn(message("files-evicted-one-by-one"), done.stderr)
        done = subprocess.run([*become, "read", f"posix:{corpus},direct=1", "--scan", "--threads", "2", "--cache", "cold", "--cold-by", "drop",
                               "--results", out / "records", "--json", "--no-ceiling", *QUICK], env=environment,
                              cwd=out, capture_output=True, text=True, timeout=penstock_cli.PATIENCE_S, check=False)
        if message("no-direct-io") not in done.stderr:
            self.assertEqual(done.returncode, 0, done.stderr)
            cache = json.loads(done.stdout)["cache"]
            self.assertEqual((cache["client_data"], cache["client_metadata"], cache["method"]), ("bypassed", "unknown", ""))
            self.assertIn(message("metadata-cache-not-dropped"), done.stderr)
            self.assertNotIn("evicted", done.stderr)


class BadInput(ReadTest):
    def test_threads_0_and_other_nonsense_is_wrong_usage(self):
        corpus = self.corpus(files=3)
        for flags in (("--threads", "0"), ("--threads", "1,0"), ("--threads", ""), ("--depth", "0"), ("--repeat", "0"),
                      ("--threads", "99999999999999999999"), ("--threads", "100000"), ("--depth", "1000000"),
                      ("--min-time", "2"), ("--min-time", "-1s"), ("--cache", "lukewarm"), ("--only-tiers",), ("--treads=1",)):
            done = self.run_cli("read", corpus, "--scan", *flags, expect=2)
            self.assertIn(flags[0].lstrip("-").split("=")[0], done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertFalse((self.dir / "penstock-results").exists())

    def test_a_list_where_one_number_is_taken_names_the_sweep(self):
        corpus = self.corpus(files=3)
        for words, file in ((("--depth", "1,8"), "depth: [1,8]"), (("--iodepth=1..16*2",), "depth: [1..16*2]"), (("--repeat", "1,2"), "repeat: [1,2]")):
            done = self.run_cli("read", corpus, "--scan", *words, expect=2)
            for word in ("one number", "penstock sweep", "command: read", f"grid: {{{file}}}"):
                self.assertIn(word, done.stderr)
        self.assertNotIn("sweep", self.run_cli("read", corpus, "--scan", "--depth", "eight", expect=2).stderr)

    def test_no_manifest_and_an_empty_folder_name_the_remedy(self):
        done = self.run_cli("read", self.corpus(files=3), expect=1)
        self.assertIn("--scan", done.stderr)
        (self.dir / "empty").mkdir()
        done = self.run_cli("read", self.dir / "empty", "--scan", expect=1)
        self.assertIn("empty", done.stderr)

    def test_a_tier_without_the_objects_names_the_remedy(self):
        (self.dir / "elsewhere").mkdir()
        done = self.run_cli("read", self.corpus(), "--scan", "--tier", f"fast={self.dir / 'elsewhere'}", *QUICK, expect=1)
        self.assertIn("'fast' lacks 'class0/0000.jpg'", done.stderr)
        self.assertIn("penstock copy", done.stderr)

    def test_a_tier_that_lacks_one_object_fails_its_rows_and_keeps_the_others(self):
        corpus = self.corpus(files=600)
        shutil.copytree(corpus, self.dir / "copy")
        (self.dir / "copy" / "class1" / "0001.jpg").unlink()
        records = self.read(corpus, "--scan", "--tier", f"fast={self.dir / 'copy'}", "--threads", "1,2", "--no-ceiling", expect=1)
        by_tier = {}
        for record in records:
            by_tier.setdefault(record["parameters"]["tier"], []).append(record)
        for record in by_tier.pop("fast"):
            self.assertEqual(record["verdict"], "failed")
            self.assertIn("class1/0001.jpg", record["reason"])
            self.assertNotIn("samples_per_s", record["metrics"])
        self.assertEqual({r["verdict"] for rows in by_tier.values() for r in rows}, {"ok"})

    def test_vanished_and_shrunk_objects_are_named(self):
        corpus = self.corpus()
        # A manifest for a folder that somebody else made, so that the folder can change without its manifest.
        self.run_cli("copy", corpus, "--scan", "--to", self.dir / "made")
        made = self.dir / "made"
        victim = made / "class2" / "0002.jpg"
        whole = victim.read_bytes()
        for damage, word in ((lambda: victim.write_bytes(whole[:100]), "end"), (victim.unlink, "0002.jpg")):
            damage()
            record, = self.read(made, "--threads", "2", "--no-ceiling", expect=1)
            self.assertEqual(record["verdict"], "failed")
            self.assertIn("class2/0002.jpg", record["reason"])
            self.assertIn(word, record["reason"])
            record, = self.read(made, "--threads", "2", "--no-ceiling", "--on-error", "skip")
            self.assertEqual(record["verdict"], "degraded")
            self.assertIn("class2/0002.jpg", record["reason"])
            self.assertGreaterEqual(record["metrics"]["errors"]["value"], 2)

    def test_wrong_bytes_are_told_in_the_warm_up_where_the_manifest_has_checksums(self):
        corpus = self.corpus()
        self.run_cli("copy", corpus, "--scan", "--to", self.dir / "made")
        victim = self.dir / "made" / "class0" / "0003.jpg"
        victim.write_bytes(bytes(victim.stat().st_size))
        records = self.read(self.dir / "made", "--threads", "2", "--no-ceiling", expect=None)
        if not records[0]["parameters"]["checksums"]:
            self.skipTest("copies of scanned folders carry no checksums")
        self.assertEqual(records[0]["verdict"], "wrong_bytes")
        self.assertIn("class0/0003.jpg", records[0]["reason"])

    def test_verify_needs_checksums(self):
        done = self.run_cli("read", self.corpus(files=3), "--scan", "--verify", expect=77)
        self.assertIn("checksums", done.stderr)

    def test_an_injected_fault_fails_and_is_skipped_when_asked(self):
        corpus = self.corpus()
        tier = f"bad=posix:{corpus},fail=eio@0.05"
        records = self.read(corpus, "--scan", "--tier", tier, "--only-tiers", "--threads", "2", "--no-ceiling", expect=1)
        self.assertEqual(records[0]["verdict"], "failed")
        records = self.read(corpus, "--scan", "--tier", tier, "--only-tiers", "--threads", "2", "--no-ceiling", "--on-error", "skip")
        self.assertEqual(records[0]["verdict"], "degraded")
        self.assertGreater(records[0]["metrics"]["errors"]["value"], 0)

    def test_live_csv_that_cannot_be_written(self):
        done = self.run_cli("read", self.corpus(files=3), "--scan", "--live-csv", self.dir / "no" / "x.csv", expect=1)
        self.assertIn("x.csv", done.stderr)


class Interrupted(ReadTest):
    def test_control_c_writes_what_was_measured(self):
        corpus = self.corpus()
        process = self.start("read", corpus, "--scan", "--threads", "1,2", "--min-time", "300ms", "--repeat", "100", "--no-ceiling",
                             "--no-baseline", "--json")
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        records = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(records), 2)
        for record in records:
            self.assertEqual(record["verdict"], "interrupted")
            self.assertGreater(record["metrics"]["samples_per_s"]["value"], 0)
        self.assertEqual(len(list((self.dir / "penstock-results").glob("*-read-*.jsonl"))), 1)

    def test_terminate_is_143(self):
        process = self.start("read", self.corpus(), "--scan", "--threads", "1", "--min-time", "60s", "--cache", "cold")
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)


class RealPhotographs(ReadTest):
    def setUp(self):
        super().setUp()
        package, self.photos = photo_folder()
        if not self.photos.is_dir():
            self.skipTest(f"needs the photographs of Debian's {package} in {self.photos}")

    def test_they_are_scanned_and_decoded(self):
        record, = self.read(self.photos, "--scan", "--threads", "2", "--decode", "full", "--no-ceiling")
        self.assertIn(record["verdict"], ("ok", "short"), record["reason"])
        self.assertGreaterEqual(record["corpus"]["samples"], 20)
        self.assertEqual(record["metrics"]["errors"]["value"], 0)
        raw, = self.read(self.photos, "--scan", "--threads", "2", "--no-ceiling")
        self.assertGreater(raw["metrics"]["samples_per_s"]["value"], record["metrics"]["samples_per_s"]["value"])

    def test_damaged_ones_fail_by_default_and_are_skipped_and_named_when_asked(self):
        folder = self.dir / "photos"
        folder.mkdir()
        photos = sorted(file for file in self.photos.rglob("*") if re.fullmatch(r"\.jpe?g", file.suffix.lower()))
        for i, photo in enumerate(photos[:12]):
            shutil.copy(photo, folder / f"{i:02d}.jpg")
        whole = (folder / "05.jpg").read_bytes()
        (folder / "05.jpg").write_bytes(whole[: len(whole) // 2])
        (folder / "07.jpg").write_text("this is no photograph\n", encoding="utf-8")
        (folder / "09.jpg").write_bytes(b"")
        flags = (folder, "--scan", "--threads", "2", "--decode", "full", "--no-ceiling")
        record, = self.read(*flags, expect=1)
        self.assertEqual(record["verdict"], "failed")
        self.assertRegex(record["reason"], r"0[579]\.jpg")
        done = self.run_cli("read", *flags, "--on-error", "skip", "--json", *QUICK)
        record = json.loads(done.stdout)
        self.assertEqual(record["verdict"], "degraded")
        for name in ("05.jpg", "07.jpg", "09.jpg"):
            self.assertIn(name, done.stderr)
        self.assertEqual(record["metrics"]["errors"]["value"] % 3, 0)


if __name__ == "__main__":
    penstock_cli.main()
