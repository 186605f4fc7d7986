"""Penstock over the nodes of a real Slurm on this machine (ci/testbed/slurm). Skipped where that is not available."""

import contextlib
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

TESTBED = penstock_cli.SOURCE / "ci" / "testbed"
SLURM = TESTBED / "slurm"
MODULE = pathlib.Path(penstock_cli.PENSTOCK).resolve().parent / "libpenstock_mpi.so"
QUICK = ("--min-time", "30ms", "--repeat", 2, "--seed", 7, "--no-ceiling", "--threads", 2)
FOUR = ("-N", 2, "-n", 4, "--ntasks-per-node", 2)  # two on each node
SMALL = ("--samples", 60, "--seed", 7, "--set", "median=12KB", "--set", "classes=20")
MANY = ("--samples", 300, "--seed", 7, "--set", "median=12KB", "--set", "classes=20", "--threads", 1)
SLOWLY = ",latency=50ms"  # of a tier: so that a job is in the middle of its work without work for the processors
CLOCK_STEP_NS = 1000 * 10**9  # node 2's monotonic clock is so far ahead of node 1's


def records_in(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def tasks():
    """rank -> process number of the penstocks under srun on this machine's cluster, as the machine counts them."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and (folder / "exe").samefile(penstock_cli.PENSTOCK):
                words = dict(word.split("=", 1) for word in (folder / "environ").read_text(errors="replace").split("\0") if "=" in word)
                if words.get("SLURM_CONF") == str(SlurmTest.folder / "slurm.conf"):
                    found[int(words["SLURM_PROCID"])] = int(folder.name)
    return found


def processor_time(pid):
    """Seconds of the process, or 0 where it has gone."""
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0


class SlurmTest(penstock_cli.CliTest):
    folder = None

    def there(self, *words, expect=0, **kwargs):
        """ci/testbed/slurm WORDS."""
        kwargs.setdefault("cwd", self.dir)
        done = subprocess.run([SLURM, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=penstock_cli.PATIENCE_S, check=False, **kwargs)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def srun(self, *args, launch=FOUR, mpi="pmix", **kwargs):
        """srun of `penstock ARGS`."""
        return self.there("run", *launch, f"--mpi={mpi}", penstock_cli.PENSTOCK, *args, **kwargs)

    def begin(self, *args, launch=FOUR):
        """Starts srun of `penstock ARGS`, which is this very process."""
        job = subprocess.Popen([SLURM, "run", *map(str, launch), "--mpi=pmix", penstock_cli.PENSTOCK, *map(str, args)], cwd=self.dir,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(job.kill)
        return job

    def wait_for(self, job, condition):
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while not condition():
            if job.poll() is not None:
                self.fail(f"it ended before its time: {job.stdout.read()}")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def end(self, job):
        """What a job said that was told to end."""
        output, _ = job.communicate(timeout=penstock_cli.PATIENCE_S)
        return output

    def results(self):
        return sorted((self.dir / "penstock-results").glob("*"))

    def corpus(self, name="corpus", words=SMALL):
        """What one process makes of WORDS, made once for all tests."""
        made = self.folder.parent / f"imagenet-{words[1]}"
        if not made.exists():
            self.run_cli("generate", "imagenet", "--out", made, "--results", made.parent, *words)
        shutil.copytree(made, self.dir / name)
        return self.dir / name

    def left_behind(self):
        """Names that begin with a dot, below the test's folder: what is unfinished there."""
        return [path for path in self.dir.rglob(".*") if path.name != ".penstock"]


class Reading(SlurmTest):
    def test_one_record_of_all_ranks_of_both_nodes(self):
        self.corpus()
        done = self.srun("read", "corpus", "--verify", *QUICK, "--json")
        record, = records_in(done.stdout)
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assertEqual((record["parameters"]["ranks"], record["parameters"]["rank_scaling"]), (4, "strong"))
        metrics = {name: metric["samples"] for name, metric in record["metrics"].items()}
        for i, payload in enumerate(metrics["payload_bytes"]):
            self.assertEqual(payload % record["corpus"]["bytes"], 0, "whole passes, each sample read by one rank")
            self.assertAlmostEqual(metrics["payload_bytes_per_s"][i] * metrics["wall_s"][i], payload, delta=payload * 1e-6)
            # The slowest rank's wall, whose share of 15 samples is a quarter but for some per cent.
            self.assertGreaterEqual(metrics["wall_s"][i], 0.7 * payload / 4 / metrics["rank_min_bytes_per_s"][i])
        self.assertEqual(len(self.results()), 1)
        self.assertEqual(len(self.results()[0].read_text().splitlines()), 1)
        self.assertEqual(done.stderr.count("record: "), 1, done.stderr)
        self.assert_two_nodes(record)

    def assert_two_nodes(self, record):
        ranks = record["environment"]["ranks"]
        self.assertEqual([(rank["rank"], rank["host"], rank["rank_on_node"]) for rank in ranks],
                         [(0, "node1", 0), (1, "node1", 1), (2, "node2", 0), (3, "node2", 1)])
        apart = CLOCK_STEP_NS if pathlib.Path("/proc/self/ns/time").exists() else 0
        for rank in ranks:
            self.assertEqual(len(rank["clock"]), 2, "before the measurement and after it")
            for clock in rank["clock"]:
                known = apart if rank["host"] == "node2" else 0
                self.assertLessEqual(abs(clock["offset_ns"] - known), clock["error_ns"])
                self.assertLess(clock["error_ns"], 10**9)

    def test_a_shift_by_a_node_and_no_progress(self):
        self.corpus()
        done = self.srun("read", "corpus", "--rank-shift", 2, "--verify", *QUICK)
        self.assertEqual(done.stdout.count(message("strong-scaling-ranks", n=4)), 1, done.stdout)
        self.assertNotIn("\r", done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if not line.startswith(("penstock: record: ", "penstock: warning: "))], [])
        record, = records_in(self.results()[0].read_text())
        self.assertEqual((record["verdict"], record["parameters"]["rank_shift"]), ("ok", 2), record["reason"])

    def test_exit_codes_and_what_is_wrong_are_the_jobs(self):
        corpus = self.corpus()
        done = self.srun("read", "nowhere", expect=2)
        self.assertEqual(done.stderr.count("penstock read:"), 1, done.stderr)
        done = self.srun("describe", "corpus", expect=2)
        self.assertEqual(done.stderr.count(message("launched-as-ranks", n=4)), 1, done.stderr)
        victim = sorted(corpus.rglob("*.JPEG"))[-1]
        victim.write_bytes(bytes(victim.stat().st_size))
        record, = records_in(self.srun("read", "corpus", "--verify", *QUICK, "--json", expect=1).stdout)
        self.assertEqual(record["verdict"], "wrong_bytes")
        self.assertIn(victim.name, record["reason"])

    def begin_reading(self, launch=FOUR):
        """A job in the middle of its reading: what comes before takes no such time of a processor."""
        job = self.begin("read", "corpus", "--threads", 1, "--duration", "600s", "--repeat", 1, "--no-ceiling", "--no-baseline", launch=launch)
        self.wait_for(job, lambda: len([pid for pid in tasks().values() if processor_time(pid) > 0.5]) == 4)
        return job

    def test_a_rank_that_is_killed_ends_the_job_and_leaves_no_record(self):
        self.corpus()
        job = self.begin_reading()
        os.kill(tasks()[3], signal.SIGKILL)
        self.end(job)
        self.assertNotEqual(job.returncode, 0)
        self.assertEqual(tasks(), {})
        self.assertEqual((self.results(), self.left_behind()), ([], []))

    def test_a_signal_to_a_rank_of_another_node_stops_all(self):
        self.corpus()
        job = self.begin_reading()
        os.kill(tasks()[3], signal.SIGTERM)
        output = self.end(job)
        self.assertEqual(job.returncode, 143, output)
        record, = records_in(self.results()[0].read_text())
        self.assertEqual((record["verdict"], record["parameters"]["ranks"]), ("interrupted", 4))

    def test_an_interrupt_is_a_record_of_what_was_measured(self):
        """srun -X hands a Ctrl-C to its tasks; without it a second one ends them, and what they leave is a whole record or none."""
        self.corpus()
        job = self.begin_reading(launch=(*FOUR, "-X"))
        job.send_signal(signal.SIGINT)
        output = self.end(job)
        self.assertEqual(job.returncode, 130, output)
        record, = records_in(self.results()[0].read_text())
        self.assertEqual(record["verdict"], "interrupted")
        self.assertEqual(self.left_behind(), [])
        job = self.begin_reading()
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while job.poll() is None and time.monotonic() < deadline:
            job.send_signal(signal.SIGINT)
            time.sleep(0.2)
        self.end(job)
        self.assertNotEqual(job.returncode, 0)
        for written in self.results():
            record, = records_in(written.read_text())
            self.assertEqual(record["verdict"], "interrupted")
        self.assertEqual(self.left_behind(), [])


