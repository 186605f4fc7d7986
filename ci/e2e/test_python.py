"""The Python module penstock_io: it reads records as the program does, runs the program, and marks steps and windows for the profiler."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest
import warnings

import penstock_cli

MODULE = penstock_cli.SOURCE / "ci" / "packaging" / "python"
sys.path.insert(0, str(MODULE))
os.environ["PENSTOCK"] = str(penstock_cli.PENSTOCK)
import penstock_io as penstock  # noqa: E402: it is found by the lines above

KEPT = penstock_cli.SOURCE / "ci" / "e2e" / "kept_records"


class Records(penstock_cli.CliTest):
    def read(self, path):
        """The records of a path, and the text of the one warning or ''."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = penstock.records(path)
        self.assertLessEqual(len(caught), 1)
        return found, str(caught[0].message) if caught else ""

    def test_a_file_a_folder_and_a_list_give_what_json_prints(self):
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "data", "--results", "elsewhere")
        printed = self.records("read", "data", "--threads", "1,2", "--min-time", "10ms", "--results", "r")
        file, = (self.dir / "r").iterdir()
        for path in (file, str(file), self.dir / "r", [file]):
            self.assertEqual(self.read(path), (printed, ""))
        self.assertEqual(len(self.read([file, self.dir / "r", self.dir / "elsewhere"])[0]), 5)
        (self.dir / "r" / "folder.jsonl").mkdir()
        (self.dir / "r" / ".hidden.jsonl").write_text("x", encoding="utf-8")
        found, warning = self.read(self.dir / "r")
        self.assertEqual(found, printed)
        self.assertIn("left out: 1, the first ", warning)
        self.assertIn("folder.jsonl", warning)
        with self.assertRaises(FileNotFoundError):
            penstock.records(self.dir / "none")

    def test_lines_that_are_damaged_missing_or_foreign_are_counted_and_the_first_is_named(self):
        lines = (KEPT / "read.jsonl").read_bytes().splitlines()
        self.assertGreaterEqual(len(lines), 2)
        file = self.dir / "x.jsonl"

        def left_out(*kept):
            file.write_bytes(b"\n".join(kept))
            return self.read(file)

        whole, warning = left_out(*lines)
        self.assertEqual((whole, warning), (penstock_cli.stored(KEPT / "read.jsonl"), ""))
        found, warning = left_out(lines[0].replace(b'"verdict":"ok"', b'"verdict":"no"'), *lines[1:])
        self.assertEqual(found, whole[1:])
        self.assertIn(f"left out: 1, the first {file}:1: changed since it was written", warning)
        for kept, first in ((lines[1:], "the first 1"), (lines[:-1], f"the first {len(lines)}")):
            found, warning = left_out(*kept)
            self.assertEqual(len(found), len(lines) - 1)
            self.assertIn(f"missing of the {len(lines)} of a run: 1, {first}", warning)
        found, warning = left_out(*lines, lines[0][:200], b"\xff\x00", b"[1, 2]", b'{"schema": 7}', b'{"a":' * 100000)
        self.assertEqual(found, whole)
        self.assertIn(f"left out: 5, the first {file}:{len(lines) + 1}: ", warning)
        unsealed = json.dumps({**whole[0], "metrics": {"m": {"value": None, "samples": [None], "unit": "1", "better": "lower", "per": "run"}}}).encode()
        self.assertEqual(left_out(unsealed)[1], "")
        self.assertEqual(left_out(), ([], ""))
        self.assertEqual(left_out(*lines[:1] * 2)[0], whole[:1] * 2)  # two files that were joined
        found, warning = left_out(b"{", b'"fio version": "fio-3.33",', b"}")
        self.assertEqual(found, [])
        self.assertIn("left out: 1, ", warning)
        self.assertIn("`penstock report` also reads results of other tools", warning)

    @unittest.skipIf(importlib.util.find_spec("pandas"), "pandas is installed: cli.wheel makes frames")
    def test_without_pandas_a_frame_names_the_remedy(self):
        with self.assertRaisesRegex(ImportError, "pip install pandas"):
            penstock.records(KEPT / "read.jsonl", as_frame=True)
        self.assertTrue(penstock.records(KEPT / "read.jsonl"))


