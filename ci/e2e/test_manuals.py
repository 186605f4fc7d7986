"""Man pages and completions, as the option tables make them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import penstock_cli

DRIVER = """
source ./penstock.bash
PATH={folder}:$PATH
COMP_WORDS=("$@")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_LINE="${{COMP_WORDS[*]}}"
_penstock
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


class Manuals(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.run_cli("--write-manuals", "manuals")
        self.folder = self.dir / "manuals"
        self.rows = [json.loads(line) for line in self.run_cli("--version", "--json").stdout.splitlines()]
        self.commands = [row["name"] for row in self.rows if row["kind"] == "command" and row["present"]]

    def complete(self, *words):
        (self.dir / "driver").write_text(DRIVER.format(folder=pathlib.Path(penstock_cli.PENSTOCK).resolve().parent), encoding="utf-8")
        done = subprocess.run(["bash", "--norc", self.dir / "driver", *words], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "HOME": str(self.dir)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def pages(self):
        return sorted((self.folder / "man1").iterdir())

    def call(self, *words):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False)


class Pages(Manuals):
    def test_there_is_one_for_each_command(self):
        subcommands = {f"penstock-{command}-{word}.1" for command in self.commands for word in self.complete("penstock", command, "")
                       if command in ("baseline", "checkpoint", "profile", "stage")}
        self.assertGreater(len(subcommands), 20)
        self.assertEqual({page.name for page in self.pages()}, {"penstock.1"} | {f"penstock-{name}.1" for name in self.commands} | subcommands)

    def test_what_options_do_not_say_is_there(self):
        page = (self.folder / "man1" / "penstock-compare.1").read_text(encoding="utf-8")
        self.assertIn("inconclusive", page[page.index(".SH NOTES"):])

    def test_they_are_the_same_twice(self):
        env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        for name in ("one", "two"):
            self.run_cli("--write-manuals", name, env=env)
        self.assert_same_tree("one", "two")
        self.assertIn("2023-11-14", (self.dir / "one" / "man1" / "penstock.1").read_text(encoding="utf-8"))

    @unittest.skipUnless(shutil.which("groff"), "no groff here")
    def test_groff_has_nothing_to_warn_of(self):
        for page in self.pages():
            done = self.call("groff", "-ww", "-man", "-Tutf8", "-z", page)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc here")
    def test_mandoc_has_nothing_to_warn_of(self):
        for page in self.pages():
            done = self.call("mandoc", "-T", "lint", "-W", "warning", page)
            self.assertEqual((done.returncode, done.stdout), (0, ""), page.name)

    @unittest.skipUnless(shutil.which("groff"), "no groff here")
    def test_every_option_is_on_the_page(self):
        done = self.call("groff", "-man", "-Tascii", "-P-c", self.folder / "man1" / "penstock-read.1")
        for word in ("--threads LIST", "--iodepth", "--only-tiers", "penstock read CORPUS", "EXIT STATUS"):
            self.assertIn(word, re.sub(".\b", "", done.stdout), "without what is struck over")
        done = self.call("groff", "-man", "-Tascii", "-P-c", self.folder / "man1" / "penstock.1")
        self.assertRegex(re.sub(".\b", "", done.stdout), r"TERMS\n(.*\n)+ +queue depth\n")


class Reference(Manuals):
    def text(self, name):
        return (self.folder / "reference" / name).read_text(encoding="utf-8")

    def test_each_command_has_a_page_with_its_subcommands_and_options(self):
        pages = self.folder / "reference" / "commands"
        self.assertEqual({page.stem for page in pages.iterdir()}, set(self.commands))
        self.assertIn("\n- `--threads, --numjobs LIST`: ", self.text("commands/read.md"))
        for word in self.complete("penstock", "checkpoint", ""):
            self.assertIn(f"\n## penstock checkpoint {word}\n", self.text("commands/checkpoint.md"))

    def test_metrics_have_units_and_directions(self):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in self.text("metrics.md").splitlines() if line.startswith("| `")]
        self.assertGreater(len(rows), 100)
        self.assertEqual({row[2] for row in rows}, {"higher", "lower", "neither"})
        self.assertIn(["`payload_bytes_per_s`", "B/s", "higher", "repeat", "yes"], rows)

    def test_verdicts_have_meanings_and_exit_codes(self):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in self.text("verdicts.md").splitlines() if line.startswith("| `")]
        self.assertEqual(len(rows), 12)
        self.assertTrue(all(meaning.endswith(".") for _, meaning, _ in rows))
        self.assertEqual({verdict: code for verdict, _, code in rows if verdict in ("`ok`", "`not_cold`", "`skipped`")},
                         {"`ok`": "0", "`not_cold`": "1", "`skipped`": "77"})