class WithoutPmix(SlurmTest):
    def test_ranks_that_cannot_meet_are_told_once_what_to_do(self):
        self.corpus()
        for mpi in ("none", "pmi2"):
            done = self.srun("read", "corpus", *QUICK, mpi=mpi, expect=77)
            self.assertEqual(done.stderr.count(message("srun-needs-pmix")), 1, done.stderr)
            self.assertIn("is 4, and", done.stderr)
            self.assertNotIn("MPI_ERRORS_ARE_FATAL", done.stderr)
            self.assertEqual((done.stdout, self.results()), ("", []))

    def test_one_task_is_a_plain_process_by_any_back_end(self):
        self.corpus()
        for corpus in ("corpus", f"mpiio:{self.dir}/corpus"):
            record, = records_in(self.srun("read", corpus, *QUICK, "--json", launch=("-n", 1), mpi="none").stdout)
            self.assertEqual((record["verdict"], record["parameters"]["ranks"]), ("ok", 1), record["reason"])
            self.assertIn(record["environment"]["host"], ("node1", "node2"))


class Generating(SlurmTest):
    def test_the_nodes_do_not_matter(self):
        self.corpus("alone")
        record, = records_in(self.srun("generate", "imagenet", "--out", "made", *SMALL, "--json").stdout)
        self.assert_same_tree("alone", "made")
        self.assertEqual((record["verdict"], record["parameters"]["ranks"]), ("ok", 4), record["reason"])
        self.assertEqual([rank["host"] for rank in record["environment"]["ranks"]], ["node1", "node1", "node2", "node2"])
        self.assertAlmostEqual(record["metrics"]["payload_bytes_per_s"]["value"] * record["metrics"]["wall_s"]["value"],
                               record["corpus"]["bytes"], delta=1)

    def test_a_place_that_only_one_node_sees_is_refused(self):
        done = self.srun("generate", "imagenet", "--out", "/dev/shm/made", *SMALL, expect=1)
        self.assertEqual(done.stderr.count("penstock generate:"), 1, done.stderr)
        self.assertIn(message("on-rank-of", n=2, n2=4), done.stderr)
        self.assertEqual(self.there("run", "-N", 2, "-n", 2, "find", "/dev/shm", "-type", "f").stdout, "", "no copy was started")

    def test_killed_on_one_node_and_resumed_by_others(self):
        self.corpus("whole", MANY)
        job = self.begin("generate", "imagenet", "--out", f"posix:{self.dir}/killed{SLOWLY}", *MANY)
        self.wait_for(job, lambda: len(penstock_cli.present(self.dir / "killed", "*.JPEG")) >= 20)
        os.kill(tasks()[2], signal.SIGKILL)
        self.end(job)
        self.assertNotEqual(job.returncode, 0)
        self.assertFalse((self.dir / "killed" / ".penstock" / "manifest").exists())
        self.assertEqual(self.results(), [])
        self.assert_resumed("killed")

    def test_cancelled_and_resumed_by_others(self):
        self.corpus("whole", MANY)
        job = self.begin("generate", "imagenet", "--out", f"posix:{self.dir}/cancelled{SLOWLY}", *MANY)
        self.wait_for(job, lambda: len(penstock_cli.present(self.dir / "cancelled", "*.JPEG")) >= 20)
        number = self.there("exec", "squeue", "-h", "-o", "%A").stdout.split()
        self.there("exec", "scancel", *number)
        self.end(job)
        self.assertNotEqual(job.returncode, 0)
        self.assertFalse((self.dir / "cancelled" / ".penstock" / "manifest").exists())
        record, = records_in(self.results()[0].read_text())
        self.assertEqual(record["verdict"], "interrupted")
        self.assert_resumed("cancelled")

    def assert_resumed(self, out):
        record, = records_in(self.srun("generate", "imagenet", "--out", out, "--resume", *MANY, "--json", launch=("-N", 2, "-n", 2)).stdout)
        self.assertEqual(record["verdict"], "ok", record["reason"])
        self.assert_same_tree(out, "whole")


