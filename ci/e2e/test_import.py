"""Records of other tools, and ours in theirs: fio's and Google Benchmark's JSON are read, and Google's compare.py reads ours."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from messages import message
import penstock_cli

PLACES = ("/usr/share/benchmark", "/usr/share/doc/libbenchmark-tools", "/usr/lib/benchmark", "/usr/local/share/googlebenchmark/tools")


def compare_py():
    """Google's tool, as distributions lay it out, or None."""
    on_path = shutil.which("google-benchmark-compare") or shutil.which("compare.py") or shutil.which("benchmark-compare")
    found = [pathlib.Path(on_path)] if on_path else [path for place in PLACES for path in pathlib.Path(place).rglob("compare.py")]
    return found[0] if found else None


class Fio(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("fio"):
            self.skipTest("no fio here")

    def fio(self, *options, form="json"):
        out = self.dir / "peers" / f"fio-{len(list(self.dir.glob('peers/*')))}.json"
        out.parent.mkdir(exist_ok=True)
        done = subprocess.run(["fio", "--name=it", "--size=1m", "--bs=4k", f"--output-format={form}", f"--output={out}", *map(str, options)],
                              cwd=self.dir, capture_output=True, text=True, timeout=120, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return out

    def page_records(self, *where):
        output = json.loads(self.run_cli("report", *where, "--json", "-o", "r.html").stdout)
        return output["records"], output["problems"]

    def test_every_form_of_it_is_read(self):
        for form in ("json", "json+", "normal,json"):
            out = self.fio(f"--directory={self.dir}", "--rw=randrw", "--numjobs=2", form=form)
            self.assertEqual(self.page_records(out), (2, []), form)
        self.assertEqual(self.page_records("peers"), (6, []))

    def test_it_stands_on_the_page_with_its_version(self):
        out = self.fio(f"--filename={self.dir / 'file'}", "--rw=read")
        version = json.loads(out.read_text())["fio version"]
        self.run_cli("report", out, "-o", "r.html")
        self.assertIn(version, (self.dir / "r.html").read_text(encoding="utf-8"))

    def test_a_job_that_fails_is_a_record_that_says_so(self):
        out = self.fio("--filename=/proc/nowhere/file", "--rw=read")
        self.assertEqual(self.page_records(out)[0], 1)
        self.assertIn(message("fio-job-idle"), (self.dir / "r.html").read_text(encoding="utf-8"))


class Google(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.program = pathlib.Path(penstock_cli.BUILD, "benchmarks", "self", "micro", "penstock_microbench")

    def test_our_own_micro_benchmarks_are_read(self):
        if not self.program.exists():
            self.skipTest("penstock_microbench is not built (PENSTOCK_BENCHMARKS)")
        out = self.dir / "micro.json"
        done = subprocess.run([self.program, "--benchmark_filter=histogram_add", "--benchmark_repetitions=3", "--benchmark_min_time=0.001",
                               f"--benchmark_out={out}", "--benchmark_out_format=json"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = {entry["run_name"] for entry in json.loads(out.read_text())["benchmarks"]}
        output = json.loads(self.run_cli("report", out, "--json", "-o", "r.html").stdout)
        self.assertEqual((output["records"], output["problems"]), (len(runs), []))


class Compare(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        if compare_py() is None:
            self.skipTest("Google Benchmark's compare.py is not here (Debian: libbenchmark-tools)")
        if subprocess.run(["/usr/bin/python3", "-c", "import scipy.stats, numpy"], capture_output=True, check=False).returncode != 0:
            self.skipTest("compare.py needs SciPy (Debian: python3-scipy)")
        self.writer = pathlib.Path(penstock_cli.BUILD, "results", "results_test")
        if not self.writer.exists():
            self.skipTest("results_test, which writes the files, is not built")

    def exported(self, name, slower):
        """Five repeats of a read and a wait, that many times as slow, as Google Benchmark's JSON."""
        path = self.dir / name
        subprocess.run([self.writer, "--gtest_filter=ExportGoogle.WritesTheFileOfTheComparison"], check=True, capture_output=True, timeout=60,
                       env={**os.environ, "PENSTOCK_EXPORT": str(path), "PENSTOCK_SLOWER": str(slower)})
        return path

    def test_googles_own_tool_judges_our_files(self):
        base, slow = self.exported("base.json", 1), self.exported("slow.json", 2)
        tool = compare_py()
        out = self.dir / "compared.json"
        done = subprocess.run(["/usr/bin/python3", tool, "-d", out, "benchmarks", base, slow] if tool.suffix == ".py" else [tool, "-d", out, "benchmarks", base, slow],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        compared = {row["name"]: row for row in json.loads(out.read_text()) if row["run_type"] == "iteration"}
        rate = compared["read/disk/threads:4/cache:cold/order:shuffled/payload_bytes_per_s"]
        self.assertEqual([round(each["time"], 3) for each in rate["measurements"]], [1.0] * 5, "half the rate is twice the time")
        wall = compared["read/disk/threads:4/cache:cold/order:shuffled/wall_s"]
        self.assertEqual([round(each["time"], 3) for each in wall["measurements"]], [1.0] * 5)


if __name__ == "__main__":
    penstock_cli.main()
