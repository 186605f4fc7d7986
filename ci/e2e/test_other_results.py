"""Results of other programs and of other work: each is read or named, each has its row, and its figures are in the CSV files."""

import csv
import json
import os
import re

from other_formats import benchmark_result, fio_result
import penstock_cli

QUICK = ("--threads", 1, "--min-time", "10ms", "--repeat", 1, "--no-baseline", "--no-ceiling", "--results", "res")
NOT_A_NUMBER = ("nan", "-nan", "NaN", "-NaN", "inf", "-inf")


class OtherResults(penstock_cli.CliTest):
    def page(self, *names):
        """What `report` says it read: records and problems."""
        done = self.run_cli("report", *names, "--json", "-o", "r.html")
        return json.loads(done.stdout), done.stderr

    def csv_numbers(self, *names):
        """All numbers in the CSV files of a report."""
        self.run_cli("report", *names, "--to", "csv", "-o", "csv")
        numbers = []
        for file in (self.dir / "csv").rglob("*.csv"):
            with open(file, encoding="utf-8", newline="") as rows:
                for cell in (cell for row in csv.reader(rows) for cell in row):
                    try:
                        numbers.append(float(cell))
                    except ValueError:
                        pass
        return numbers

    def assert_has_rate(self, numbers, bytes_per_s):
        self.assertTrue(any(abs(number * unit / bytes_per_s - 1) < 1e-3 for number in numbers for unit in (1, 1e6, 1 << 20)), bytes_per_s)

    def test_numbers_that_are_none(self):
        for number in NOT_A_NUMBER:
            for make, records in ((fio_result, 1), (benchmark_result, None)):
                with self.subTest(number, make=make.__name__):
                    (self.dir / "a.json").write_text(make(number))
                    (self.dir / "usual.json").write_text(make())
                    read = self.page("a.json")[0]
                    self.assertEqual((read["records"], read["problems"]), (self.page("usual.json")[0]["records"], []))
                    self.assertGreater(read["records"], 0)
                    if records:
                        self.assertEqual(read["records"], records)

    def test_a_result_that_is_cut_is_named(self):
        (self.dir / "d").mkdir()
        for name, make in (("fio", fio_result), ("google", benchmark_result)):
            whole = make()
            (self.dir / "d" / f"{name}.json").write_text(whole)
            for part in (20, 400, len(whole) - 3):
                (self.dir / "d" / f"{name}-{part}.json").write_text(whole[:part])
        read, err = self.page("d")
        self.assertGreater(read["records"], 1)
        for name in (f"{name}-{part}.json" for name in ("fio", "google") for part in (20, 400)):
            self.assertIn(name, json.dumps(read) + err)

    def test_a_folder_with_other_things_in_it(self):
        (self.dir / "d" / "folder.json").mkdir(parents=True)
        os.mkfifo(self.dir / "d" / "pipe.json")
        (self.dir / "d" / "UPPER.JSON").write_text(fio_result())
        read, err = self.page("d")
        self.assertEqual((read["records"], len(read["problems"])), (1, 1))
        self.assertIn("pipe.json", err)
        self.assertNotIn("this machine does not report", " ".join(read["sentences"]))

    def test_what_fio_and_shells_put_around_its_json(self):
        fio = fio_result().encode()
        around = {
            "errors before": b"fio: io_u error on file /dev/sdb: Input/output error: read offset=1, buflen=4096\nfio: pid=1, err=5/file\n" + fio,
            "text after": fio + b"\nRun status group 0 (all jobs):\n   READ: bw=100MiB/s\n",
            "status interval": fio_result(read={**json.loads(fio_result())["jobs"][0]["read"], "io_bytes": 1 << 30, "early": 1}).encode() + fio + fio,
            "same keys": fio.replace(b'"50.000000": 900,', b'"0.00": 0, "0.00": 0, "50.000000": 900,'),
            "byte order mark": b"\xef\xbb\xbf" + fio,
        }
        for name, text in around.items():
            with self.subTest(name):
                (self.dir / "a.json").write_bytes(text)
                read, _ = self.page("a.json")
                self.assertEqual((read["records"], read["problems"]), (1, []))
                self.assert_has_rate(self.csv_numbers("a.json"), (10 << 30) // 10)
        (self.dir / "a.json").write_text(fio_result(), encoding="utf-16")
        self.assertIn("iconv -f UTF-16", self.run_cli("report", "a.json", "-o", "r.html", expect=1).stderr)

    def test_several_objects_in_one_file(self):
        both = [fio_result(jobname=name, read={**json.loads(fio_result())["jobs"][0]["read"], "bw_bytes": rate}) for name, rate in (("a", 3000), ("b", 4000))]
        one_a_line = "".join(json.dumps(json.loads(one)) + "\n" for one in both)
        for name, text in {"concatenated": "".join(both), "one a line": one_a_line, "array": "[" + ",".join(both) + "]"}.items():
            with self.subTest(name):
                (self.dir / "a.json").write_text(text)
                read, _ = self.page("a.json")
                self.assertEqual((read["records"], read["problems"]), (2, []))
                for rate in (3000, 4000):
                    self.assert_has_rate(self.csv_numbers("a.json"), rate)
        (self.dir / "a.json").write_text(both[0] + both[1][:300])
        read, err = self.page("a.json")
        self.assertEqual((read["records"], len(read["problems"])), (1, 1))
        self.assertIn("at the end", err)

    def test_latencies_that_fio_did_not_measure_are_absent(self):
        none = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "percentile": {"50.000000": 0, "99.000000": 0}}
        (self.dir / "a.json").write_text(fio_result(read={**json.loads(fio_result())["jobs"][0]["read"], "clat_ns": none}))
        self.run_cli("report", "a.json", "--to", "csv", "-o", "csv")
        text = "".join(file.read_text(encoding="utf-8") for file in (self.dir / "csv").rglob("*.csv"))
        self.assertIn("payload_bytes_per_s", text)
        self.assertNotIn("latency_ns", text)

    def test_rows_of_google_benchmark_that_are_no_measurement(self):
        whole = json.loads(benchmark_result())
        of_x = {"run_name": "BM_x", "run_type": "aggregate", "repetitions": 1, "threads": 1, "time_unit": "ns"}
        whole["benchmarks"] += [{"name": "BM_x_BigO", "aggregate_name": "BigO", "cpu_coefficient": 0.3, "real_coefficient": 0.3, "big_o": "N^2", **of_x},
                                {"name": "BM_x_RMS", "aggregate_name": "RMS", "rms": 0.02, **of_x}]
        (self.dir / "a.json").write_text(json.dumps(whole))
        self.assertEqual(self.page("a.json")[0]["records"], 1)
        for verdict, fields in {"failed": {"error_occurred": True, "error_message": "no device"}, "skipped": {"skipped": True, "skip_message": "no device"}}.items():
            bad = {"name": "BM_bad", "run_name": "BM_bad", "run_type": "iteration", "iterations": 0, "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"}
            (self.dir / "a.json").write_text(json.dumps({**whole, "benchmarks": [{**bad, **fields}]}))
            read, _ = self.page("a.json")
            self.assertEqual(read["records"], 1)
            self.assertRegex(" ".join(read["sentences"]), f"{verdict}.*no device")

    def test_csv_has_what_fio_measured(self):
        (self.dir / "a.json").write_text(fio_result())
        self.assert_has_rate(self.csv_numbers("a.json"), (10 << 30) // 10)

    def test_csv_has_what_a_probe_measured(self):
        (self.dir / "probed").mkdir()
        [record] = self.records("tiers", "--tier", f"x={self.dir}/probed", "--probe", "--threads", 1, "--probe-size", "2MiB", "--blocks", "4KiB",
                                "--depths", 1, "--min-time", "10ms", "--repeat", 1, "--cache", "asis", "--results", "res")
        self.assert_has_rate(self.csv_numbers("res"), record["metrics"]["read.random.4k.1.bytes_per_s"]["value"])

    def test_work_that_differs_in_one_option_has_its_own_row(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--seed", 1, "--set", "median=20000", "--out", "pics")
        pairs = {"window": (("--order", "physical", "--window", 64), ("--order", "physical", "--window", 1024)), "verify": ((), ("--verify",))}
        for name, both in pairs.items():
            with self.subTest(name):
                rates = [self.records("read", "pics", *QUICK, *options)[0]["metrics"]["payload_bytes_per_s"]["value"] for options in both]
                read, err = self.page("res")
                self.assertIsNone(re.search("older run", json.dumps(read) + err))
                numbers = self.csv_numbers("res")
                for rate in rates:
                    self.assert_has_rate(numbers, rate)


if __name__ == "__main__":
    penstock_cli.main()
