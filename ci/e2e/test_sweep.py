"""penstock sweep on one machine: real cells, kills, arms, budgets."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from messages import message
import penstock_cli
from sweep_case import QUICK, SweepTest

MODULE = pathlib.Path(penstock_cli.PENSTOCK).resolve().parent / "libpenstock_mpi.so"
READ = f"""
name: read
command: read
nouns: [data]
fixed: {{{QUICK}, only-tiers: true}}
grid:
  threads: [1, 2]
  tier: [one=posix:data, two=posix:copy]
repeats: 3
seed: 7
"""
CELLS = [(threads, tier) for threads in (1, 2) for tier in ("one", "two")]


def read_cell(record):
    return record["parameters"]["threads"], record["tiers"]["data"]["name"]


def children_of(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1] == str(pid):
                found.append(stat.parent.name)
    return found


class Sweep(SweepTest):
    def setUp(self):
        super().setUp()
        self.corpus()

    def two_places(self):
        shutil.copytree(self.dir / "data", self.dir / "copy")

    def test_every_cell_in_every_round(self):
        self.two_places()
        done = self.run_cli("sweep", self.file(READ))
        self.assert_each_once(self.records_in(), read_cell, CELLS, 3)
        for record in self.records_in():
            self.assertEqual((record["label"], record["verdict"]), ({"sweep": "read"}, "ok"), record["reason"])
            self.assertNotIn("pair", record)
        rounds = [(turn["round"], turn["cell"]) for turn in self.turns("read")]
        self.assertEqual([number for number, _ in rounds], [0] * 4 + [1] * 4 + [2] * 4, "round after round")
        self.assertEqual(len({tuple(cell for number, cell in rounds if number == each) for each in range(3)}), 3, "in orders of their own")
        table = done.stdout.splitlines()
        self.assertEqual(len([line for line in table if line.startswith("threads ") and line.endswith("ok")]), 4, done.stdout)
        self.assertIn("penstock report penstock-results", done.stdout)
        self.assert_nothing_unfinished()
        self.run_cli("report", "penstock-results", "-o", "report.html")
        self.assertIn("one", (self.dir / "report.html").read_text(encoding="utf-8"))

        again = self.run_cli("sweep", "sweep.yaml")
        self.assertEqual(len(self.records_in()), 12, "all was done")
        self.assertIn(message("sweep-turns-done", n=12), again.stderr)

    def test_the_plan_of_a_damaged_sweep_is_no_plan_of_a_new_one(self):
        self.two_places()
        self.run_cli("sweep", self.file(READ))
        journal = self.dir / "penstock-results" / "sweep-read.state"
        journal.write_text("damage\n" + journal.read_text(encoding="utf-8"), encoding="utf-8")
        done = self.run_cli("sweep", "sweep.yaml", "--dry-run", expect=1)
        self.assertIn("line 1", done.stderr)

    def test_the_seed_makes_the_order_and_a_file_may_grow(self):
        self.two_places()
        plan = self.run_cli("sweep", self.file(READ), "--dry-run").stdout.splitlines()
        self.assertEqual(len(plan), 13, "a line of figures, then one a run")
        self.assertFalse((self.dir / "penstock-results").exists(), "no run was started")
        lines = self.run_cli("sweep", "sweep.yaml", "--json").stdout.splitlines()
        lines = [json.loads(line) for line in lines]
        self.assertEqual([line["kind"] for line in lines], ["run"] * 12 + ["cell"] * 4 + ["sweep"])
        order = [(f"threads {line['title'].split()[1][:-1]}", line["title"].split()[-1]) for line in lines[:12]]
        planned = [(f"threads {words[words.index('--threads') + 1]}", words[words.index("--tier") + 1].split("=")[0])
                   for words in (line.split() for line in plan[1:])]
        self.assertEqual(order, planned)
        self.assertEqual((lines[-1]["done"], lines[-1]["left"]), (12, 0))
        self.file(READ.replace("[1, 2]", "[1, 2, 4]").replace("repeats: 3", "repeats: 4"))
        self.run_cli("sweep", "sweep.yaml")
        more = [(threads, tier) for threads in (1, 2, 4) for tier in ("one", "two")]
        self.assert_each_once(self.records_in(), read_cell, more, 4)

    def test_changes_are_refused_by_name(self):
        self.run_cli("sweep", self.file(READ.replace(", two=posix:copy", "").replace("repeats: 3", "repeats: 1")))
        before = penstock_cli.tree(self.dir / "penstock-results")
        for old, new, name in ((QUICK, QUICK.replace("30ms", "40ms"), "fixed.min-time"), ("[1, 2]", "[1, 4]", "grid.threads"),
                               ("seed: 7", "seed: 8", "seed"), ("command: read", "command: train", "")):
            self.file(READ.replace(", two=posix:copy", "").replace("repeats: 3", "repeats: 1").replace(old, new))
            done = self.run_cli("sweep", "sweep.yaml", expect=2)
            self.assertIn(name, done.stderr)
        self.assertEqual(penstock_cli.tree(self.dir / "penstock-results"), before)

    def test_what_is_wrong_is_said_before_anything_is_run(self):
        for text, words in ((READ + "repeat: 3\n", "'repeats'"), (READ.replace("threads:", "thread:"), "--threads"),
                            (READ.replace("command: read", "command: describe"), "generate"), (READ.replace("[1, 2]", "[1, many]"), "many"),
                            (READ.replace("name: read", "name: a/b"), "'name'"), (READ + "ranks: 2\nlauncher: 'mpirun {rank}'\n", "{ranks}")):
            done = self.run_cli("sweep", self.file(text), expect=2)
            self.assertIn(words, done.stderr)
        self.assertFalse((self.dir / "penstock-results").exists())
        self.run_cli("sweep", "nowhere.yaml", expect=2)

    def test_killed_again_and_again_every_turn_is_there_once(self):
        self.two_places()
        self.file(READ.replace("repeats: 3", "repeats: 5"))
        for turns in (1, 6, 7, 13):
            process = self.start("sweep", "sweep.yaml", "--json")
            self.wait_for_turns(process, "read", turns)
            process.kill()
            process.communicate()
        self.run_cli("sweep", "sweep.yaml")
        self.assert_each_once(self.records_in(), read_cell, CELLS, 5)
        self.assert_nothing_unfinished()

    def test_what_a_killed_sweep_was_running_ends_too(self):
        slow = READ.replace("min-time: 30ms", "duration: 600s")
        self.file(slow.replace(", two=posix:copy", ""))
        process = self.start("sweep", "sweep.yaml")
        work = self.dir / "penstock-results" / ".sweep-read"
        while not penstock_cli.present(work, "*/output") or not (children := children_of(process.pid)):
            self.assertIsNone(process.poll())
        child, = children
        process.kill()
        process.communicate()
        # The child shares its lock, so a process that gets the lock is the only one.
        self.file(READ.replace(", two=posix:copy", ""), "other.yaml")
        done = self.run_cli("sweep", "other.yaml", expect=2)
        self.assertIn("fixed.", done.stderr)
        self.assertFalse(pathlib.Path(f"/proc/{child}/exe").exists())

    def test_an_interrupt_keeps_what_was_done(self):
        self.two_places()
        process = self.start("sweep", self.file(READ))
        self.wait_for_turns(process, "read", 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(message("sweep-turns-left"), err)
        self.assertEqual({record["verdict"] for record in self.records_in()}, {"ok"})
        self.run_cli("sweep", "sweep.yaml")
        self.assert_each_once(self.records_in(), read_cell, CELLS, 3)

    def test_what_is_behind_a_run_is_done_though_it_was_interrupted(self):
        self.file(READ.replace(", two=posix:copy", "").replace("min-time: 30ms", "duration: 600s") + "after: sleep 0.5; touch gone-{run}\n")
        process = self.start("sweep", "sweep.yaml")
        while not penstock_cli.present(self.dir / "penstock-results", ".sweep-read/*"):
            self.assertIsNone(process.poll())
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(len(list(self.dir.glob("gone-*"))), 1, err)

    def test_one_sweep_at_a_time(self):
        self.file(READ.replace(", two=posix:copy", "").replace("min-time: 30ms", "duration: 600s"))
        process = self.start("sweep", "sweep.yaml")
        while not penstock_cli.present(self.dir / "penstock-results", ".sweep-read/*"):
            self.assertIsNone(process.poll())
        other = self.start("sweep", "sweep.yaml")
        output = other.stderr.readline()
        self.assertIn(message("waiting-for-other-process"), output)
        for each in (other, process):
            each.send_signal(signal.SIGTERM)
            each.communicate(timeout=penstock_cli.PATIENCE_S)
            self.assertEqual(each.returncode, 143)

    def test_arms_are_pairs(self):
        program = self.dir / "candidate"
        program.write_text(f'#!/bin/sh\nexec "{penstock_cli.PENSTOCK}" "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        text = READ.replace(", two=posix:copy", "").replace("repeats: 3", "repeats: 4")
        self.file(text + f"arms:\n  base: {{}}\n  new: {{program: {program}, fixed: {{order: shuffled}}}}\n")
        done = self.run_cli("sweep", "sweep.yaml")
        sides = {arm: self.records_in(f"penstock-results/read/{arm}") for arm in ("base", "new")}
        for arm, records in sides.items():
            self.assert_each_once(records, read_cell, [(1, "one"), (2, "one")], 4)
            for record in records:
                self.assertRegex(record["pair"]["suite"], "^read-[0-9a-f]{8}$")
                self.assertEqual((record["pair"]["arm"], record["label"]["arm"]), (arm, arm))
        indexes = {arm: sorted((read_cell(record), record["pair"]["index"], record["seed"]) for record in records) for arm, records in sides.items()}
        self.assertEqual(indexes["base"], indexes["new"], "the same work on both sides")
        for cell in ("threads=1", "threads=2"):
            orders = [[run["arm"] for run in turn["runs"]] for turn in self.turns("read") if turn["cell"].startswith(cell)]
            self.assertEqual(orders[0], orders[1][::-1])
            self.assertEqual(orders[2], orders[3][::-1])
        self.assertIn("penstock compare penstock-results/read/base penstock-results/read/new", done.stdout)
        self.assertEqual(self.records_in(), [])
        self.assertNotIn(message("program-changed"), self.run_cli("sweep", "sweep.yaml").stderr)
        program.write_text(program.read_text(encoding="utf-8") + "# rebuilt\n", encoding="utf-8")
        self.assertIn(message("program-changed-named", program=program), self.run_cli("sweep", "sweep.yaml").stderr)

    def test_a_budget_begins_nothing_that_it_cannot_end(self):
        self.two_places()
        done = self.run_cli("sweep", self.file(READ), "--budget", "1ms")
        self.assertIn("0 turns are done and 12 are left (ended by: the budget)", done.stderr)
        self.assertEqual(self.records_in(), [])
        done = self.run_cli("sweep", "sweep.yaml", "--budget", "1h")
        self.assertEqual(len(self.records_in()), 12)
        self.assertNotIn("are left", done.stderr)

    def test_a_cell_stops_when_its_interval_is_narrow(self):
        """The number of steps is the same in every run: six turns settle it."""
        train = "name: t\ncommand: train\nnouns: [alexnet]\nfixed: {data: data, steps: 2, batch: 8}\ngrid: {prefetch: [0, 2]}\nseed: 3\nrepeats: 9\n"
        self.run_cli("sweep", self.file(train + "until: {metric: steps, interval: 5%}\n"))
        self.assert_each_once(self.records_in(), lambda record: record["parameters"]["prefetch"], [0, 2], 6)
        done = self.run_cli("sweep", self.file(train.replace("name: t", "name: u").replace("repeats: 9", "repeats: 1")
                                               + "until: {metric: stepz, interval: 5%}\n"))
        self.assertIn(message("did-you-mean", name="steps"), done.stderr)

    def test_a_failure_is_a_record_and_the_others_go_on(self):
        (self.dir / "empty").mkdir()
        self.file(READ.replace("two=posix:copy", "two=posix:empty").replace("repeats: 3", "repeats: 2"))
        done = self.run_cli("sweep", "sweep.yaml", expect=1)
        records = self.records_in()
        fine = [record for record in records if record["verdict"] == "ok"]
        failed = [record for record in records if record["verdict"] == "failed"]
        self.assertEqual((len(fine), len(failed)), (4, 4), done.stderr)
        for record in failed:
            self.assertIn("two", json.dumps(record["parameters"]["tier"]))
            self.assertEqual(record["label"]["sweep"], "read")
            self.assertIn(message("record-names-exit-code"), record["reason"])
        self.assertIn("failed", done.stdout)
        self.assertEqual(self.run_cli("sweep", "sweep.yaml", expect=1).returncode, 1, "and it stays so")

    def test_each_run_may_have_a_place_of_its_own(self):
        self.file("name: g\ncommand: generate\nnouns: [imagenet]\nfixed: {samples: 8, out: 'made-{run}', set: [median=12KB, classes=2]}\n"
                  "grid: {threads: [1, 2]}\nrepeats: 2\nafter: mv made-{run} gone-{run}\n")
        done = self.run_cli("sweep", "sweep.yaml")
        self.assertEqual((len(list(self.dir.glob("made-*"))), len(list(self.dir.glob("gone-*")))), (0, 4), done.stderr)
        self.assertEqual([record["verdict"] for record in self.records_in()], ["ok"] * 4)
        self.file((self.dir / "sweep.yaml").read_text(encoding="utf-8").replace("name: g", "name: h").replace("mv", "mvx"))
        done = self.run_cli("sweep", "sweep.yaml")
        self.assertIn(message("run-ended-with-exit-code", name="after", n=127), done.stderr)

    def test_without_slurm_it_says_so(self):
        (self.dir / "bin").mkdir()
        done = self.run_cli("sweep", self.file(READ), "--slurm", expect=77, env={**os.environ, "PATH": str(self.dir / "bin")})
        self.assertIn("sbatch", done.stderr)
        done = self.run_cli("sweep", "sweep.yaml", "--slurm", "--dry-run", env={**os.environ, "PATH": str(self.dir / "bin")})
        self.assertTrue(done.stdout.startswith("#!/bin/sh\n"))
        self.assertFalse((self.dir / "penstock-results").exists())

    @unittest.skipIf(penstock_cli.SANITIZED or not MODULE.exists() or not shutil.which("mpirun"), "needs MPI and a build without sanitizers")
    def test_jobs_of_ranks(self):
        self.file(READ.replace(", two=posix:copy", "").replace("repeats: 3", "repeats: 1")
                  + "ranks: [1, 2]\nlauncher: mpirun --oversubscribe --mca mpi_yield_when_idle 1 -np {ranks}\n")
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.run_cli("sweep", "sweep.yaml", env=environment)
        cells = [(record["parameters"]["ranks"], record["parameters"]["threads"]) for record in self.records_in()]
        self.assertEqual(sorted(cells), [(1, 1), (1, 2), (2, 1), (2, 2)])

    def test_the_files_of_the_docs_are_right(self):
        texts = []
        for name in ("reference/sweep-files", "how-to/run-on-slurm-and-mpi", "how-to/sweep-parameters"):
            text = (penstock_cli.SOURCE / "docs" / f"{name}.md").read_text(encoding="utf-8")
            texts += [block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "command:" in block]
        texts += [file.read_text(encoding="utf-8") for file in (penstock_cli.SOURCE / "ci" / "slurm").glob("*.yaml")]
        self.assertEqual(len(texts), 6)
        for text in texts:
            done = self.run_cli("sweep", self.file(text), "--dry-run")
            self.assertIn(message("sweep-has-turns-left"), done.stdout)

    def test_progress_tells_the_time(self):
        done = self.run_cli("sweep", self.file(READ.replace(", two=posix:copy", "")), "--progress", "always")
        self.assertIn("about ", done.stderr)
        self.assertIn("of 6", done.stderr)


def lacking():
    """Why none of this can run here, or None."""
    probe = subprocess.run([penstock_cli.PENSTOCK, "sweep", "--help"], capture_output=True, text=True, check=False)
    return probe.stderr if probe.returncode == 77 else None


if __name__ == "__main__":
    penstock_cli.main(lacking)
