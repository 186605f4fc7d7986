#!/usr/bin/env python3
"""Each subcommand takes, shows and completes its own options and the common ones, and no other subcommand's."""

import re

import penstock_cli
from test_manuals import Manuals

PLACES = "cpus numa"
SAVING = "payload burst-buffer on-full on-full-timeout oversize headroom read-back keep keep-fast"
FILTER = "include exclude all"
# What each took when all subcommands of a command shared one table, and takes for ever; and what came to it since.
TAKES = {
    "baseline list": "results", "baseline remove": "results", "baseline set": "results",
    "checkpoint bench": f"{SAVING} {PLACES} seed results label pair metrics-port steps every step-time burn arms repeat time-limit mtbf",
    "checkpoint drain": f"run {PLACES} timeout read-back keep-fast",
    "checkpoint gc": f"run {PLACES} keep keep-fast",
    "checkpoint ls": f"run {PLACES}",
    "checkpoint restore": f"run {PLACES} step to replace",
    "checkpoint save": f"run {SAVING} {PLACES} step from seed wait ack-log timeout results label pair metrics-port",
    "checkpoint status": f"run {PLACES}",
    "checkpoint verify": f"run {PLACES}",
    "profile attach": "output include exclude trace trace-limit",
    "profile detach": "",
    "profile export": f"output {FILTER} to tier",
    "profile report": f"{FILTER} by top html",
    "profile run": "output include exclude trace trace-limit every",
    "profile serve": f"{FILTER} port",
    "profile snapshot": "output",
    "profile status": "",
    "profile top": f"{FILTER} top once interval",
    "profile trace": "for rank",
    "stage advise": "slow fast capacity policy threads epochs cache include exclude output min-time repeat speeds seed",
    "stage apply": "link-farm threads",
    "stage revert": "threads",
}
FLAGS = {"all", "trace", "once", "replace", "read-back"}


class Subcommands(Manuals):
    def shown(self, *words):
        """The options of a help page."""
        return set(re.findall(r"^  (?:-\w, )?--([a-z-]+)", self.run_cli(*words, "--help").stdout, re.MULTILINE))

    def everything(self):
        """Each subcommand that the program has, with its words and its own options."""
        return [(name.split(), set(takes.split())) for name, takes in TAKES.items()]

    def has_yaml(self):
        return any(row["name"] == "yaml-cpp" and row["present"] for row in self.rows)

    def tried(self, words, option):
        """What comes of the option without what the subcommand works on, or with a process that there is not."""
        return self.run_cli(*words, f"--{option}", *([] if option in FLAGS else ["1"]), *(["999999999"] if words[1] == "top" else []), expect=None)

    def test_all_are_known_here(self):
        there = set()
        for command in self.commands:
            _, has, rest = self.run_cli(command, "--help").stdout.partition("\nSubcommands:\n")
            there |= {f"{command} {word}" for word in re.findall(r"^  (\w+)", rest.partition("\n\n")[0], re.MULTILINE) if has}
        self.assertEqual(there, set(TAKES))

    def test_help_shows_their_own_and_the_common_options(self):
        for words, own in self.everything():
            with self.subTest(subcommand=" ".join(words)):
                common = self.shown(words[0])
                self.assertIn("json", common)
                self.assertEqual(self.shown(*words), common | own)
                self.assertEqual(self.run_cli("help", *words).stdout, self.run_cli(*words, "--help").stdout)
                self.assertIn(f"\n  {words[1]} ", self.run_cli(words[0], "--help").stdout)

    def test_their_own_are_taken(self):
        for words, own in self.everything():
            with self.subTest(subcommand=" ".join(words)):
                for option in sorted(own):
                    done = self.tried(words, option)
                    self.assertNotIn(f"has no option --{option}", done.stderr)
                    self.assertNotIn("unknown option", done.stderr)

    def test_those_of_others_are_refused_with_who_takes_them(self):
        for words, own in self.everything():
            with self.subTest(subcommand=" ".join(words)):
                takers = {name.split()[1]: set(takes.split()) for name, takes in TAKES.items() if name.split()[0] == words[0]}
                for option in sorted(set().union(*takers.values()) - own):
                    done = self.tried(words, option)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), option)
                    self.assertIn(f"has no option --{option}", done.stderr)
                    for name, takes in takers.items():
                        if option in takes:
                            self.assertRegex(done.stderr, rf"\b{name}\b")

    def test_options_may_stand_before_the_subcommand(self):
        done = self.run_cli("checkpoint", "--keep", "0", "gc", "store", expect=2)
        self.assertIn("keep", done.stderr)
        self.assertIn("--payload", self.run_cli("checkpoint", "--payload", "1MiB", "gc", "store", expect=2).stderr)

    def test_a_configuration_file_may_have_options_of_all_of_them(self):
        if not self.has_yaml():
            self.skipTest("this build lacks yaml-cpp")
        (self.dir / "c.yaml").write_text("keep: 3\npayload: 1MiB\nsteps: 7\n", encoding="utf-8")
        (self.dir / "wrong.yaml").write_text("kep: 3\n", encoding="utf-8")
        self.run_cli("checkpoint", "save", "store", "--config", "c.yaml")
        self.run_cli("checkpoint", "ls", "store", "--config", "c.yaml")
        self.assertIn("kep", self.run_cli("checkpoint", "ls", "store", "--config", "wrong.yaml", expect=2).stderr)

    def test_a_sweep_names_one(self):
        if not self.has_yaml():
            self.skipTest("this build lacks yaml-cpp")
        spec = "name: s\ncommand: checkpoint\nnouns: [bench, store]\nfixed: {payload: 64KiB, steps: 2, every: 2, step-time: 1ms, repeat: 1, %s}\nrepeats: 1\n"
        (self.dir / "s.yaml").write_text(spec % "burn: 0", encoding="utf-8")
        (self.dir / "wrong.yaml").write_text(spec % "step: 3", encoding="utf-8")
        self.run_cli("sweep", "s.yaml")
        self.assertIn("--step", self.run_cli("sweep", "wrong.yaml", expect=2).stderr)

    def test_man_pages_have_their_own_options(self):
        for words, own in self.everything():
            with self.subTest(subcommand=" ".join(words)):
                page = (self.folder / "man1" / f"penstock-{'-'.join(words)}.1").read_text(encoding="utf-8").replace("\\-", "-")
                of_command = (self.folder / "man1" / f"penstock-{words[0]}.1").read_text(encoding="utf-8").replace("\\-", "-")
                options = set(re.findall(r"(?m)^(?:\\fB-\w\\fR, )?\\fB--([a-z-]+)\\fR", page))
                self.assertEqual(options, self.shown(words[0]) | own)
                self.assertIn(f"\\fBpenstock-{'-'.join(words)}\\fR(1)", of_command)

    def test_completions_offer_their_own_options(self):
        for words, own in self.everything():
            with self.subTest(subcommand=" ".join(words)):
                offered = {word[2:] for word in self.complete("penstock", *words, "--")}
                self.assertEqual(offered, {"help"} | self.shown(words[0]) | own)


if __name__ == "__main__":
    penstock_cli.main()