class Bash(Manuals):
    def test_commands_and_options(self):
        self.assertEqual(self.complete("penstock", "ver"), ["verify"])
        self.assertLessEqual(set(self.commands) | {"help"}, set(self.complete("penstock", "")))
        self.assertEqual(sorted(self.complete("penstock", "help", "ver")), ["verdict", "verify"])
        self.assertEqual(self.complete("penstock", "help", "queue"), ["queue-depth"])
        self.assertEqual(self.complete("penstock", "read", "data", "--thr"), ["--threads"])
        self.assertEqual(self.complete("penstock", "read", "--only"), ["--only-tiers"])

    def test_choices(self):
        self.assertEqual(self.complete("penstock", "read", "data", "--units", ""), ["iec", "si"])
        self.assertEqual(self.complete("penstock", "read", "data", "--units", "=", "s"), ["si"])
        self.assertEqual(self.complete("penstock", "read", "data", "--units", "="), ["iec", "si"])
        self.assertEqual(self.complete("penstock", "read", "data", "--threads", ""), [])

    def test_subcommands_and_what_they_take(self):
        self.assertEqual(self.complete("penstock", "checkpoint", "re"), ["restore"])
        self.assertIn("--replace", self.complete("penstock", "checkpoint", "restore", "--re"))
        self.assertEqual(self.complete("penstock", "checkpoint", "ls", "--re"), [])
        self.assertEqual(self.complete("penstock", "--help", "x", "--re"), [])

    def test_first_arguments(self):
        self.assertEqual(self.complete("penstock", "train", "alex"), ["alexnet"])
        self.assertEqual(self.complete("penstock", "generate", "--samples", "4", "ima"), ["imagenet"])

    def test_names_of_tiers_and_folders(self):
        (self.folder / "farm").mkdir()
        (self.folder / "file").write_text("", encoding="utf-8")
        self.assertEqual(self.complete("penstock", "read", "data", "--tier", "fa"), ["farm"])
        if not any(json.loads(line)["name"] == "yaml-cpp" and json.loads(line)["present"]
                   for line in self.run_cli("--version", "--json").stdout.splitlines()):
            self.skipTest("this build lacks yaml-cpp")
        (self.folder / "penstock.yaml").write_text("tiers: {fast: /dev/shm/p, slow: /data/p}\n", encoding="utf-8")
        self.assertEqual(self.complete("penstock", "read", "data", "--tier", "fa"), ["fast", "farm"])

    def test_a_command_behind_two_dashes_is_left_alone(self):
        self.assertEqual(self.complete("penstock", "profile", "run", "--", "ec"), [])


class OtherShells(Manuals):
    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_takes_it(self):
        done = self.call("zsh", "-n", self.folder / "_penstock")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        script = f"autoload -U compinit; compinit -D -u; fpath=({self.folder} $fpath); autoload -U _penstock; source {self.folder}/_penstock 2>&1 | head -n 1; which _penstock"
        self.assertIn("_penstock", self.call("zsh", "-f", "-c", script).stdout)

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish_takes_it(self):
        done = self.call("fish", "--no-execute", self.folder / "penstock.fish")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        script = f"source {self.folder}/penstock.fish; complete -C 'penstock checkpoint re'; complete -C 'penstock read data --units '"
        out = self.call("fish", "--no-config", "-c", script).stdout
        self.assertIn("restore", out)
        self.assertIn("iec", out)


if __name__ == "__main__":
    penstock_cli.main()