class Probing(SlurmTest):
    def test_a_tier_of_each_node_and_one_of_all(self):
        (self.dir / "place").mkdir()
        done = self.srun("tiers", "--probe", "--tier", "nvme=/dev/shm", "--tier", f"pfs={self.dir}/place", "--probe-size", "1MiB", "--min-time",
                         "20ms", "--repeat", 2, "--threads", 1, "--depths", 1, "--blocks", "4KiB", "--json")
        records = records_in(done.stdout)
        self.assertEqual(len(records), 2)
        for record in records:
            self.assertIn(record["verdict"], ("ok", "short"), record["reason"])
            self.assertEqual((record["parameters"]["ranks"], record["parameters"]["rank_scaling"]), (4, "weak"))
            rate = record["metrics"]["write.sequential.1m.1.bytes_per_s"]["value"]
            self.assertAlmostEqual(record["metrics"]["write.sequential.1m.1.bytes_per_s_per_client"]["value"] * 4, rate, delta=rate * 1e-6)
        self.assertEqual(list((self.dir / "place").iterdir()), [])
        self.assertEqual(self.there("run", "-N", 2, "-n", 2, "find", "/dev/shm", "-name", "*penstock*").stdout, "")
        self.assertEqual(len(self.results()), 1)


class Batches(SlurmTest):
    def test_a_script_sweeps_threads_and_a_step_is_not_its_own_job(self):
        """What the script itself runs is one process; its steps, and what mpirun starts in its allocation, are jobs of ranks."""
        self.corpus()
        script = self.dir / "sweep.sh"
        program = penstock_cli.PENSTOCK
        words = f"read corpus {' '.join(map(str, QUICK[:-2]))} --no-baseline --json"
        script.write_text(f"""#!/bin/sh
#SBATCH --nodes 2 --ntasks-per-node 2 --output out
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
{program} {words} --threads 1
srun --mpi=pmix {program} {words} --threads 1,2
mpirun {program} {words} --threads 1
touch finished
""", encoding="utf-8")
        self.there("exec", "sbatch", script)
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while not (self.dir / "finished").exists():  # `sbatch --wait` looks every few seconds alone
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        # As the files have them: mpirun may lose the end of what its ranks print when they are gone.
        files = sorted(self.results(), key=lambda file: file.stat().st_mtime_ns)
        cells = [(record["parameters"]["ranks"], record["parameters"]["threads"], record["verdict"])
                 for file in files for record in records_in(file.read_text())]
        self.assertEqual(cells, [(1, 1, "ok"), (4, 1, "ok"), (4, 2, "ok"), (4, 1, "ok")], (self.dir / "out").read_text())
        self.assertEqual(len(files), 3)
        self.assertGreaterEqual((self.dir / "out").read_text().count('{"schema":1,'), 4)

    def test_a_sweep_over_ranks(self):
        self.corpus()
        environment = {**os.environ, "LAUNCHER": f"{SLURM} run --mpi=pmix -N 2 -n"}
        done = subprocess.run([TESTBED / "rank_sweep", "2,4", "corpus", *map(str, QUICK[:-2]), "--threads", "1", "--no-baseline"],
                              capture_output=True, text=True, cwd=self.dir, env=environment, timeout=penstock_cli.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([line.split()[1:3] for line in done.stdout.splitlines()[1:]], [["2", "1"], ["4", "1"]])


class Testbed(penstock_cli.CliTest):
    """Clusters of their own, which do not come up."""
    def slurm(self, *words, **environment):
        return subprocess.run([SLURM, *words], capture_output=True, text=True, cwd=self.dir, env={**os.environ, **environment}, timeout=120,
                              check=False)

    def test_half_up_and_down(self):
        (self.dir / "bin").mkdir()
        false = self.dir / "bin" / "slurmctld"
        false.write_text("#!/bin/sh\necho no luck today\nexit 1\n", encoding="utf-8")
        false.chmod(0o755)
        cluster = str(self.dir / "cluster")
        done = self.slurm("up", cluster, PATH=f"{false.parent}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no luck today", done.stderr)
        self.assertNotEqual(self.slurm("run", "true", PENSTOCK_TEST_SLURM=cluster).returncode, 0)
        self.assertEqual(self.slurm("down", cluster).returncode, 0)
        self.assertFalse((self.dir / "cluster").exists())
        self.assertEqual(self.slurm("down", cluster).returncode, 0, "nothing is there, and that is well")

    def test_what_is_not_its_own_is_left_alone(self):
        (self.dir / "kept").write_text("water", encoding="utf-8")
        for word in ("up", "down"):
            self.assertEqual(self.slurm(word, str(self.dir)).returncode, 1)
        self.assertEqual([path.name for path in self.dir.iterdir()], ["kept"])


def lacking():
    """Why none of this can run here, or None."""
    if penstock_cli.SANITIZED or not MODULE.exists():
        return "a build with the MPI module and without sanitizers is needed"
    probe = subprocess.run([SLURM, "check"], capture_output=True, text=True, check=False)
    return probe.stderr if probe.returncode == 77 else None


if __name__ == "__main__":
    reason = lacking()
    if reason:
        print(reason.strip(), file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="penstock-test-") as scratch:
        SlurmTest.folder = pathlib.Path(scratch) / "cluster"
        os.environ.update(PENSTOCK_TEST_SLURM=str(SlurmTest.folder), OMPI_MCA_mpi_yield_when_idle="1")
        try:
            subprocess.run([SLURM, "up"], check=True, stdout=subprocess.DEVNULL)
            penstock_cli.main()
        finally:
            subprocess.run([SLURM, "down"], check=False)
