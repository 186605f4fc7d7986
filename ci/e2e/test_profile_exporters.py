#!/usr/bin/env python3
"""What `profile export` gives to tools that others wrote: Darshan's readers, TensorBoard, Perfetto. Their totals are those of
`profile report --json`. The readers come from PyPI (ci/interop has them); who lacks one skips its tests and says so."""

import functools
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import browser
from messages import message
from penstock_cli import BUILD, SANITIZED, SOURCE, CliTest, main

LIBRARY = BUILD / "libpenstock_profile.so"
READERS = pathlib.Path(__file__).parent / "exporter_readers.py"
MIB = 1 << 20

# Processes and threads that read and write, by descriptors and by streams.
WORKERS = """
import multiprocessing, os, sys, threading
folder = sys.argv[1]
def copy(number):
    for i in range(number, 40, 8):
        descriptor = os.open(f"{folder}/in/{i}", os.O_RDONLY)
        while chunk := os.read(descriptor, 5000):
            with open(f"{folder}/out-{os.getpid()}-{number}", "ab", buffering=0) as out:
                out.write(chunk)
        os.close(descriptor)
def work(number):
    threads = [threading.Thread(target=copy, args=(2 * number + i,)) for i in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
if __name__ == "__main__":
    processes = [multiprocessing.get_context("fork").Process(target=work, args=(i,)) for i in range(4)]
    for process in processes: process.start()
    for process in processes: process.join()
"""


@functools.lru_cache(maxsize=None)
def python_with(module):
    """A Python that has the module: ours, or that of ci/interop."""
    for python in (sys.executable, SOURCE / "build" / "interop" / "bin" / "python"):
        looks = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
        if pathlib.Path(python).exists() and subprocess.run([python, "-c", looks], capture_output=True, check=False).returncode == 0:
            return str(python)
    return None


def needs(module):
    return unittest.skipUnless(python_with(module), f"no Python here has the module {module} (ci/interop fetches it)")


