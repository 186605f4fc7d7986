"""The ReFrame check of ci/packaging runs on this machine and on the Slurm of the testbed; the Job for Kubernetes is valid and its script runs."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import penstock_cli

PACKAGING = penstock_cli.SOURCE / "ci" / "packaging"
SLURM = penstock_cli.SOURCE / "ci" / "testbed" / "slurm"
TOOLS = penstock_cli.BUILD / "cluster-tools"


def lacking():
    """Brings ReFrame and the schema of Kubernetes from PyPI, once for a build."""
    if penstock_cli.SANITIZED:
        return "once is enough"
    if (TOOLS / "bin" / "kubernetes-validate").exists():
        return None
    python = next((python for python in (sys.executable, "/usr/bin/python3") if subprocess.run([python, "-c", "import ensurepip"], check=False).returncode == 0), None)
    if python is None:
        return "Python cannot make a virtual environment: install python3-venv"
    subprocess.run([python, "-m", "venv", TOOLS], check=True)
    done = subprocess.run([TOOLS / "bin" / "pip", "install", "-q", "reframe-hpc", "kubernetes-validate", "pyyaml"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(TOOLS)
        return f"PyPI does not bring reframe-hpc and kubernetes-validate: {done.stderr[-300:]}"
    return None


class ReFrame(penstock_cli.CliTest):
    def reframe(self, partition, *words, before=(), program=penstock_cli.PENSTOCK, expect=0):
        """The report of a run: name of the check -> (its result, name of the variable -> (value, unit))."""
        report = self.dir / "report.json"
        done = subprocess.run([str(word) for word in (*before, TOOLS / "bin" / "reframe", "-C", PACKAGING / "reframe" / "settings.py", "--system",
                               f"testbed:{partition}", "-c", PACKAGING / "reframe" / "penstock_check.py", "--prefix", self.dir / "rf", f"--report-file={report}",
                               "-S", f"program={program}", *words, "-r")],
                              capture_output=True, text=True, cwd=self.dir, timeout=penstock_cli.PATIENCE_S, check=False, env={**os.environ, "HOME": str(self.dir)})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        found = {}
        for case in json.loads(report.read_text(encoding="utf-8"))["runs"][0]["testcases"]:
            command = re.search(r"command=(\w+)", case["display_name"])[1]
            values = {name.split(":")[-1]: (value[0], value[4]) for name, value in (case["perfvalues"] or {}).items()}
            found[command] = (case["result"], values, case.get("fail_reason") or "")
        return found

    def records(self, command):
        """What the command left in the stage or output folder of its check."""
        files = [path for path in (self.dir / "rf").rglob(f"*-{command}-*.jsonl") if path.parent.name == "records"]
        return penstock_cli.stored(*files)

    def assert_same_figures(self, values, records):
        self.assertTrue(records)
        expected = {re.sub(r"\W", "_", f"{record['command']}_{record['parameters']['tier']}_t{record['parameters']['threads']}_{name}"): (metric["value"], metric["unit"])
                    for record in records for name, metric in record["metrics"].items() if metric.get("headline")}
        self.assertEqual(values, expected)

    def test_on_this_machine_the_figures_are_those_of_the_records(self):
        found = self.reframe("local", "--keep-stage-files", "-S", "extra=--threads 1")
        self.assertLessEqual({"read", "train"}, set(found))
        for command, (result, values, _) in found.items():
            self.assertEqual(result, "pass", command)
            self.assertTrue(any(name.endswith("_per_s") for name in values), values)
            self.assert_same_figures(values, self.records(command))

    def test_a_bad_verdict_and_a_program_that_fails_fail_the_check(self):
        bad = self.dir / "bad"
        bad.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo \'{"kind":"command","name":"read","present":true}\'; exit; }\n'
                       'echo \'{"command":"read","verdict":"not_cold","reason":"no rights","parameters":{},"metrics":{}}\'\n', encoding="utf-8")
        bad.chmod(0o755)
        found = self.reframe("local", program=bad, expect=1)
        self.assertEqual(found["read"][0], "fail")
        self.assertIn("not_cold: no rights", found["read"][2])
        self.assertEqual(list(found), ["read"])  # the program has no other command
        found = self.reframe("local", "-S", "corpus=/nonexistent", "-n", "%command=read", expect=1)
        self.assertEqual(found["read"][0], "fail")

    def test_on_slurm_it_is_one_job_over_ranks(self):
        check = subprocess.run([SLURM, "check"], capture_output=True, text=True, check=False)
        if check.returncode != 0 or os.geteuid() != 0 or not pathlib.Path(penstock_cli.PENSTOCK).with_name("libpenstock_mpi.so").exists():
            self.skipTest(f"no Slurm or no MPI here: {check.stderr}")
        os.environ["PENSTOCK_TEST_SLURM"] = str(self.dir / "cluster")
        self.addCleanup(os.environ.pop, "PENSTOCK_TEST_SLURM")
        up = subprocess.run([SLURM, "up"], capture_output=True, text=True, check=False)
        self.addCleanup(subprocess.run, [SLURM, "down"], capture_output=True, check=False)
        if up.returncode == 77:
            self.skipTest(up.stderr)
        self.assertEqual(up.returncode, 0, up.stderr)
        found = self.reframe("slurm", "--keep-stage-files", "-S", "extra=--threads 1", "-S", "num_tasks=2", "-S", "num_tasks_per_node=1", "-S", "launcher_options=--mpi=pmix", "-n", "%command=read",
                             before=(SLURM, "exec"))
        self.assertEqual(found["read"][0], "pass", found)
        records = self.records("read")
        self.assertEqual({record["parameters"]["ranks"] for record in records}, {2})
        self.assert_same_figures(found["read"][1], records)


class Kubernetes(penstock_cli.CliTest):
    def test_the_job_is_valid_and_a_wrong_field_is_not(self):
        job = PACKAGING / "kubernetes" / "job.yaml"
        validate = lambda path: subprocess.run([TOOLS / "bin" / "kubernetes-validate", "--strict", path], capture_output=True, text=True, check=False)
        self.assertEqual(validate(job).returncode, 0, validate(job).stdout)
        wrong = self.dir / "wrong.yaml"
        wrong.write_text(job.read_text(encoding="utf-8").replace("completionMode:", "completionsMode:"), encoding="utf-8")
        self.assertNotEqual(validate(wrong).returncode, 0)

    def test_its_script_measures_in_each_pod_and_labels_the_records(self):
        script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"
        job = json.loads(subprocess.run([TOOLS / "bin" / "python", "-c", script, PACKAGING / "kubernetes" / "job.yaml"], capture_output=True, text=True, check=True).stdout)
        container, = job["spec"]["template"]["spec"]["containers"]
        environment = {row["name"]: row.get("value", "node1") for row in container["env"]}
        self.assertEqual(int(environment["PODS"]), job["spec"]["completions"])
        self.assertEqual(job["spec"]["parallelism"], job["spec"]["completions"])
        self.run_cli("generate", "imagenet", "--samples", 16, "--out", "corpus", "--results", "elsewhere")
        environment.update(CORPUS="corpus", RESULTS="results", DURATION="200ms", START_EVERY="1", PATH=f"{pathlib.Path(penstock_cli.PENSTOCK).parent}:{os.environ['PATH']}")
        pods = [subprocess.Popen([*container["command"], *container["args"]], cwd=self.dir, env={**environment, "JOB_COMPLETION_INDEX": str(index)},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for index in range(2)]
        for pod in pods:
            _, text = pod.communicate(timeout=penstock_cli.PATIENCE_S)
            self.assertIn(pod.returncode, (0, 1), text)  # 1: this test's pods share a page cache, which is then not cold
        records = penstock_cli.stored(*(self.dir / "results").iterdir())
        self.assertEqual(sorted(record["label"]["pod"] for record in records), ["0", "1"])
        self.assertEqual({(record["label"]["pods"], record["label"]["node"]) for record in records}, {("4", "node1")})
        self.assertEqual(sorted(record["seed"] for record in records), [7, 8])


if __name__ == "__main__":
    penstock_cli.main(lacking)
