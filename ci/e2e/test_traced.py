"""Tiers with times=1 and trace=FILE: the times of each call in records, and a trace that viewers open."""

import json
import os
import pathlib
import shutil
import subprocess

from messages import message
import penstock_cli

QUICK = ("--min-time", "30ms", "--repeat", "2", "--threads", "2", "--no-ceiling", "--no-baseline", "--progress", "never")


class Traced(penstock_cli.CliTest):
    def corpus(self):
        folder = self.dir / "photos"
        for name, size in (("a", 1000), ("b\n\"c\"", 2000), ("d\xe9", 3000)):
            file = folder / "class" / f"{name}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(os.urandom(size))
        self.run_cli("describe", "photos", "--scan", "--checksum", "--save", "manifest")

    def read(self, tier, *args):
        return self.records("read", tier, "--manifest", "manifest", *args, *QUICK)

    def test_each_repeat_has_its_calls(self):
        self.corpus()
        for depth in (1, 4):
            record, = self.read("posix:photos,latency=1ms,times=1", "--depth", depth)
            self.assertEqual(record["verdict"], "ok", record["reason"])
            metrics = record["metrics"]
            samples = [round(rate * wall) for rate, wall in zip(metrics["samples_per_s"]["samples"], metrics["wall_s"]["samples"])]
            self.assertEqual(metrics["calls.read_object"]["samples"], samples, "of the repeat and of nothing else")
            for name in ("call_ns_p50.read_object", "call_ns_p99.read_object", "call_ns_p999.read_object"):
                self.assertGreaterEqual(min(metrics[name]["samples"]), 1e6, "what the caller waits for")
            call = record["tiers"]["data"]["calls"]["read_object"]
            self.assertGreaterEqual(call["count"], sum(samples) + 3, "with the warm-up pass")
            self.assertEqual((call["count"] - sum(samples)) % 3, 0, "and with whole passes for the time plan")
            self.assertEqual((call["errors"], call["bytes"]), (0, call["count"] // 3 * 6000))
            self.assertGreaterEqual(call["total_s"], 1e-3 * call["count"])

    def test_a_trace_holds_every_call(self):
        self.corpus()
        record, = self.read("posix:photos,trace=trace.json", "--depth", 2)
        trace = json.loads((self.dir / "trace.json").read_text(encoding="utf-8"))
        self.assertEqual(trace["otherData"]["calls_left_out"], "0")
        reads = [event for event in trace["traceEvents"] if event["name"] == "read_object"]
        self.assertEqual(len(reads), record["tiers"]["data"]["calls"]["read_object"]["count"])
        self.assertEqual({(event["args"]["object"], event["args"]["bytes"]) for event in reads},
                         {("class/a.jpg", 1000), ("class/b\n\"c\".jpg", 2000), ("class/d\xe9.jpg", 3000)})
        lanes = {}
        for event in reads:
            self.assertEqual(event["ph"], "X")
            lanes.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
        for spans in lanes.values():  # of one place no two calls overlap
            spans.sort()
            for (_, end), (begin, _) in zip(spans, spans[1:]):
                self.assertLessEqual(end, begin + 0.002)

    def test_what_writes_is_traced_too(self):
        record, = self.records("generate", "imagenet", "--samples", 5, "--out", "posix:made,trace=made.json")
        events = json.loads((self.dir / "made.json").read_text(encoding="utf-8"))["traceEvents"]
        published = [event["args"]["object"] for event in events if event["name"] == "publish"]
        self.assertEqual(len([name for name in published if name.endswith(".JPEG")]), 5)
        written = sum(event["args"]["bytes"] for event in events if event["name"] == "write" and event["args"]["object"].endswith(".JPEG"))
        self.assertEqual(written, sum(file.stat().st_size for file in (self.dir / "made").rglob("*.JPEG")))
        self.assertEqual(record["tiers"]["data"]["calls"]["publish"]["count"], len(published))

    def test_training_has_its_calls(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "made")
        record, = self.records("train", "alexnet", "--data", "posix:made,times=1", "--batch", 4, "--steps", 2)
        self.assertGreaterEqual(record["tiers"]["data"]["calls"]["read_object"]["count"], 8)

    def test_faults_are_named(self):
        self.corpus()
        self.run_cli("read", "posix:photos,fail=read:eio@#2,trace=trace.json", "--manifest", "manifest", *QUICK, expect=1)
        events = json.loads((self.dir / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
        self.assertEqual([event["args"]["error"] for event in events if "error" in event["args"]], ["io"])

    def test_a_trace_that_cannot_be_written(self):
        self.corpus()
        done = self.run_cli("read", "posix:photos,trace=none/trace.json", "--manifest", "manifest", *QUICK, expect=1)
        self.assertIn("none/trace.json", done.stderr)

    def test_two_tiers_have_two_traces(self):
        self.corpus()
        done = self.run_cli("read", "posix:photos,trace=trace.json", "--manifest", "manifest", "--tier", "b=posix:photos,trace=trace.json",
                            *QUICK, expect=1)
        self.assertIn(message("trace-of-another-tier", name="trace.json"), done.stderr)

    def test_ranks_write_one_each_and_are_counted_together(self):
        module = pathlib.Path(penstock_cli.PENSTOCK).resolve().parent / "libpenstock_mpi.so"
        if penstock_cli.SANITIZED or shutil.which("mpirun") is None or not module.exists():
            self.skipTest("needs mpirun and a build with the MPI module")
        self.corpus()
        done = subprocess.run(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", "2", penstock_cli.PENSTOCK, "read",
                               "posix:photos,trace=trace.json", "--manifest", "manifest", *QUICK, "--json"],
                              capture_output=True, text=True, cwd=self.dir, check=False, timeout=penstock_cli.PATIENCE_S,
                              env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        metrics = json.loads(done.stdout)["metrics"]
        samples = [round(rate * wall) for rate, wall in zip(metrics["samples_per_s"]["samples"], metrics["wall_s"]["samples"])]
        self.assertEqual(metrics["calls.read_object"]["samples"], samples)
        for rank in (0, 1):
            events = json.loads((self.dir / f"trace.json.{rank}").read_text(encoding="utf-8"))["traceEvents"]
            self.assertEqual({event["pid"] for event in events}, {rank})


if __name__ == "__main__":
    penstock_cli.main()
