#!/usr/bin/env python3
"""Thousands are grouped by commas where people read: in tables on a terminal, in HTML and Markdown. Never in what programs read."""

import json
import os
import pty
import re
import subprocess
import unittest

import penstock_cli

GROUPED = re.compile(r"\d,\d{3}\b")
BLANK_GROUPED = re.compile(r"(?<![\d:.-])\d{1,3} \d{3}(?![\d:-])")


class Digits(penstock_cli.CliTest):
    def on_terminal(self, *words):
        """What the program prints on a terminal as its standard output."""
        leader, follower = pty.openpty()
        process = subprocess.Popen([penstock_cli.PENSTOCK, *map(str, words)], cwd=self.dir, stdout=follower, stderr=subprocess.DEVNULL)
        os.close(follower)
        text = b""
        try:
            while piece := os.read(leader, 65536):
                text += piece
        except OSError:  # the program has ended
            pass
        os.close(leader)
        self.assertEqual(process.wait(), 0)
        return text.decode().replace("\r\n", "\n")

    def setUp(self):
        super().setUp()
        self.run_cli("generate", "imagenet", "--samples", 1500, "--seed", 1, "--set", "median=4KB", "--out", "data")

    def test_a_table_has_commas_on_a_terminal_and_none_in_a_pipe(self):
        self.assertIn("1,500", self.on_terminal("describe", "data"))
        piped = self.run_cli("describe", "data").stdout
        self.assertIn("1500", piped)
        self.assertNotRegex(piped, GROUPED)
        self.assertNotRegex(piped, BLANK_GROUPED)

    def test_json_and_records_have_none_even_on_a_terminal(self):
        for line in self.on_terminal("describe", "data", "--json").splitlines():
            json.loads(line)
        self.assertNotRegex(self.on_terminal("describe", "data", "--json"), GROUPED)

    def test_columns_of_a_piped_table_stay_one_word(self):
        """awk '{print $3}' reads the whole number."""
        done = self.run_cli("read", "data", "--threads", "1", "--min-time", "30ms", "--repeat", "1", "--no-baseline", "--no-ceiling",
                            "--cache", "asis", "--results", "r")
        titles, row = [line for line in done.stdout.splitlines() if re.match(r"(tier|\S+ +1 )", line)][:2]
        self.assertGreater(float(row.split()[2]), 999, titles)
        table = self.on_terminal("read", "data", "--threads", "1", "--min-time", "30ms", "--repeat", "1", "--no-baseline", "--no-ceiling",
                                 "--cache", "asis", "--results", "r")
        self.assertRegex(table, GROUPED)

    def test_pages_have_commas_and_csv_has_none(self):
        self.run_cli("read", "data", "--threads", "1,2", "--min-time", "30ms", "--repeat", "1", "--no-baseline", "--no-ceiling", "--cache", "asis")
        done = self.run_cli("report", "-o", "page.html")
        page = (self.dir / "page.html").read_text(encoding="utf-8")
        self.assertIn("1,500 samples", page)
        self.assertNotRegex(done.stdout, GROUPED)
        self.run_cli("report", "--to", "csv", "-o", "tables")
        for file in (self.dir / "tables").iterdir():
            for line in file.read_text(encoding="utf-8").splitlines():
                self.assertNotRegex(line, r'"\d{1,3}(,\d{3})+(\.\d+)?"', file)

    def test_error_messages_have_none(self):
        err = self.run_cli("generate", "imagenet", "--samples", 900000000, "--out", "huge", expect=None).stderr
        self.assertNotRegex(err, GROUPED)
        self.assertNotRegex(err, BLANK_GROUPED)


if __name__ == "__main__":
    unittest.main(verbosity=2)
