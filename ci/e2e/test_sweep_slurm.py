"""penstock sweep --slurm on a real Slurm of two nodes on this machine (ci/testbed/slurm). Skipped where that is not available."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from messages import message
import penstock_cli
from sweep_case import QUICK, SMALL, SweepTest

SLURM = penstock_cli.SOURCE / "ci" / "testbed" / "slurm"
MODULE = pathlib.Path(penstock_cli.PENSTOCK).resolve().parent / "libpenstock_mpi.so"
READ = f"""
name: read
command: read
nouns: [data]
fixed: {{{QUICK}, only-tiers: true}}
grid:
  threads: [1, 2, 4]
  tier: [one=posix:data, two=uring:copy]
nodes: [1, 2]
repeats: 2
seed: 7
slurm: {{time: 20m}}
"""
READ_CELLS = [(threads, tier, nodes) for threads in (1, 2, 4) for tier in ("one", "two") for nodes in (1, 2)]
TRAIN = """
name: train
command: train
nouns: [alexnet]
fixed: {data: data, steps: 3, batch: 4}
grid: {prefetch: [0, 2]}
ranks: [2]
nodes: [2]
repeats: 2
seed: 7
slurm: {time: 20m}
"""
SMALLER = READ.replace("[1, 2, 4]", "[1]").replace("one=posix:data, two=uring:copy", "one=posix:data")


def hosts_of(record):
    ranks = record["environment"].get("ranks")
    return sorted({rank["host"] for rank in ranks}) if ranks else [record["environment"]["host"]]


def read_cell(record):
    return record["parameters"]["threads"], record["tiers"]["data"]["name"], len(hosts_of(record))


class SlurmSweep(SweepTest):
    cluster = None

    def setUp(self):
        super().setUp()
        made = self.cluster.parent / "imagenet"
        if not made.exists():
            self.run_cli("generate", "imagenet", "--out", made, "--results", made.parent, *SMALL)
        for name in ("data", "copy"):
            shutil.copytree(made, self.dir / name)
        self.addCleanup(self.slurm, "scancel", "--user=root")

    def slurm(self, *words):
        """A command on the cluster's login node."""
        return subprocess.run([SLURM, "exec", *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.dir,
                              timeout=penstock_cli.PATIENCE_S, check=False)

    def begin(self, *args):
        """Starts `penstock sweep ARGS` there; the process is that very penstock."""
        process = subprocess.Popen([SLURM, "exec", penstock_cli.PENSTOCK, "sweep", *map(str, args)], cwd=self.dir, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def end(self, process, expect=0):
        out, err = process.communicate(timeout=penstock_cli.PATIENCE_S)
        log = "".join(file.read_text(encoding="utf-8") for file in (self.dir / "penstock-results").glob("*.log"))
        self.assertEqual(process.returncode, expect, f"{out}\n{err}\n{log}")
        return out, err

    def jobs(self, name):
        return [entry["job"] for entry in self.journal(name) if entry["kind"] == "job"]

    def wait_until_over(self, job):
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while self.slurm("squeue", "-h", "-j", job, "-o", "%T").stdout.strip():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)

    def test_cancelled_in_the_middle_and_resumed(self):
        self.file(READ)
        client = self.begin("sweep.yaml", "--slurm")
        self.wait_for_turns(client, "read", 5)
        job, = self.jobs("read")
        self.slurm("scancel", job)
        _, err = self.end(client, expect=1)
        done = len(self.turns("read"))
        self.assertLess(done, 24)
        self.assertIn(message("sweep-count-left", done=24 - done), err)
        self.wait_until_over(job)
        out, err = self.end(self.begin("sweep.yaml", "--slurm"))
        self.assertEqual(len(self.jobs("read")), 2)
        self.assert_each_once(self.records_in(), read_cell, READ_CELLS, 2)
        self.assertEqual({record["verdict"] for record in self.records_in()}, {"ok"}, out)
        self.assertEqual(len([line for line in out.splitlines() if line.startswith("threads ")]), 12, out)
        self.assert_nothing_unfinished()
        for record in self.records_in():
            self.assertEqual(record["parameters"]["ranks"], len(hosts_of(record)), "one rank on each node")

        self.file(TRAIN, "train.yaml")
        self.end(self.begin("train.yaml", "--slurm"))
        trained = [record for record in self.records_in() if record["command"] == "train"]
        self.assert_each_once(trained, lambda record: record["parameters"]["prefetch"], [0, 2], 2)
        for record in trained:
            self.assertEqual((record["parameters"]["ranks"], hosts_of(record), record["verdict"]), (2, ["node1", "node2"], "ok"), record["reason"])
        self.run_cli("report", "penstock-results", "-o", "report.html")
        page = (self.dir / "report.html").read_text(encoding="utf-8")
        for word in ("one", "two", "alexnet"):
            self.assertIn(word, page)

    def test_the_client_may_go_and_come_back(self):
        self.file(SMALLER)
        client = self.begin("sweep.yaml", "--slurm")
        self.wait_for_turns(client, "read", 1)
        client.send_signal(signal.SIGINT)
        _, err = self.end(client, expect=130)
        job, = self.jobs("read")
        self.assertIn(f"scancel {job}", err)
        _, err = self.end(self.begin("sweep.yaml", "--slurm"))
        self.assertEqual(self.jobs("read"), [job], "the same job")
        self.assert_each_once(self.records_in(), read_cell, [(1, "one", 1), (1, "one", 2)], 2)

    def test_it_submits_again_by_itself(self):
        self.file(SMALLER.replace("repeats: 2", "repeats: 4"))
        client = self.begin("sweep.yaml", "--slurm", "--resubmit", 1)
        self.wait_for_turns(client, "read", 2)
        self.slurm("scancel", self.jobs("read")[0])
        _, err = self.end(client)
        self.assertEqual(len(self.jobs("read")), 2, err)
        self.assert_each_once(self.records_in(), read_cell, [(1, "one", 1), (1, "one", 2)], 4)

    def test_in_an_allocation_it_runs_there(self):
        self.file(SMALLER)
        done = self.slurm("salloc", "--nodes=2", "--exclusive", penstock_cli.PENSTOCK, "sweep", "sweep.yaml", "--slurm", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.jobs("read"), [], "nothing was submitted")
        self.assert_each_once(self.records_in(), read_cell, [(1, "one", 1), (1, "one", 2)], 2)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["left"], 0)

    def test_nothing_begins_that_the_allocation_would_cut_off(self):
        self.file(SMALLER.replace("min-time: 30ms", "min-time: 600s"))
        done = self.slurm("salloc", "--nodes=2", "--exclusive", "--time=1", penstock_cli.PENSTOCK, "sweep", "sweep.yaml", "--slurm")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 turns are done and 4 are left (ended by: the time of the allocation)", done.stderr)

    def test_mpirun_starts_the_ranks_where_it_is_asked_to(self):
        self.file(SMALLER + "tasks-per-node: 2\nlauncher: mpirun -np {ranks} --map-by ppr:{tasks-per-node}:node\n")
        self.end(self.begin("sweep.yaml", "--slurm"))
        cells = [(record["parameters"]["ranks"], len(hosts_of(record))) for record in self.records_in()]
        self.assertEqual(len(cells), 4)
        self.assertEqual({ranks for ranks, _ in cells}, {2, 4})
        self.assertEqual({hosts for ranks, hosts in cells if ranks == 4}, {2})

    def test_what_slurm_refuses_is_said(self):
        self.file(SMALLER.replace("time: 20m", "time: 20m, partition: nowhere"))
        _, err = self.end(self.begin("sweep.yaml", "--slurm"), expect=1)
        self.assertIn("partition", err)
        self.file(SMALLER.replace("time: 20m", "mpi: none"))
        out, err = self.end(self.begin("sweep.yaml", "--slurm"), expect=77)
        self.assertIn("skipped", out, "ranks that cannot meet are a record, and one rank needs nobody")
        verdicts = [(record["parameters"]["ranks"], record["verdict"]) for record in self.records_in()]
        self.assertEqual(sorted(verdicts), [(1, "ok"), (1, "ok"), (2, "skipped"), (2, "skipped")])

    def test_the_examples_run(self):
        for name in ("scaling", "train"):
            text = (penstock_cli.SOURCE / "ci" / "slurm" / f"{name}.yaml").read_text(encoding="utf-8")
            self.file(text, f"{name}.yaml")
            done = self.slurm(penstock_cli.PENSTOCK, "sweep", f"{name}.yaml", "--slurm", "--dry-run")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("#SBATCH --nodes=2\n", done.stdout)
        for script, more in (("read_on_nodes", ("--threads", "1,2", "--min-time", "30ms", "--repeat", "1", "--no-ceiling")),
                             ("train_on_ranks", ("--steps", "2", "--batch", "4"))):
            path = penstock_cli.SOURCE / "ci" / "slurm" / f"{script}.sbatch"
            done = self.slurm("env", f"PENSTOCK={penstock_cli.PENSTOCK}", "sbatch", "--wait", "--nodes=2", "--output=out", path, "data", *more)
            self.assertEqual(done.returncode, 0, done.stderr + (self.dir / "out").read_text(encoding="utf-8"))
        commands = [(record["command"], record["parameters"]["ranks"], hosts_of(record)) for record in self.records_in()]
        self.assertEqual(commands, [("read", 4, ["node1", "node2"])] * 2 + [("train", 2, ["node1", "node2"])])


def lacking():
    """Why none of this can run here, or None."""
    if penstock_cli.SANITIZED or not MODULE.exists():
        return "a build with the MPI module and without sanitizers is needed"
    for words in ([penstock_cli.PENSTOCK, "sweep", "--help"], [SLURM, "check"]):
        probe = subprocess.run(words, capture_output=True, text=True, check=False)
        if probe.returncode == 77:
            return probe.stderr
    return None


if __name__ == "__main__":
    reason = lacking()
    if reason:
        print(reason.strip(), file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="penstock-test-") as scratch:
        SlurmSweep.cluster = pathlib.Path(scratch) / "cluster"
        os.environ.update(PENSTOCK_TEST_SLURM=str(SlurmSweep.cluster), OMPI_MCA_mpi_yield_when_idle="1",
                          OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        try:
            subprocess.run([SLURM, "up"], check=True, stdout=subprocess.DEVNULL)
            penstock_cli.main()
        finally:
            subprocess.run([SLURM, "down"], check=False)