class Run(penstock_cli.CliTest):
    def test_it_returns_the_records_of_the_run(self):
        made = penstock.run(["generate", "imagenet", "--samples", 8, "--out", self.dir / "data"], cwd=self.dir)
        self.assertEqual([record["command"] for record in made], ["generate"])
        rows = penstock.run(["read", "data", "--threads", "1,2", "--min-time", "10ms", "--json", "--results", "r"], cwd=self.dir)
        self.assertEqual([row["parameters"]["threads"] for row in rows], [1, 2])
        self.assertEqual(penstock.records(self.dir / "r"), rows)

    def test_a_failure_raises_with_the_text_of_stderr_and_what_was_measured(self):
        with self.assertRaises(penstock.PenstockError) as caught:
            penstock.run(["raed", "data"], cwd=self.dir)
        self.assertEqual(caught.exception.returncode, 2)
        self.assertIn("'read'", str(caught.exception))
        self.assertEqual(caught.exception.records, [])
        penstock.run(["generate", "imagenet", "--samples", 8, "--out", "data"], cwd=self.dir)
        next(path for path in sorted((self.dir / "data").rglob("*")) if path.is_file() and ".penstock" not in path.parts).unlink()
        with self.assertRaises(penstock.PenstockError) as caught:
            penstock.run(["read", "data", "--min-time", "10ms", "--threads", 1], cwd=self.dir)
        self.assertEqual(caught.exception.returncode, 1)
        self.assertEqual([record["verdict"] for record in caught.exception.records], ["failed"])
        self.assertIn(caught.exception.stderr.strip(), str(caught.exception))

    def test_what_comes_after_two_dashes_is_not_touched(self):
        tool = self.dir / "tool"
        tool.write_text('#!/bin/sh\nfor word; do printf \'{"word":"%s"}\\n\' "$word"; done\n', encoding="utf-8")
        tool.chmod(0o755)
        os.environ["PENSTOCK"] = str(tool)
        self.addCleanup(os.environ.__setitem__, "PENSTOCK", str(penstock_cli.PENSTOCK))
        words = lambda *arguments: [row["word"] for row in penstock.run(arguments)]
        self.assertEqual(words("profile", "run", "--", "x", "--json"), ["profile", "run", "--json", "--", "x", "--json"])
        self.assertEqual(words("read", "--json", 3), ["read", "--json", "3"])

    def test_the_module_runs_as_the_program_does(self):
        done = subprocess.run([sys.executable, "-m", "penstock_io", "--version"], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": str(MODULE)})
        self.assertEqual(done.stdout, self.run_cli("--version").stdout)
        done = subprocess.run([sys.executable, "-m", "penstock_io", "raed"], capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(MODULE)})
        self.assertEqual(done.returncode, 2)


@unittest.skipIf(penstock_cli.SANITIZED, "Python has no sanitizer's runtime")
@unittest.skipUnless(pathlib.Path(penstock_cli.PENSTOCK).with_name("libpenstock_profile.so").exists(), "this build has no profiler")
class StepsAndWindows(penstock_cli.CliTest):
    SCRIPT = textwrap.dedent("""
        import sys
        import penstock_io as penstock
        read = lambda: open(sys.argv[1], "rb").read()
        session = sys.argv[2] or None
        try:
            with penstock.step():
                raise KeyError
        except KeyError:
            pass
        for _ in range(4):
            with penstock.step():
                read()
        with penstock.window("validation", session=session):
            for _ in range(3): read()
            try:
                with penstock.window("another", session=session): pass
            except OSError as busy:
                print("refused", busy.errno)
        read()
    """)

    def run_script(self, *before, session=""):
        (self.dir / "data").write_bytes(b"x" * 5000)
        done = subprocess.run([*before, sys.executable, "-c", self.SCRIPT, self.dir / "data", session], capture_output=True, text=True, cwd=self.dir, check=False,
                              env={**os.environ, "PYTHONPATH": str(MODULE)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def windows(self, session):
        rows = [json.loads(line) for line in self.run_cli("profile", "report", "--json", "--all", "--by", "window", session).stdout.splitlines()]
        return [row["label"] for row in rows if row.get("kind") == "window"]

    def test_without_a_profiler_they_do_nothing(self):
        self.assertEqual(self.run_script(), "")
        self.assertEqual([path.name for path in self.dir.iterdir()], ["data"])

    def test_steps_and_a_window_of_a_watched_program(self):
        self.assertEqual(self.run_script(penstock_cli.PENSTOCK, "profile", "run", "--every", "2", "-o", "s", "--"), "refused 114\n")
        labels = [label for label in self.windows("s") if label]
        self.assertEqual(labels[:2], ["steps 0 to 1", "steps 2 to 3"])
        self.assertIn("validation", labels)

    def test_a_window_with_a_session_records_a_program_that_is_not_watched(self):
        self.assertEqual(self.run_script(session="own"), "refused 114\n")
        self.assertEqual(self.windows("own"), ["validation"])
        rows = [json.loads(line) for line in self.run_cli("profile", "report", "--json", "--all", "own").stdout.splitlines()]
        reads = {row["path"]: row["reads"] for row in rows if row.get("path", "").endswith("/data")}
        self.assertEqual(list(reads.values()), [6])  # each read() of Python is one of the data and one of the end


if __name__ == "__main__":
    penstock_cli.main()
