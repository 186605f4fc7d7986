"""Records of other programs, and ours in theirs: results of seven programs are read, and Google's compare.py reads ours."""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from messages import message
import penstock_cli

SEEDS = penstock_cli.SOURCE / "results" / "fuzz_seeds" / "foreign"
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


class Peers(penstock_cli.CliTest):
    """Results that elbencho, IOR, mdtest, DLIO and warp wrote on our machines; only names of hosts and paths were changed."""

    def setUp(self):
        super().setUp()
        self.results = self.dir / "peers"
        self.results.mkdir()

    def take(self, *names):
        for name in names:
            shutil.copy(SEEDS / name, self.results)
        return self.results

    def rows(self, *where):
        """The rows of the CSV file of all records."""
        shutil.rmtree(self.dir / "csv", ignore_errors=True)
        self.run_cli("report", *where, "--to", "csv", "-o", "csv")
        with open(self.dir / "csv" / "records.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def values(self, where, metric, **parameters):
        """The medians of `metric` in the records that have these parameters."""
        wanted = {name: str(value) for name, value in parameters.items()}
        return [float(row[f"{metric}_median"]) for row in self.rows(where) if row[f"{metric}_median"] and wanted.items() <= row.items()]

    def test_elbencho(self):
        folder = self.take("elbencho_3_1.json", "elbencho_mix.json")
        self.assertEqual(self.values(folder, "payload_bytes_per_s", operation="write", phase="WRITE"), [(412206481 + 322136978) / 2])
        self.assertEqual(self.values(folder, "payload_bytes_per_s", phase="RWMIX70", operation="read"), [166882611])
        self.assertEqual(self.values(folder, "ops_per_s", operation="stat"), [(2053 + 25356) / 2])

    def test_elbencho_csv_and_json_of_one_run_count_once(self):
        json_only = len(self.rows(self.take("elbencho_3_1.json")))
        done = self.run_cli("report", self.take("elbencho_3_1.csv"), "-o", "r.html")
        self.assertIn("6 results", done.stderr)
        self.assertEqual(len(self.rows(self.results)), json_only)
        self.assertEqual(self.values(self.take("elbencho_2_3.csv"), "payload_bytes_per_s", block=1 << 20, phase="READ"), [853 * (1 << 20)])

    def test_ior(self):
        folder = self.take("ior_4_1.json", "ior_direct.json")
        self.assertEqual(self.values(folder, "payload_bytes_per_s", operation="read"), [1827.2849 * (1 << 20)])
        self.assertEqual([(row["ranks"], row["options"], row["payload_bytes_per_s_n"]) for row in self.rows(folder)],
                         [("2", "", "3"), ("2", "", "3"), ("1", "--posix.odirect", "2")])

    def test_mdtest(self):
        folder = self.take("mdtest_4_1.txt", "mdtest_verbose.txt", "mdtest_times.txt")
        self.assertAlmostEqual(self.values(folder, "ops_per_s", operation="directory removal")[0], 3 * 363.227 - 378.477 - 347.657, places=6)
        self.assertEqual(len(self.values(folder, "ops_per_s", operation="file creation")), 3)

    def test_dlio_with_and_without_its_options(self):
        done = self.run_cli("report", self.take("dlio_summary.json"), "-o", "r.html")
        self.assertIn(".hydra/overrides.yaml", done.stderr)
        (self.results / ".hydra").mkdir()
        (self.results / ".hydra" / "overrides.yaml").write_text("- workload=default\n- ++workload.reader.batch_size=4\n")
        [utilization] = self.values(self.results, "au_dlio", operation="train", **{"reader.batch_size": "4"})
        self.assertAlmostEqual(utilization, 0.831030944252928)

    def test_warp(self):
        folder = self.take("warp_1_5.json")
        document = json.loads((folder / "warp_1_5.json").read_text())
        for kind, operation in document["by_op_type"].items():
            throughput = operation["throughput"]
            [rate] = self.values(folder, "ops_per_s", operation=kind)
            self.assertAlmostEqual(rate, throughput["ops"] * 1000 / throughput["measure_duration_millis"])

    def test_two_runs_are_compared_and_other_work_is_not_pooled(self):
        texts = {}
        for name, rate in (("base", 1), ("candidate", 0.5)):
            (self.dir / name).mkdir()
            document = json.loads((SEEDS / "ior_4_1.json").read_text())
            results = document["tests"][0]["Results"]
            results *= 4
            for at, result in enumerate(results):
                result = results[at] = dict(result)
                result["bwMiB"] = 1000 * rate + at % 5
            texts[name] = json.dumps(document)
            (self.dir / name / "ior.json").write_text(texts[name])
        self.assertEqual(len(self.cells(1)), 2)
        other = json.loads(texts["candidate"])
        other["tests"][0]["Parameters"]["transferSize"] *= 2
        (self.dir / "candidate" / "other.json").write_text(json.dumps(other))
        self.assertEqual(len(self.cells(1)), 4, "no cell of the base has the other transfer size")

    def cells(self, expect):
        rows = [json.loads(line) for line in self.run_cli("compare", "base", "candidate", "--json", expect=expect).stdout.splitlines()]
        return {row["cell"] for row in rows if "cell" in row}

    def test_a_folder_where_two_of_five_cannot_be_read(self):
        folder = self.take("ior_4_1.json", "mdtest_4_1.txt", "elbencho_2_3.csv")
        (folder / "x.txt").write_text("IOR-4.1.0: MPI Coordinated Test of Parallel I/O\n")
        (folder / "y.json").write_text("{}\n")
        done = self.run_cli("report", folder, "--json", "-o", "r.html")
        self.assertEqual((json.loads(done.stdout)["records"], json.loads(done.stdout)["problems"]), (2 + 10 + 1, []))
        self.assertRegex(done.stderr, r"2 files .*x\.txt: .*-O summaryFormat=JSON")
        done = self.run_cli("report", folder / "x.txt", "-o", "r.html", expect=1)
        self.assertIn("-O summaryFormat=JSON", done.stderr)


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
