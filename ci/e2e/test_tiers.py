"""`penstock tiers` from outside: what is found and described, and a probe that measures and leaves no files."""

import json
import os
import re
import signal
import time

from messages import message
import penstock_cli


class Tiers(penstock_cli.CliTest):
    PROBES = {"read.sequential.1m.1", "read.sequential.1m.best", "read.small_files.112k.best",
             *(f"write.{order}.{block}.1" for order in ("sequential", "random") for block in ("4k", "128k", "1m")),
             *(f"write.small_files.112k.{depth}" for depth in (1, 8, 32)),
             *(f"read.{what}.{depth}" for what in ("random.4k", "random.128k", "small_files.112k") for depth in (1, 8, 32))}
    PROBE = ("--probe", "--probe-size", "8MiB", "--min-time", "20ms", "--repeat", "2", "--progress", "never", "--cache", "asis")

    def test_those_of_this_machine_are_found(self):
        tiers = [json.loads(line) for line in self.run_cli("tiers", "--json").stdout.splitlines()]
        self.assertGreater(len(tiers), 0)
        self.assertEqual(len({tier["name"] for tier in tiers}), len(tiers))
        for tier in tiers:
            self.assertTrue(os.path.isdir(tier["root"]))
            self.assertTrue(tier["fs_type"])
            self.assertGreater(tier["free_bytes"], 0)
        here = os.stat(self.dir).st_dev
        self.assertTrue(any(os.stat(tier["root"]).st_dev == here or tier["memory"] for tier in tiers))
        table = self.run_cli("tiers").stdout
        for tier in tiers:
            self.assertRegex(table, rf"(?m)^{re.escape(tier['name'])} .*{re.escape(tier['fs_type'])}")
        self.assertFalse((self.dir / "penstock-results").exists())

    def test_a_named_one_is_described(self):
        tier, = [json.loads(line) for line in self.run_cli("tiers", "--tier", f"here=posix:{self.dir}", "--json").stdout.splitlines()]
        self.assertEqual((tier["name"], tier["backend"], tier["root"]), ("here", "posix", str(self.dir)))
        done = self.run_cli("tiers", "--tier", "here=poxis:/x", expect=2)
        self.assertIn("posix", done.stderr)

    def test_what_a_url_names_is_no_disk_of_this_machine(self):
        words = ("tiers", "--tier", "far=s3:http://127.0.0.1:9/bucket,retries=0")
        done = self.run_cli(*words, "--json", expect=None)
        if done.returncode == 77:
            self.skipTest(done.stderr)
        tier = json.loads(done.stdout)
        self.assertEqual((tier["network"], tier["memory"], tier["fs_type"], tier["mount_point"]), (True, False, "", ""))
        self.assertRegex(self.run_cli(*words).stdout, r"(?m)^far +object store +- ")

    def test_a_file_is_no_tier(self):
        (self.dir / "file").write_text("of somebody", encoding="utf-8")
        for word in ("file", "file/below", f"here=posix:{self.dir}/file,limit=1MB/s"):
            for how in ((), ("--probe",), ("--json",)):
                done = self.run_cli("tiers", "--tier", word, *how, expect=2)
                self.assertIn(f"{self.dir}/file", done.stderr)
                self.assertIn("--tier needs a folder", done.stderr)
                self.assertEqual(done.stdout, "")
        self.run_cli("tiers", "--tier", "not-there-yet")

    def test_a_depth_of_one_is_one_read_at_a_time(self):
        (self.dir / "far").mkdir()
        record, = self.records("tiers", "--tier", f"far=posix:{self.dir}/far,latency=20ms", "--probe", "--probe-size", "2MiB", "--min-time", "200ms",
                               "--repeat", 1, "--threads", 1, "--depths", "1,4", "--blocks", "4KiB", "--cache", "asis")
        rates = {name: metric["value"] for name, metric in record["metrics"].items() if name.endswith(".ops_per_s")}
        for probe in ("read.sequential.1m.1", "read.small_files.112k.1", "read.random.4k.1"):
            self.assertLessEqual(rates[f"{probe}.ops_per_s"], 51, "each waits 20 ms for the one before")
        self.assertGreater(rates["read.small_files.112k.best.ops_per_s"], rates["read.small_files.112k.1.ops_per_s"])
        self.assertEqual(set(record["parameters"]["loops"]), {"read.sequential.1m.best", "read.small_files.112k.best"})

    def test_a_mistyped_path_is_not_probed(self):
        for word in ("scrach/x", f"here=uring:{self.dir}/scrach/x,limit=1MB/s"):
            done = self.run_cli("tiers", "--tier", word, *self.PROBE, expect=2)
            self.assertIn(f"folder '{self.dir}/scrach/x' does not exist: create it, or name", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertFalse((self.dir / "scrach").exists())
        self.assertFalse((self.dir / "penstock-results").exists())

    def test_tiers_of_one_path_are_told_apart_by_what_they_were_given(self):
        table = self.run_cli("tiers", "--tier", self.dir, "--tier", f"posix:{self.dir},limit=1MB/s,latency=1ms").stdout
        self.assertRegex(table, rf"(?m)  posix:{re.escape(str(self.dir))} ")
        self.assertRegex(table, rf"(?m)^\S+-2 .*  posix:{re.escape(str(self.dir))},limit=1MB/s,latency=1ms ")

    def test_probe_measures_and_takes_its_files_away(self):
        target = self.dir / "target"
        target.mkdir()
        records = self.records("tiers", "--tier", f"here={target}", *self.PROBE, "--threads", "1,2")
        self.assertEqual([r["parameters"]["threads"] for r in records], [1, 2])
        for record in records:
            self.assertIn(record["verdict"], ("ok", "short"), record["reason"])
            for probe in self.PROBES:
                for what in ("bytes_per_s", "ops_per_s", "bytes_per_s_per_client", "ops_per_s_per_client"):
                    samples = record["metrics"][f"{probe}.{what}"]["samples"]
                    self.assertEqual(len(samples), 2)
                    self.assertGreater(min(samples), 0, probe)
            for what in ("create", "stat", "open", "list", "remove"):
                for name in (f"metadata.{what}.ops_per_s", f"metadata.{what}.ops_per_s_per_client"):
                    self.assertGreater(min(record["metrics"][name]["samples"]), 0)
                self.assertNotIn(f"metadata.{what}.bytes_per_s", record["metrics"])
            self.assertIn("read.random.4k.1.clients_1", record["tiers"]["data"]["ceilings"])
            self.assertIn("write.random.4k.1.clients_2", record["tiers"]["data"]["ceilings"])
        # Eight writers have 1 MiB each, 16 and more do not.
        self.assertGreater(min(records[0]["metrics"]["write.sequential.1m.8.bytes_per_s"]["samples"]), 0)
        self.assertEqual(set(records[0]["parameters"]["left_out"]), {"write.sequential.1m.32"})
        self.assertEqual(set(records[1]["parameters"]["left_out"]), {"write.sequential.1m.8", "write.sequential.1m.32"})
        self.assertNotIn("write.sequential.1m.8.bytes_per_s", records[1]["metrics"])
        # Each repeat lasts at least 20 ms.
        least = sum(rate * 0.019 for record in records for probe in self.PROBES if probe.startswith("read.")
                    for rate in record["metrics"][f"{probe}.bytes_per_s"]["samples"])
        self.assertGreater(records[0]["metrics"]["tier_bytes_read"]["value"], least)
        self.assertEqual(list(target.iterdir()), [])

    def test_the_table_counts_as_readers_do(self):
        out = self.run_cli("tiers", "--tier", f"here=posix:{self.dir}", *self.PROBE, "--threads", "1").stdout
        self.assertRegex(out, r"(?m)^here +1 +metadata\.create +- +[1-9]")
        probes = re.findall(r"^here +1 +(read\.random\S+)", out, re.MULTILINE)
        self.assertEqual(probes, [f"read.random.{block}.{depth}" for block in ("4k", "128k") for depth in (1, 8, 32)])
        self.assertIn(message("probe-size-too-small-for-writers", n=1, n2=32), out)

    def test_probe_cold_is_proven(self):
        record, = self.records("tiers", "--tier", f"here={self.dir}", *self.PROBE[:-1], "cold", "--threads", "1")
        self.assertIn(record["cache"]["client_data"], ("cold", "memory"), record["reason"])

    def test_probe_leaves_nothing_behind_when_interrupted(self):
        target = self.dir / "target"
        target.mkdir()
        process = self.start("tiers", "--tier", target, "--probe", "--probe-size", "8MiB", "--min-time", "1s", "--repeat", "30")
        until = time.monotonic() + penstock_cli.PATIENCE_S
        while time.monotonic() < until and not penstock_cli.present(target, "penstock-probe-*/*-0*"):
            time.sleep(0.05)
        self.assertTrue(penstock_cli.present(target, "penstock-probe-*/*-0*"), "it writes while it runs")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(list(target.iterdir()), [])

    def test_what_a_killed_probe_left_is_swept_by_the_next_and_nothing_else(self):
        target = self.dir / "target"
        for name in ("penstock-probe-mine", "penstock-probe-0123abcd", "other"):
            (target / name).mkdir(parents=True)
            (target / name / "file").write_text("x")
            (target / name / "lock").touch()
            (target / name / ".penstock-tmp-7-1").write_text("of a write that was killed, where there is no O_TMPFILE")
        flags = ("tiers", "--tier", target, "--probe", "--probe-size", "8MiB", "--threads", 1)
        process = self.start(*flags, "--min-time", "1s", "--repeat", "30")
        until = time.monotonic() + penstock_cli.PATIENCE_S
        while time.monotonic() < until and not penstock_cli.present(target, "penstock-probe-*/*-0*"):
            time.sleep(0.05)
        self.assertFalse((target / "penstock-probe-0123abcd").exists())
        (alive,) = [folder for folder in target.glob("penstock-probe-*") if folder.name != "penstock-probe-mine"]
        self.run_cli(*flags, "--min-time", "10ms", "--repeat", 1)
        self.assertTrue(alive.exists(), "another probe lives there")
        process.kill()
        process.communicate(timeout=60)
        self.assertTrue(alive.exists())
        self.assertIn(alive.name, self.run_cli(*flags, "--min-time", "10ms", "--repeat", 1).stderr)
        self.assertEqual(sorted(folder.name for folder in target.iterdir()), ["other", "penstock-probe-mine"])

    def test_a_folder_without_a_lock_belongs_to_the_user_unless_it_is_empty(self):
        target = self.dir / "target"
        for name in ("penstock-probe-0123abcd", "penstock-probe-0123abce"):
            (target / name).mkdir(parents=True)
        (target / "penstock-probe-0123abcd" / "file").write_text("x")
        self.run_cli("tiers", "--tier", target, *self.PROBE, "--threads", 1)
        self.assertEqual([folder.name for folder in target.iterdir()], ["penstock-probe-0123abcd"])

    def test_probe_of_a_full_tier_fails_before_it_writes(self):
        (self.dir / "x").mkdir()
        record, = self.records("tiers", "--tier", f"here=posix:{self.dir}/x,capacity=1MiB", *self.PROBE, "--threads", "1", expect=1)
        self.assertEqual(record["verdict"], "failed")
        self.assertIn("--probe-size", record["reason"])

    def test_probe_with_nonsense_is_wrong_usage(self):
        for flags in (("--threads", "0"), ("--probe-size", "1"), ("--probe-size", "99999999999999999999G"), ("--repeat", "0"),
                      ("--blocks", "0"), ("--blocks", "4k,"), ("--blocks", "1TiB"), ("--depths", "0"), ("--depths", "99999")):
            self.run_cli("tiers", "--tier", self.dir, "--probe", *flags, expect=2)


if __name__ == "__main__":
    penstock_cli.main()
