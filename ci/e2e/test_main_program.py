"""The main program: help, versions, exit codes, unknown words, configuration files, launchers."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from messages import message
import penstock_cli
from penstock_cli import tree


class MainProgram(penstock_cli.CliTest):
    def test_no_command_shows_the_overview_and_fails(self):
        done = self.run_cli(expect=2)
        self.assertIn("Commands:", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_help_lists_commands_and_back_ends(self):
        done = self.run_cli("--help")
        for word in ("generate", "read", "train", "report", "demo", "posix", "mem"):
            self.assertRegex(done.stdout, rf"(?m)^  {word}\s")

    def test_version_rows_are_complete(self):
        rows = [json.loads(line) for line in self.run_cli("--version", "--json").stdout.splitlines()]
        self.assertEqual(rows[0]["kind"], "build")
        for row in rows:
            self.assertLessEqual({"kind", "name", "present", "reason"}, row.keys())
            self.assertEqual(row["present"], row["reason"] == "", row)
        names = {(row["kind"], row["name"]) for row in rows if row["present"]}
        for plugin in (("backend", "mem"), ("backend", "posix"), ("command", "read"), ("recipe", "imagenet"),
                       ("format", "files"), ("miniapp", "alexnet")):
            self.assertIn(plugin, names)
        libraries = {row["name"]: row for row in rows if row["kind"] == "library"}
        for name in ("fmt", "cli11", "nlohmann-json", "libjpeg-turbo", "onetbb"):
            self.assertRegex(libraries[name]["version"], r"^\d+(\.\d+)+$", name)
        for name in ("libcurl", "pugixml", "cpp-httplib"):
            self.assertEqual(libraries[name]["present"], "version" in libraries[name], name)
        text = self.run_cli("--version").stdout
        self.assertRegex(text, rf"(?m)^  library +onetbb +present, version {re.escape(libraries['onetbb']['version'])}$")

    @unittest.skipIf(penstock_cli.SANITIZED, "a sanitizer's build is not copied elsewhere")
    def test_version_of_a_program_that_was_copied_alone_names_the_modules_that_are_not_there(self):
        rows = lambda program: {(row["kind"], row["name"]): row for row in map(json.loads, subprocess.run(
            [program, "--version", "--json"], check=True, capture_output=True, text=True).stdout.splitlines())}
        built = rows(penstock_cli.PENSTOCK)
        alone = self.dir / "alone" / "penstock"
        alone.parent.mkdir()
        shutil.copy(penstock_cli.PENSTOCK, alone)
        copied = rows(alone)
        modules = {"mpi": "libpenstock_mpi.so", "onednn": "libpenstock_onednn.so", "hdf5": "penstock_hdf5_filters", "xxhash": "libpenstock_profile.so"}
        missing = {("library", name): file for name, file in modules.items() if built["library", name]["present"]}
        if ("library", "mpi") in missing:
            missing["backend", "mpiio"] = modules["mpi"]
        self.assertTrue(missing)
        for key, row in copied.items():
            self.assertEqual(row["present"], built[key]["present"] and key not in missing, row)
        for key, file in missing.items():
            self.assertIn(message("module-not-there", name=file), copied[key]["reason"])
            self.assertTrue(built[key]["present"])
            shutil.copy(pathlib.Path(penstock_cli.PENSTOCK).with_name(file), alone.parent)
        self.assertEqual(rows(alone), built)

    def test_libraries_are_never_looked_for_in_the_current_folder(self):
        """Anybody may have put one there."""
        done = self.run_cli("--version", env={**os.environ, "LD_DEBUG": "libs"})
        tried = [line.split("trying file=", 1)[1] for line in done.stderr.splitlines() if "trying file=" in line]
        self.assertGreater(len(tried), 3)
        self.assertEqual([path for path in tried if not path.startswith("/")], [])

    def test_an_unknown_command_names_the_nearest(self):
        done = self.run_cli("raed", expect=2)
        self.assertIn(message("did-you-mean", name="read"), done.stderr)

    def test_options_may_stand_before_the_arguments(self):
        self.run_cli("generate", "--samples", 8, "--set", "classes=2", "imagenet", "--out", "data")
        self.run_cli("verify", "--threads", 2, "data")
        self.run_cli("copy", "--to", "copied", "data")
        self.run_cli("read", "--label=a=b", "--tier", "copied", "--threads", 1, "--min-time", "10ms", "data")
        self.run_cli("report", "-o", "x.html", "--title", "T", "penstock-results")
        self.assertIn("T", pathlib.Path(self.dir, "x.html").read_text(encoding="utf-8"))

    def test_a_results_folder_that_cannot_be_written_is_said_before_anything_is_measured(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "data")
        pathlib.Path(self.dir, "file").write_text("no folder", encoding="utf-8")
        done = self.run_cli("read", "data", "--results", "file/runs", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(message("records-not-written", name="file/runs"), done.stderr)
        self.assertEqual(done.stdout, "")
        before = tree(self.dir)
        # Permissions let root make a folder there, and the file system does not.
        for words in (("generate", "imagenet", "--samples", 8, "--out", "other"), ("read", "data"), ("tiers", "--tier", ".", "--probe"),
                      ("train", "alexnet", "--data", "data", "--batch", 4, "--steps", 1)):
            done = self.run_cli(*words, "--results", "/proc/penstock-runs", expect=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message("records-not-written", name="/proc/penstock-runs"), done.stderr)
            self.assertEqual(tree(self.dir), before)

    def test_a_size_for_another_application_is_said(self):
        words = ("--size-for", "unet3d,accelerators=1,memory=1MiB", "--dry-run", "--out", "nowhere")
        self.assertIn(message("config-of-named-recipe", name="unet3d"), self.run_cli("generate", "cifar10", *words).stderr)
        self.assertNotIn(message("config-of-other-recipe"), self.run_cli("generate", "unet3d", "--set", "mean=1MB", *words).stderr)

    def test_two_signals_at_once_ask_once(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "data")
        process = self.start("read", "data,limit=50k", "--duration", "60s", "--threads", 1, "--cache", "asis")
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, err)
        self.assertIn("record: ", err, out)

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.run_cli("--version", stdout=full, expect=1)
        self.assertIn(message("standard-output-failed"), done.stderr)

    def test_a_command_of_one_process_refuses_a_launcher(self):
        done = self.run_cli("describe", "corpus", env={**os.environ, "OMPI_COMM_WORLD_SIZE": "4"}, expect=2)
        self.assertIn(message("launched-as-ranks", n=4), done.stderr)


class Configuration(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        done = self.run_cli("--version", "--json")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        if not any(row["name"] == "yaml-cpp" and row["present"] for row in rows):
            self.skipTest("this build lacks yaml-cpp")

    def write(self, name, text):
        path = pathlib.Path(self.dir, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def test_lists_and_underscores_are_taken_as_people_write_them(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "data")
        self.write("flags.yaml", "threads: [1, 2]\nmin_time: 10ms\nlabel: [a=b, c=d]\n")
        rows = self.records("read", "data", "--config", "flags.yaml", "--repeat", 1)
        self.assertEqual([row["parameters"]["threads"] for row in rows], [1, 2])
        self.assertEqual(rows[0]["label"], {"a": "b", "c": "d"})

    def test_flags_come_from_a_file_and_the_line_wins(self):
        self.write("flags.yaml", "samples: 3\nset: [classes=2]\n")
        made = self.run_cli("generate", "imagenet", "--config", "flags.yaml", "--out", "data", "--dry-run", "--json")
        self.assertEqual(json.loads(made.stdout.splitlines()[0])["samples"], 3)
        made = self.run_cli("generate", "imagenet", "--config", "flags.yaml", "--samples", "5", "--out", "data", "--dry-run",
                            "--json")
        self.assertEqual(json.loads(made.stdout.splitlines()[0])["samples"], 5)

    def test_an_unknown_key_lists_the_valid_ones(self):
        self.write("flags.yaml", "sampels: 3\n")
        done = self.run_cli("generate", "imagenet", "--config", "flags.yaml", "--out", "data", "--dry-run", expect=2)
        self.assertIn(message("did-you-mean", name="samples"), done.stderr)

    def test_the_site_file_is_announced_and_can_be_ignored(self):
        self.write("penstock.yaml", "generate:\n  samples: 4\n")
        made = self.run_cli("generate", "imagenet", "--out", "data", "--dry-run", "--json")
        self.assertEqual(json.loads(made.stdout.splitlines()[0])["samples"], 4)
        self.assertIn("penstock.yaml", made.stderr)
        made = self.run_cli("generate", "imagenet", "--out", "data", "--dry-run", "--json", "--no-config", "--samples", "6")
        self.assertEqual(json.loads(made.stdout.splitlines()[0])["samples"], 6)

    def test_the_nearest_file_that_says_it_counts(self):
        sizes = lambda *words: json.loads(self.run_cli("generate", "imagenet", "--out", "data", "--dry-run", "--json", *words,
                                                       env={**os.environ, "HOME": str(self.dir)}).stdout.splitlines()[0])
        self.write(".config/penstock/penstock.yaml", "generate:\n  samples: 4\n  seed: 5\n")
        self.assertEqual(sizes()["samples"], 4)
        self.write("penstock.yaml", "generate:\n  samples: 6\n")
        both = sizes()
        self.assertEqual((both["samples"], both["seed"]), (6, 5))
        self.write("flags.yaml", "samples: 8\n")
        both = sizes("--config", "flags.yaml")
        self.assertEqual((both["samples"], both["seed"]), (8, 5))

    def test_defaults_are_for_every_command_that_has_them(self):
        self.write("penstock.yaml", "defaults:\n  results: kept\n  label: [who=all]\n  batch: 4\ngenerate:\n  samples: 6\n  label: [who=generate]\n")
        made, = self.records("generate", "imagenet", "--out", "data")
        self.assertEqual((made["label"], made["corpus"]["samples"]), ({"who": "generate"}, 6), "the section of the command is nearer")
        self.run_cli("read", "data", "--threads", 1, "--min-time", "1ms", "--repeat", 1, "--cache", "asis")
        self.assertEqual({path.name.split("-")[1] for path in (self.dir / "kept").iterdir()}, {"generate", "read"})
        self.run_cli("describe", "data")
        self.write("penstock.yaml", "defaults:\n  thraeds: 1\n")
        self.assertIn(message("did-you-mean", name="threads"), self.run_cli("describe", "data", expect=2).stderr)

    def test_a_named_tier_is_one_wherever_a_tier_is(self):
        self.write("penstock.yaml", "tiers:\n  fast: posix:shm/p\n  slow: {spec: 'posix:disk/p', limit: 500MB/s}\n  bb: posix:shm/bb\n  ckpt: posix:disk/ckpt\n")
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "fast")
        self.assertTrue((self.dir / "shm" / "p" / ".penstock" / "manifest").exists())
        self.run_cli("verify", "fast")
        self.run_cli("copy", "fast", "--to", "slow")
        rows = self.records("read", "fast", "--tier", "slow,latency=1ms", "--threads", 1, "--min-time", "1ms", "--repeat", 1, "--cache", "asis")
        self.assertEqual([row["tiers"]["data"]["name"] for row in rows], ["fast", "slow"])
        self.assertEqual([row["tiers"]["data"]["spec"] for row in rows],
                         ["fast=posix:shm/p", "slow=posix:disk/p,limit=500MB/s,latency=1ms"], "what they stand for is in the record")
        row, = self.records("train", "alexnet", "--data", "fast", "--batch", 4, "--steps", 1, "--accelerator", "none", "--checkpoint-every", 1,
                            "--checkpoint-to", "ckpt", "--burst-buffer", "bb", "--payload", "1MiB")
        self.assertEqual({role: facts["spec"].partition("=")[0] for role, facts in row["tiers"].items()},
                         {"data": "fast", "checkpoint": "ckpt", "burst_buffer": "bb"})
        self.run_cli("checkpoint", "ls", "ckpt")

    def test_a_name_goes_before_a_folder_and_the_nearer_file_before_the_other(self):
        home = {**os.environ, "HOME": str(self.dir)}
        self.write(".config/penstock/penstock.yaml", "tiers: {data: ./far, other: ./other}\n")
        self.write("penstock.yaml", "tiers: {data: ./near}\n")
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "data", env=home)
        self.assertTrue((self.dir / "near").exists())
        (self.dir / "data").mkdir()
        done = self.run_cli("describe", "data", env=home)
        self.assertIn(message("folder-needs-dot-slash"), done.stderr)
        done = self.run_cli("describe", "dta", env=home, expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(message("no-tier-of-that-name"), done.stderr)
        done = self.run_cli("describe", "./near", "--no-config", env=home)
        self.assertNotIn("penstock.yaml", done.stderr)
        self.run_cli("describe", "data", "--no-config", env=home, expect=1)

    def test_names_of_tiers_are_told_to_completions(self):
        self.write("penstock.yaml", "tiers: {data: ./near, fast: /dev/shm/p, probe: true}\n")
        self.assertEqual(self.run_cli("--tier-names", env={**os.environ, "HOME": str(self.dir)}).stdout, "data\nfast\n")

    def test_what_is_wrong_in_a_site_file_is_said(self):
        for text, expected in (("tiers: {fast: here}", "needs BACKEND:PATH"), ("launcher: mpirun -n 4", "{ranks}"), ("tiers: {prob: true}", "prob")):
            self.write("penstock.yaml", text)
            output = self.run_cli("generate", "--list", expect=2).stderr
            self.assertIn(expected, output)
            self.assertIn("penstock.yaml", output)

    def test_help_is_asked_for_in_any_way(self):
        for words in (("help", "read"), ("--help", "read"), ("-h", "read"), ("read", "-h")):
            self.assertIn(message("help-usage-read"), self.run_cli(*words).stdout)

    def test_help_explains_terms(self):
        """The glossary is in the program: the folder of the test has no docs."""
        for words, name in ((("p99",), "percentile"), (("AU",), "accelerator utilization (AU)"), (("Epochs",), "epoch"),
                            (("queue", "depth"), "queue depth"), (("queue-depths",), "queue depth"), (("percentile",), "percentile")):
            with self.subTest(words=words):
                done = self.run_cli("help", *words)
                self.assertTrue(done.stdout.startswith(f"{name}: "), done.stdout)

    def test_a_command_comes_before_a_term_of_its_name(self):
        for command in ("checkpoint", "sweep"):
            done = self.run_cli("help", command)
            self.assertTrue(done.stdout.startswith(f"penstock {command}: "))
            self.assertRegex(done.stdout, rf"\n{command}: [A-Z].*\n$")
            self.assertEqual(self.run_cli(command, "--help").stdout, done.stdout)

    def test_help_lists_commands_and_terms(self):
        text = self.run_cli("help").stdout
        self.assertRegex(text, r"(?m)^  read\s")
        for term in ("burst buffer", "percentile", "staging plan"):
            self.assertRegex(text, rf"\b{term}\b")
        self.assertLessEqual(max(map(len, text.splitlines())), 130)

    def test_an_unknown_term_exits_2_with_the_nearest(self):
        done = self.run_cli("help", "percentil", expect=2)
        self.assertIn("percentile", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("report", self.run_cli("help", "reprot", expect=2).stderr)

    def test_options_of_fio_mean_the_same(self):
        self.run_cli("generate", "imagenet", "--numjobs", 1, "--samples", 8, "--set", "median=8KB", "--out", "data")
        read = ("read", "data", "--no-baseline", "--no-ceiling", "--repeat", 1, "--cache", "asis")
        line = self.records(*read, "--bs", "4k", "--numjobs", "1,2", "--iodepth", 2, "--runtime", "0.1")
        self.write("read.yaml", "bs: 4k\nnumjobs: [1, 2]\niodepth: 2\nruntime: 0.1\n")
        for records in (line, self.records(*read, "--config", "read.yaml")):
            self.assertEqual([record["parameters"]["threads"] for record in records], [1, 2])
            for record in records:
                self.assertEqual([record["parameters"][name] for name in ("block", "depth", "duration_s")], [4096, 2, 0.1])
                self.assertFalse({"bs", "numjobs", "iodepth", "runtime"} & record["parameters"].keys())
        self.assertIn("--bs", self.run_cli(*read, "--bs", "4k", "--block", "8k", expect=2).stderr)
        self.assertIn("--duration", self.run_cli(*read, "--duration", "3", expect=2).stderr)
        self.write("sweep.yaml", "name: s\ncommand: read\nnouns: [data]\nfixed: {runtime: 0.1, repeat: 1, cache: asis, no-baseline: true, "
                                 "no-ceiling: true}\ngrid: {numjobs: [1, 2]}\n")
        rows = [json.loads(row) for row in self.run_cli("sweep", "sweep.yaml", "--json").stdout.splitlines()]
        cells = [row for row in rows if row["kind"] == "cell"]
        self.assertEqual([row["cell"] for row in cells], ["threads=1", "threads=2"])
        self.assertGreater(cells[0]["throughput_bytes_per_s"], 0)

    def test_flags_of_other_tools_lead_to_the_option(self):
        for flag, option in (("--rw=randread", "--order"), ("--iterations", "--repeat"), ("-t", "--block"), ("--ioengine", "--tier")):
            self.assertIn(option, self.run_cli("read", "data", flag, "4", expect=2).stderr)

    def test_broken_files_are_named(self):
        self.write("penstock.yaml", "raed:\n  threads: 1\n")
        self.assertIn(message("did-you-mean", name="read"), self.run_cli("generate", "--list", expect=2).stderr)
        self.write("penstock.yaml", "read: [\n")
        self.assertIn("penstock.yaml", self.run_cli("generate", "--list", expect=2).stderr)
        self.run_cli("generate", "--list", "--config", "nowhere.yaml", expect=2)
        os.unlink(self.dir / "penstock.yaml")
        for name, text, words in (("no.yaml", None, "No such file"), ("here", None, "is a folder"), ("bad.yaml", "threads: [\n", "line"),
                                  ("key.yaml", "thraeds: 1\n", "threads"), ("value.yaml", "threads: many\n", "many")):
            (self.dir / "here").mkdir(exist_ok=True)
            if text:
                self.write(name, text)
            output = self.run_cli("read", "data", "--config", name, expect=2).stderr
            self.assertIn(name, output)
            self.assertIn(words, output)


if __name__ == "__main__":
    penstock_cli.main()
