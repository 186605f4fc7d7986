"""Results of other programs and of other work: each is read or named, each has its row, and its figures are in the CSV files."""

import csv
import json
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
