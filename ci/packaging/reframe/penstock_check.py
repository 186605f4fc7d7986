r"""ReFrame checks (PyPI: reframe-hpc): they run Penstock and take the headline metrics of its records as performance variables.

    reframe -c ci/packaging/reframe/penstock_check.py -r --performance-report
    reframe -C ci/packaging/reframe/settings.py --system testbed:slurm -c ci/packaging/reframe/penstock_check.py -S num_tasks=4 \
        -S launcher_options=--mpi=pmix -r

A check fails if the program fails, or if the verdict of a record is not in `good_verdicts`. Options (-S NAME=VALUE):
    program       the program, as the compute nodes find it
    corpus        a data set; empty: 200 pictures that the check makes in its stage folder, which all nodes must see
    tier          where `write` writes; empty: the stage folder
    extra         more words for the command, such as "--cache cold"
    num_tasks, num_tasks_per_node      several: one job over MPI ranks
    launcher_options                   such as --mpi=pmix for srun
A subclass may set `reference`, as in any check: a variable is named COMMAND_TIER_tTHREADS_METRIC, such as read_root_t2_payload_bytes_per_s.
"""

import json
import os
import re
import shlex
import shutil
import subprocess

import reframe as rfm
from reframe.core.builtins import parameter, performance_function, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError


def records_of(path):
    """The records that `--json` printed into a file. Lines of the launcher are skipped."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        return [json.loads(line) for line in lines if line.startswith("{")]


def headline_metrics(record):
    """Name -> (value, unit) of the record's headline metrics that have a value."""
    parameters = record["parameters"]
    place = f"{record['command']}_{parameters.get('tier', 'tier')}_t{parameters.get('threads', 1)}"
    return {re.sub(r"\W", "_", f"{place}_{name}"): (metric["value"], metric["unit"])
            for name, metric in record["metrics"].items() if metric.get("headline") and metric["value"] is not None}


@rfm.simple_test
class PenstockCheck(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    command = parameter(["read", "train", "write"])
    program = variable(str, value="penstock")
    corpus = variable(str, value="")
    tier = variable(str, value="")
    extra = variable(str, value="")
    launcher_options = variable(str, value="")
    good_verdicts = variable(list, value=["ok", "short", "client_bound"])
    num_tasks = 1
    time_limit = "30m"

    @run_after("init")
    def skip_what_the_program_lacks(self):
        program = shutil.which(self.program)
        if program is None:  # only the compute nodes have it
            return
        rows = subprocess.run([program, "--version", "--json"], capture_output=True, text=True, check=False).stdout.splitlines()
        commands = {row["name"] for row in map(json.loads, rows) if row["kind"] == "command" and row["present"]}
        self.skip_if(self.command not in commands, f"this penstock has no command {self.command}")

    @run_before("run")
    def fill_in_the_command(self):
        corpus = self.corpus or "corpus"
        words = {"read": ["read", corpus], "train": ["train", "alexnet", "--data", corpus, "--steps", "4", "--batch", "16"],
                 "write": ["write", self.tier or "written", "--files", "32x4MiB"]}[self.command]
        if not self.corpus and self.command != "write":
            program = shlex.quote(self.program)
            self.prerun_cmds = [f"{program} generate imagenet --samples 200 --out corpus --results elsewhere --json > generated.json"]
        self.job.launcher.options = shlex.split(self.launcher_options)
        self.executable = shlex.quote(self.program)
        self.executable_opts = [*words, "--json", "--results", "records", *shlex.split(self.extra)]

    def output(self, stream):
        return os.path.join(self.stagedir, stream.evaluate())

    @sanity_function
    def check_verdicts(self):
        records = records_of(self.output(self.stdout))
        if not records:
            with open(self.output(self.stderr), encoding="utf-8", errors="replace") as text:
                raise SanityError(f"no record: {text.read()[-500:]}")
        for record in records:
            if record["verdict"] not in self.good_verdicts:
                raise SanityError(f"verdict {record['verdict']}: {record['reason']}")
        if records[0]["parameters"].get("ranks", 1) != self.num_tasks:
            raise SanityError(f"a record of {records[0]['parameters'].get('ranks', 1)} ranks, and {self.num_tasks} tasks were asked for")
        return True

    @run_before("performance")
    def take_metrics(self):
        self.perf_variables = {}
        for record in records_of(self.output(self.stdout)):
            for name, (value, unit) in headline_metrics(record).items():
                self.perf_variables[name] = performance_function(unit)(lambda _, value=value: value)(self)