def read_by(module, *words):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([python_with(module), READERS, *map(str, words)], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{words[0]} does not take it: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


class Exporters(CliTest):
    """Each session is made once: of tar, and of several processes and threads; with every call and without."""

    sessions = {}

    @classmethod
    def setUpClass(cls):
        if SANITIZED:
            raise unittest.SkipTest("other people's programs have no sanitizer's runtime")
        if not LIBRARY.exists():
            raise unittest.SkipTest("this build has no profiler")

    def session(self, program, traced):
        folder = self.dir / f"{program}-{'traced' if traced else 'counted'}"
        (self.dir / "in").mkdir(exist_ok=True)
        for i in range(40):
            (self.dir / "in" / str(i)).write_bytes(os.urandom(1) * (500 * i * i + 17))
        (self.dir / "workers.py").write_text(WORKERS, encoding="utf-8")
        words = {"tar": ["tar", "cf", "all.tar", "in"], "workers": ["python3", "workers.py", str(self.dir)]}[program]
        self.run_cli("profile", "run", *(["--trace"] if traced else []), "-o", folder, "--", *words)
        session, *files = [json.loads(line) for line in self.run_cli("profile", "report", folder, "--json").stdout.splitlines()]
        self.assertEqual(session["dropped"], 0)
        self.assertGreater(session["bytes_read"], 5_000_000)
        self.assertGreater(session["bytes_written"], 5_000_000)
        return folder, session, files

    def each_session(self):
        for program in ("tar", "workers"):
            for traced in (False, True):
                yield (*self.session(program, traced), traced)


class Darshan(Exporters):
    def export(self, folder):
        log = folder.with_suffix(".darshan")
        done = self.run_cli("profile", "export", "--to", "darshan", folder, "-o", log)
        return log, done.stderr

    @needs("darshan")
    def test_pydarshan_has_the_reports_totals(self):
        for folder, session, files, traced in self.each_session():
            log, output = self.export(folder)
            self.assertEqual("DXT" in output, not traced, output)
            read = read_by("darshan", "darshan", log)
            self.assertEqual(read["processes"], session["processes"])
            self.assertAlmostEqual(read["run_time"], session["wall_s"], delta=1e-4)
            self.assertIn("tar cf all.tar in" if "tar" in folder.name else "workers.py", read["exe"])
            posix, stdio = read["modules"]["POSIX"]["files"], read["modules"].get("STDIO", {"files": {}})["files"]

            def total(counter):
                return sum(file[f"POSIX_{counter}"] for file in posix.values()) + sum(file[f"STDIO_{counter}"] for file in stdio.values())
            for counter, member in (("BYTES_READ", "bytes_read"), ("BYTES_WRITTEN", "bytes_written"), ("READS", "read_ops"), ("WRITES", "write_ops")):
                self.assertEqual(total(counter), session[member], counter)
            times = [read["modules"][name]["times"] for name in read["modules"]]
            for end, member in (("F_READ_TIME", "read_time_s"), ("F_WRITE_TIME", "write_time_s"), ("F_META_TIME", "meta_time_s")):
                self.assertAlmostEqual(sum(time for module in times for name, time in module.items() if name.endswith(end)), session[member], places=5)
            alone = 0
            for file in files:
                layer = file["layers"]["posix"]
                if not layer:
                    continue
                found = posix[file["path"]]
                self.assertEqual((found["POSIX_BYTES_READ"], found["POSIX_BYTES_WRITTEN"], found["POSIX_OPENS"] - found["POSIX_DUPS"], found["POSIX_STATS"]),
                                 (layer["bytes_read"], layer["bytes_written"], layer["opens"], layer["stats"]), file)
                if file["layers"]["stdio"] or file["layers"]["ring"]:
                    continue
                alone += 1
                self.assertEqual((found["POSIX_SEQ_READS"], found["POSIX_CONSEC_WRITES"]), (file["sequential_reads"], file["consecutive_writes"]), file)
                for name, kind in (("READ", "read_sizes"), ("WRITE", "write_sizes")):
                    self.assertEqual({bucket: found[f"POSIX_SIZE_{name}_{bucket.upper()}"] for bucket in file[kind]}, file[kind], file)
            self.assertGreaterEqual(alone, 41)
            if "workers" in folder.name:
                self.assertGreaterEqual(len(read["modules"]["POSIX"]["ranks"]), 5)
            self.assertEqual(sum(heat["read"] for heat in read["heat"].values()), session["bytes_read"])
            self.assertEqual(sum(heat["write"] for heat in read["heat"].values()), session["bytes_written"])
            segments = read["segments"]
            if traced:
                self.assertEqual((segments["bytes_read"], segments["bytes_written"]),
                                 tuple(sum(file[f"POSIX_{name}"] for file in posix.values()) for name in ("BYTES_READ", "BYTES_WRITTEN")))
                self.assertEqual((segments["reads"], segments["writes"]),
                                 tuple(sum(file[f"POSIX_{name}"] for file in posix.values()) for name in ("READS", "WRITES")))
                self.assertEqual(set(segments["hosts"]), {os.uname().nodename})
                self.assertLessEqual(segments["last_s"], session["wall_s"] + 1e-3)
            else:
                self.assertEqual(segments["reads"] + segments["writes"], 0)

    @needs("darshan")
    def test_pydarshan_draws_its_page(self):
        folder, *_ = self.session("workers", True)
        log, _ = self.export(folder)
        read = read_by("darshan", "darshan-page", log, self.dir / "page.html")
        self.assertEqual(read["exit"], 0, read["said"])
        page = (self.dir / "page.html").read_text(encoding="utf-8")
        for title in ("Heat Map: HEATMAP POSIX", "Heat Map: DXT_POSIX", "I/O Cost", "penstock-"):
            self.assertIn(title, page)

    @unittest.skipUnless(shutil.which("darshan-parser"), "no darshan-parser here")
    def test_darshan_parser_has_the_reports_totals(self):
        for folder, session, _, _ in self.each_session():
            log, _ = self.export(folder)
            text = subprocess.run(["darshan-parser", "--total", "--perf", "--file", log], capture_output=True, text=True, check=True).stdout
            totals = {name: float(value) for name, value in re.findall(r"^total_(\w+): (\S+)$", text, re.MULTILINE)}
            for counter, member in (("BYTES_READ", "bytes_read"), ("BYTES_WRITTEN", "bytes_written"), ("READS", "read_ops"), ("WRITES", "write_ops")):
                self.assertEqual(totals[f"POSIX_{counter}"] + totals.get(f"STDIO_{counter}", 0), session[member], counter)
            moved = sum(int(value) for value in re.findall(r"^# total_bytes: (\d+)$", text, re.MULTILINE))
            self.assertEqual(moved, session["bytes_read"] + session["bytes_written"])
            self.assertTrue(all(float(rate) > 0 for rate in re.findall(r"^# agg_perf_by_slowest: (\S+)", text, re.MULTILINE)), text)

    def test_what_cannot_be_written_is_said(self):
        folder, *_ = self.session("tar", False)
        self.run_cli("profile", "export", "--to", "darshan", folder, expect=2)
        self.run_cli("profile", "export", "--to", "darshan", folder, "-o", "no/such/folder", expect=2)
        self.assertIn("pipe", self.run_cli("profile", "export", "--to", "darshan", folder, "-o", "/dev/stdout", expect=2).stderr)


class TensorBoard(Exporters):
    def export(self, folder):
        logs = folder.with_suffix(".logs")
        done = self.run_cli("profile", "export", "--to", "tensorboard", folder, "-o", logs)
        return logs, done.stderr

    @needs("tensorboard")
    def test_the_accumulator_has_the_reports_totals(self):
        for folder, session, _, traced in self.each_session():
            logs, output = self.export(folder)
            self.assertEqual("--trace" in output, not traced, output)
            read = read_by("tensorboard", "tensorboard", logs)

            def total(tag):
                points = read["scalars"][tag]
                return sum(value for _, _, value in points) * points[0][0] / 1000
            for tag, factor, member in (("bandwidth_MiB_per_s/read", MIB, "bytes_read"), ("bandwidth_MiB_per_s/write", MIB, "bytes_written"),
                                        ("operations_per_s/read", 1, "read_ops"), ("operations_per_s/write", 1, "write_ops")):
                self.assertAlmostEqual(total(tag) * factor / session[member], 1, places=5, msg=tag)
                steps = [step for step, _, _ in read["scalars"][tag]]
                self.assertEqual(steps, sorted(set(steps)))
                self.assertLessEqual(abs(steps[-1] / 1000 - session["wall_s"]), steps[0] / 1000 + 1e-3)
            self.assertGreater(total("operations_per_s/metadata"), 0)
            for tag, member in (("sizes/read", "read_sizes"), ("sizes/write", "write_sizes"), ("sizes/file", "file_sizes")):
                histogram = read["histograms"][tag]
                self.assertEqual([count for count in histogram["counts"] if count], [count for count in session[member].values() if count])
                self.assertEqual(histogram["num"], sum(session[member].values()))
                self.assertEqual(histogram["ends"], sorted(set(histogram["ends"])))
            self.assertEqual(read["histograms"]["sizes/read"]["sum"], session["bytes_read"])
            self.assertIn("Every call was" if traced else "not recorded individually", read["texts"]["summary/session"])
            self.assertIn("all\\.tar" if "tar" in folder.name else "out\\-", read["texts"]["summary/files_most_bytes"])

    @needs("xprof")
    def test_the_profile_plugin_has_a_line_for_each_file(self):
        folder, _, files = self.session("workers", True)
        logs, _ = self.export(folder)
        trace, = logs.glob("plugins/profile/*/*.xplane.pb")
        shutil.copy(trace, self.dir)  # the plugin writes into the trace's folder
        events = read_by("xprof", "trace", self.dir / trace.name)["events"]
        lines = {event["args"]["name"]: (event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
        processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        read = {path["path"] for path in files if path["bytes_read"] and path["path"].startswith(f"{self.dir}/in/")}
        self.assertEqual(len(read), 40)
        self.assertLessEqual(read, set(lines))
        self.assertEqual({processes[lines[path][0]].split(":")[-1] for path in read}, {"files"})
        reads = sum(path["reads"] for path in files if path["path"] in read)
        seen = sum(event["ph"] == "X" and event["name"] == "read" and (event["pid"], event["tid"]) in {lines[path] for path in read} for event in events)
        self.assertEqual(seen, reads)

    def test_an_export_again_replaces_the_first_and_others_stay(self):
        folder, *_ = self.session("tar", True)
        logs, _ = self.export(folder)
        first = sorted(str(path.relative_to(logs)) for path in logs.rglob("*"))
        (logs / "events.out.tfevents.1.of.another").write_bytes(b"")
        self.export(folder)
        again = sorted(str(path.relative_to(logs)) for path in logs.rglob("*"))
        self.assertEqual(again, sorted([*first, "events.out.tfevents.1.of.another"]))
        self.run_cli("profile", "export", "--to", "tensorboard", folder, expect=2)
        self.run_cli("profile", "export", "--to", "tensorboard", folder, "-o", folder / "session.json" / "deep", expect=None)
        self.assertFalse((folder / "session.json" / "deep").exists())

    @needs("tensorboard")
    @unittest.skipUnless(browser.find(), "no Chromium here (ci/bootstrap browser brings it)")
    def test_tensorboard_shows_it(self):
        folder, *_ = self.session("workers", True)
        logs, _ = self.export(folder)
        words = [python_with("tensorboard"), "-m", "tensorboard.main", "--logdir", str(logs), "--port", "0", "--host", "127.0.0.1", "--load_fast=false"]
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        page = None
        try:
            output = ""
            while not (found := re.search(r"http://127\.0\.0\.1:\d+/", output)):
                line = server.stderr.readline()
                self.assertTrue(line, output)
                output += line
            page = browser.Browser(self.dir / "chromium")
            for tab, wanted in (("timeseries", ["bandwidth_MiB_per_s/read", "operations_per_s/write"]), ("histograms", ["sizes/read", "sizes/file"]),
                                ("text", ["summary/session", "value"])):
                page.open(f"{found.group(0)}#{tab}")
                self.shows(page, tab, wanted)
        finally:
            if page:
                page.close()
            server.send_signal(signal.SIGTERM)
            server.communicate()

    def shows(self, page, tab, wanted):
        # All text, that of shadow trees as well.
        words = """(() => { const all = []; const walk = (node) => { if (node.nodeType === 3) all.push(node.data);
            if (node.shadowRoot) walk(node.shadowRoot); for (const child of node.childNodes) walk(child); };
            walk(document.body); return all.join(' '); })()"""
        until = time.monotonic() + 120
        missing = wanted
        while missing and time.monotonic() < until:
            text = page.evaluate(words)
            missing = [word for word in wanted if not all(part in text for part in word.split("/"))]
            time.sleep(0.2)
        self.assertEqual(missing, [], f"{tab}: {text[-2000:]}")


class Chrome(Exporters):
    def test_the_trace_is_what_perfetto_takes(self):
        def no_constant(name):
            raise AssertionError(f"{name} is no JSON")
        for folder, session, files, traced in self.each_session():
            if not traced:
                error = self.run_cli("profile", "export", "--to", "chrome", folder, "-o", "none.json", expect=1).stderr
                for part in (str(folder), "--trace", "--to csv"):
                    self.assertIn(part, error)
                self.assertFalse((self.dir / "none.json").exists())
                continue
            self.run_cli("profile", "export", "--to", "chrome", folder, "-o", "t.json")
            trace = json.loads((self.dir / "t.json").read_bytes().decode("utf-8"), parse_constant=no_constant)
            self.assertEqual(set(trace), {"displayTimeUnit", "traceEvents"})
            calls = {"read": 0, "write": 0}
            for event in trace["traceEvents"]:
                self.assertIn(event["ph"], "XMi")
                self.assertTrue(0 <= event["pid"] < 1 << 32 and 0 <= event["tid"] < 1 << 32, event)
                self.assertIsInstance(event["name"], str)
                if event["ph"] == "M":
                    self.assertIsInstance(event["args"]["name"], str)
                    continue
                self.assertTrue(math.isfinite(event["ts"]) and event["ts"] >= 0, event)
                if event["ph"] == "X":
                    self.assertTrue(math.isfinite(event["dur"]) and event["dur"] >= 0, event)
                if "thread" in event["args"] and event["name"] in calls and event["cat"] in ("posix", "stdio", "ring"):
                    calls[event["name"]] += event["args"]["bytes"]
            self.assertEqual(calls, {"read": session["bytes_read"], "write": session["bytes_written"]})


class Records(CliTest):
    """What reads in the program itself, or in a worker that it starts; and a folder that is only mapped."""

    PROGRAM = """
import mmap, os, sys
folder, workers = sys.argv[1], int(sys.argv[2])
def read(number):
    for i in range(number, 20, max(1, workers)):
        with open(f"{folder}/{i}", "rb", buffering=0) as file:
            while file.read(50000): pass
children = []
for number in range(workers):
    child = os.fork()
    if child == 0:
        read(number)
        os._exit(0)
    children.append(child)
if workers == 0: read(0)
for child in children: os.waitpid(child, 0)
with open(f"{folder}/map/shared", "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    mapped[0]
"""

    def records(self, workers):
        self.run_cli("profile", "run", "-o", f"s{workers}", "--", sys.executable, "-c", self.PROGRAM, self.dir / "data", workers, expect=0)
        self.run_cli("profile", "export", "--to", "records", "--tier", f"map={self.dir}/data/map", "--tier", f"data={self.dir}/data",
                     f"s{workers}", "-o", f"runs{workers}")
        lines = [line for file in (self.dir / f"runs{workers}").iterdir() for line in file.read_text().splitlines()]
        return {record["parameters"]["tier"]: record for record in map(json.loads, lines)}

    def test_a_worker_that_reads_is_other_work_than_the_program_itself(self):
        (self.dir / "data" / "map").mkdir(parents=True)
        (self.dir / "data" / "map" / "shared").write_bytes(os.urandom(300_000))
        for i in range(20):
            (self.dir / "data" / str(i)).write_bytes(os.urandom(200_000))
        found = [self.records(workers) for workers in (0, 1, 2)]
        data = [tiers["data"] for tiers in found]
        self.assertEqual([record["parameters"].get("process_depth", 0) for record in data], [0, 1, 1])
        self.assertEqual([record["parameters"]["threads"] for record in data][:2], [1, 1])
        self.assertEqual({record["verdict"] for record in data}, {"ok"})
        self.run_cli("report", "runs0", "runs1", "-o", "r.html")
        page = (self.dir / "r.html").read_text(encoding="utf-8")
        for record in data[:2]:
            self.assertIn(record["id"], page)
        self.assertNotIn(message("older-rows-left-out"), page)
        for tiers in found:
            mapped = tiers["map"]
            self.assertEqual((mapped["verdict"], "threads" in mapped["parameters"]), ("skipped", False))
            self.assertEqual(mapped["metrics"]["tier_bytes_mapped"]["value"], 300_000)
            self.assertNotIn("payload_bytes_per_s", mapped["metrics"])


if __name__ == "__main__":
    main()
