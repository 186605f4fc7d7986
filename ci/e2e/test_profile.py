"""`penstock profile` from outside: how it runs a program, and what it makes of sessions, whole ones and damaged ones."""

import csv
import ctypes.util
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

from messages import message
import penstock_cli

SEEDS = penstock_cli.SOURCE / "profiling" / "fuzz_seeds" / "session"
LIBRARY = pathlib.Path(penstock_cli.PENSTOCK).resolve().parent / "libpenstock_profile.so"


def ended_processes_report():
    """Whether this kernel says what a process moved that has ended and was not waited for; some tell only root."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        pathlib.Path(f"/proc/{child.pid}/io").read_text(encoding="utf-8")
        return True
    except PermissionError:
        return False
    finally:
        child.wait()


class Run(penstock_cli.CliTest):
    """Any library does to see how a program is run: nothing is recorded then."""

    def profile(self, *command, session="s", library=ctypes.util.find_library("m"), expect=None, **kwargs):
        environment = dict(os.environ, PENSTOCK_PROFILE_LIBRARY=f"{self.dir}/any.so")
        (self.dir / "any.so").unlink(missing_ok=True)
        found = next(folder / library for folder in map(pathlib.Path, ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                     "/lib64", "/usr/lib64", "/usr/lib", "/lib")) if (folder / library).exists())
        (self.dir / "any.so").symlink_to(found)
        return self.run_cli("profile", "run", "-o", session, "--", *command, expect=expect, env=environment, **kwargs)

    def test_exits_as_the_command_did(self):
        for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143), ("kill -INT $$", 130)):
            shutil.rmtree(self.dir / "s", ignore_errors=True)
            self.profile("sh", "-c", script, expect=code)

    def test_the_commands_arguments_are_its_own(self):
        done = self.profile("printf", "%s|", "--json", "--", "-o", "", "a b", expect=0)
        self.assertEqual(done.stdout, "--json|--|-o||a b|")
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)

    def test_the_session_is_its_owners(self):
        os.umask(0o000)
        self.addCleanup(os.umask, 0o022)
        self.profile("true", expect=0)
        self.assertEqual(stat.S_IMODE((self.dir / "s").stat().st_mode), 0o700)
        note = json.loads((self.dir / "s" / "session.json").read_text())
        self.assertEqual((note["command"], note["exit_code"]), (["true"], 0))
        self.assertEqual(stat.S_IMODE((self.dir / "s" / "session.json").stat().st_mode), 0o600)
        done = self.profile("true", expect=2)
        self.assertIn(message("folder-not-empty"), done.stderr)
        self.assertIn("-o", done.stderr)

    def test_says_why_a_program_cannot_be_run_or_watched(self):
        self.assertIn(message("no-such-program"), self.profile("no-such-program", expect=127).stderr)
        (self.dir / "data").write_text("x")
        self.profile("./data", expect=126)
        (self.dir / "data").chmod(0o755)
        self.profile("./data", expect=126)
        self.assertFalse((self.dir / "s").exists())
        if shutil.which("cc"):
            (self.dir / "m.c").write_text("int main(void) { return 0; }\n")
            if subprocess.run(["cc", "-static", "-o", "fixed", "m.c"], cwd=self.dir, capture_output=True, check=False).returncode == 0:
                self.assertIn("statically", self.profile("./fixed", expect=2).stderr)
        self.run_cli("profile", "run", "--", expect=2)
        self.run_cli("profile", "run", "--by", "mount", "--", "true", expect=2)

    def test_signals_reach_the_program_and_its_end_is_ours(self):
        environment = dict(os.environ, PENSTOCK_PROFILE_LIBRARY="/no/such/library")
        self.run_cli("profile", "run", "--", "true", expect=1, env=environment)
        for how in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
            shutil.rmtree(self.dir / "s", ignore_errors=True)
            name = signal.Signals(how).name[3:]
            done = self.profile("sh", "-c", f"trap 'exit 42' {name}; kill -{name} $PPID; while :; do sleep 0.05; done")
            self.assertEqual(done.returncode, 42, done.stderr)

    def test_ignored_and_blocked_signals_stay_so(self):
        blocked = {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2}
        ignored = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXFSZ, signal.SIGUSR1)

        def in_the_background():
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

        def ignored_and_blocked_by(words):
            done = subprocess.run([*words, "grep", "-E", "SigIgn|SigBlk", "/proc/self/status"], cwd=self.dir, capture_output=True, text=True, check=True,
                                  restore_signals=False, preexec_fn=in_the_background)
            # glibc's posix_spawn() ignores two signals of its own, 32 and 33.
            return [int(word, 16) & 0x7fffffff for word in done.stdout.split()[1::2]]

        self.assertEqual(ignored_and_blocked_by([penstock_cli.PENSTOCK, "profile", "run", "-o", "s", "--"]), ignored_and_blocked_by([]))

    def test_descriptors_are_inherited(self):
        with open(self.dir / "out", "w", encoding="utf-8") as out:
            os.set_inheritable(out.fileno(), True)
            self.profile("sh", "-c", f"echo here >&{out.fileno()}", expect=0, pass_fds=(out.fileno(),))
        self.assertEqual((self.dir / "out").read_text(), "here\n")


class Report(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        (self.dir / "s").mkdir()
        shutil.copy(SEEDS / "traced", self.dir / "s" / "100-5.session")

    def lines(self, *args):
        return [json.loads(line) for line in self.run_cli("profile", "report", *args, "--json").stdout.splitlines()]

    def test_the_session_then_its_files(self):
        session, *files = self.lines("s")
        self.assertEqual(session["kind"], "session")
        self.assertEqual({file["kind"] for file in files}, {"file"})
        self.assertEqual(session["bytes_read"], sum(file["bytes_read"] for file in files))
        self.assertEqual(session["files"], sum(file["type"] == "file" for file in files))
        self.assertEqual(session["coverage"]["rchar"]["fraction"], round(60000 / 89900, 6))
        self.assertNotIn("/usr/lib/python3.11/os.py", {file["path"] for file in files})
        every = self.lines("s", "--all")
        self.assertIn("/usr/lib/python3.11/os.py", {file["path"] for file in every[1:]})
        only = self.lines("s", "--include", "/data/a")
        self.assertEqual([file["path"] for file in only[1:]], ["/data/a"])

    def test_a_rate_in_calls_is_that_of_a_thread(self):
        """The rate while in calls is the bytes over the calls' time, added over threads: the text says of which it is."""
        units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
        text = self.run_cli("profile", "report", "s").stdout
        rate, rate_unit, took, took_unit = re.search(r"([\d. ]+) (\wiB|B)/s per thread during calls; calls took ([\d.]+) (\w+) summed over threads",
                                                     text).groups()
        session, *_ = self.lines("s")
        moved = float(rate.replace(" ", "")) * units[rate_unit] * float(took) * units[took_unit]
        self.assertAlmostEqual(moved / session["bytes_read"], 1, delta=0.02)

    def test_other_rows(self):
        self.assertEqual([row["kind"] for row in self.lines("s", "--by", "process")], ["session", "process"])
        self.assertIn("/data", [row["path"] for row in self.lines("s", "--by", "directory")[1:]])
        self.assertEqual([row["kind"] for row in self.lines("s", "--by", "mount")], ["session", "mount"])
        self.assertEqual(len(self.lines("s", "--top", "1")), 2)
        for by in ("file", "mount", "process", "directory"):
            text = self.run_cli("profile", "report", "s", "--by", by).stdout
            self.assertIn("coverage", text)
            self.assertIn("to show them: --all", text)

    def test_a_damaged_file_does_not_hide_the_others(self):
        torn = bytearray((SEEDS / "torn").read_bytes())
        torn[24:28] = (200).to_bytes(4, sys.byteorder)  # pid: of a process of its own
        (self.dir / "s" / "200-5.session").write_bytes(torn)
        (self.dir / "s" / "300-5.session").write_bytes(b"\0" * 20000)
        (self.dir / "s" / "session.json").write_text("{")
        done = self.run_cli("profile", "report", "s", "--json")
        self.assertIn("300-5.session", done.stderr)
        session = json.loads(done.stdout.splitlines()[0])
        self.assertEqual(len(session["problems"]), 2)
        self.assertIn(message("session-file-cut-short", n=200), session["problems"][0])
        self.assertEqual(session["coverage"]["cut_processes"], 1)
        text = self.run_cli("profile", "report", "s").stdout
        self.assertIn(message("session-files-cut-short"), text)
        self.assertIn("the content of 2 files of the session", text)
        self.run_cli("profile", "export", "--to", "records", "s", "-o", "runs")
        records = [json.loads(line) for path in (self.dir / "runs").iterdir() for line in path.read_text().splitlines()]
        self.assertEqual({record["verdict"] for record in records}, {"degraded"})
        self.run_cli("profile", "report", "none", expect=1)
        self.run_cli("profile", "report", expect=2)

    def test_a_page_holds_all_that_it_shows(self):
        self.run_cli("profile", "report", "s", "--html", "r.html")
        page = (self.dir / "r.html").read_text(encoding="utf-8")
        self.assertIn("/data/a", page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["r.html", "s"])
        done = self.run_cli("profile", "report", "s", "--html", "r.html", "--json")
        self.assertEqual(done.stdout, self.run_cli("profile", "report", "s", "--json").stdout)

    def test_exports(self):
        done = self.run_cli("profile", "export", "--to", "csv", "s", "-o", "f.csv")
        with open(self.dir / "f.csv", newline="", encoding="latin-1") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["path"] for row in rows if row["type"] == "directory"}, {"/data"})
        self.assertTrue(all(None not in row and None not in row.values() for row in rows))
        self.assertIn(f": {len(rows)} rows\n", done.stderr)
        self.run_cli("profile", "export", "--to", "chrome", "s", "-o", "t.json")
        events = json.loads((self.dir / "t.json").read_text(encoding="utf-8"))["traceEvents"]
        self.assertTrue(any(event["ph"] == "X" and event["name"] == "read" for event in events))
        self.run_cli("profile", "export", "s", "-o", "x", expect=2)
        self.run_cli("profile", "export", "--to", "csv", "s", expect=2)
        self.run_cli("profile", "export", "--to", "vampir", "s", "-o", "x", expect=2)

    def test_nothing_is_written_over_the_session_that_it_is_made_of(self):
        session = self.dir / "s"
        before = {path: path.read_bytes() for path in session.rglob("*") if path.is_file()}
        target = next(path for path in before if path.suffix == ".session")
        for words in (("export", "--to", "csv", "s", "-o", target), ("export", "--to", "records", "s", "-o", "s"),
                      ("report", "s", "--html", target)):
            self.assertIn(message("output-inside-session"), self.run_cli("profile", *words, expect=2).stderr)
        self.assertEqual({path: path.read_bytes() for path in session.rglob("*") if path.is_file()}, before)

    def test_records_are_drawn_by_the_report(self):
        self.run_cli("profile", "export", "--to", "records", "--tier", "fast=/data", "s", "-o", "runs")
        record, = [json.loads(line) for path in (self.dir / "runs").iterdir() for line in path.read_text().splitlines()]
        self.assertEqual((record["command"], record["parameters"]["tier"]), ("profile", "fast"))
        self.run_cli("report", "runs", "-o", "r.html")
        self.assertTrue('id="reading"' in (self.dir / "r.html").read_text(encoding="utf-8"), "no bandwidth by threads and tiers")

    def test_top_shows_what_has_ended_once(self):
        for words in ((), ("--once",)):
            line, = self.run_cli("profile", "top", "s", "--json", *words).stdout.splitlines()
            top = json.loads(line)
            self.assertEqual((top["processes"], top["bytes_read"]), (0, 49152))
            self.assertEqual(len(top["hottest"]), 4)  # two of the names share a key
            self.assertEqual(sum(file["bytes_read"] for file in top["hottest"]), top["bytes_read"])
        text = self.run_cli("profile", "top", "s").stdout
        self.assertIn("/data/a", text)
        self.assertFalse(re.search(r"^last ", text, re.MULTILINE), f"nothing of it is current: {text}")
        self.run_cli("profile", "top", os.getpid(), expect=1)


@unittest.skipUnless(LIBRARY.exists(), "this build has no libpenstock_profile.so")
class Watched(penstock_cli.CliTest):
    """The whole way: a program, its session, the report."""

    def report(self, session, *args):
        return [json.loads(line) for line in self.run_cli("profile", "report", session, "--json", *args).stdout.splitlines()]

    def test_every_byte_of_a_copy(self):
        (self.dir / "data").mkdir()
        for i in range(64):
            (self.dir / "data" / str(i)).write_bytes(bytes(1000 + i))
        self.run_cli("profile", "run", "-o", "s", "--", "sh", "-c", "cat data/* > all; exit 3", expect=3)
        session, *files = self.report("s", "--include", f"{self.dir}/*")
        sizes = {file["path"]: file for file in files}
        for i in range(64):
            self.assertEqual(sizes[f"{self.dir}/data/{i}"]["bytes_read"], 1000 + i)
        written = sum(1000 + i for i in range(64))
        self.assertEqual(sizes[f"{self.dir}/all"]["bytes_written"], written)
        self.assertEqual((session["bytes_written"], session["dropped"]), (written, 0))

    def test_a_pipe_with_a_name_is_no_file(self):
        (self.dir / "data").write_bytes(bytes(200_000))
        os.mkfifo(self.dir / "pipe")
        (self.dir / "by").symlink_to(".")
        for name, folder in (("pipe", "s"), ("by/pipe", "t")):
            self.run_cli("profile", "run", "-o", folder, "--", "sh", "-c", f"cat data > {name} & cat {name} > copy; wait", expect=0)
            session, *files = self.report(folder)
            self.assertNotIn(f"{self.dir}/{name}", [file["path"] for file in files])
            self.assertEqual((session["bytes_read"], session["bytes_written"]), (200_000, 200_000))
            pipe, = [file for file in self.report(folder, "--all", "--include", f"{self.dir}/{name}")[1:] if file["bytes_read"]]
            self.assertEqual((pipe["type"], pipe["bytes_read"]), ("other", 200_000))

    def test_a_stat_of_a_link_does_not_describe_its_file(self):
        (self.dir / "data").write_bytes(bytes(200_000))
        (self.dir / "link").symlink_to("data")
        self.run_cli("profile", "run", "-o", "s", "--", "sh", "-c", "ls -l link; cat link > copy; ls -l link", expect=0)
        link, = [file for file in self.report("s")[1:] if file["path"] == f"{self.dir}/link"]
        self.assertEqual((link["type"], link["bytes_read"]), ("file", 200_000))
        (self.dir / "folder").mkdir()
        (self.dir / "to-folder").symlink_to("folder")
        self.run_cli("profile", "run", "-o", "f", "--", sys.executable, "-c", "import os; os.lstat('to-folder'); os.listdir('to-folder')", expect=0)
        folder, = [file for file in self.report("f")[1:] if file["path"] == f"{self.dir}/to-folder"]
        self.assertEqual(folder["type"], "directory")

    def test_a_descriptor_that_libc_turned_into_another_is_noticed(self):
        script = ("import ctypes, os; out = os.open('out', os.O_WRONLY | os.O_CREAT); os.dup2(out, 1); os.write(1, bytes(100_000));"
                  "ctypes.CDLL(None).daemon(1, 0); os.fstat(1); os.write(1, b'lost'); os.fstat(1)")
        self.run_cli("profile", "run", "-o", "s", "--", sys.executable, "-c", script, expect=0)
        until = time.monotonic() + penstock_cli.PATIENCE_S
        while time.monotonic() < until and self.report("s")[0]["coverage"].get("running_processes", 0) > 0:
            time.sleep(0.05)
        out, = [file for file in self.report("s")[1:] if file["path"] == f"{self.dir}/out"]
        self.assertEqual((out["type"], out["bytes_written"]), ("file", 100_000))

    def test_a_file_is_as_long_as_it_was_made(self):
        script = "import os; a = os.open('a', os.O_RDWR | os.O_CREAT); os.ftruncate(a, 300_000); os.ftruncate(a, 100)"
        self.run_cli("profile", "run", "-o", "s", "--", sys.executable, "-c", script, expect=0)
        made, = [file for file in self.report("s")[1:] if file["path"] == f"{self.dir}/a"]
        self.assertEqual(made["size"], 300_000, "the largest that was seen")

    def test_records_of_a_reading_are_those_that_it_wrote_itself(self):
        (self.dir / "photos").mkdir()
        for i in range(20):
            (self.dir / "photos" / f"{i}.jpg").write_bytes(os.urandom(100_000))
        self.run_cli("profile", "run", "-o", "s", "--", penstock_cli.PENSTOCK, "read", "photos", "--scan", "--threads", "2", "--min-time", "20ms",
                     "--repeat", "3", "--results", "own", expect=0)
        self.run_cli("profile", "export", "--to", "records", "s", "-o", "exported")
        own, exported = ([json.loads(line) for path in (self.dir / folder).iterdir() for line in path.read_text().splitlines()]
                         for folder in ("own", "exported"))
        self.assertEqual(len(exported), 1, "neither /proc nor /etc is a tier")
        self.assertEqual([record["parameters"]["threads"] for record in own + exported], [2, 2])
        rates = [record["metrics"]["payload_bytes_per_s"] for record in own + exported]
        self.assertEqual(len(rates[0]["samples"]), len(rates[1]["samples"]))
        for one, other in zip(rates[0]["samples"], rates[1]["samples"]):
            self.assertAlmostEqual(one / other, 1, delta=0.01)

    @unittest.skipUnless(penstock_cli.has_library("uplot"), "this build has no uplot (ci/fetch_chart_library brings it)")
    def test_sessions_of_one_program_share_a_chart(self):
        (self.dir / "photos").mkdir()
        for i in range(20):
            (self.dir / "photos" / f"{i}.jpg").write_bytes(os.urandom(100_000))
        for threads in (1, 2):
            self.run_cli("profile", "run", "-o", f"s{threads}", "--", penstock_cli.PENSTOCK, "read", "photos", "--scan", "--threads", threads,
                         "--min-time", "20ms", "--results", "own", expect=0)
        self.run_cli("profile", "export", "--to", "records", "s1", "s2", "-o", "runs")
        self.run_cli("report", "runs", "-o", "r.html")
        page = (self.dir / "r.html").read_text(encoding="utf-8")
        charts = json.loads(re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)[1])
        self.assertEqual([chart["x"] for chart in charts if len(chart["series"]) == 1], [[1, 2]])

    def test_children_of_a_process_that_does_nothing_before_they_end(self):
        (self.dir / "data").write_bytes(bytes(20_000_000))
        (self.dir / "small").write_text("x\n")
        # The subshell's own file begins after the end of the process that it waited for, which is still its child.
        self.run_cli("profile", "run", "-o", "s", "--", "bash", "-c", "for i in 1 2 3; do (cat data | wc -c; read x < small); done", expect=0)
        session, *_ = self.report("s")
        for way in ("rchar", "wchar"):
            self.assertGreater(session["coverage"][way]["fraction"], 0.99, way)
            self.assertLess(session["coverage"][way]["fraction"], 1.01, way)

    def test_a_killed_program_leaves_what_it_did(self):
        (self.dir / "data").write_bytes(bytes(300_000))
        self.run_cli("profile", "run", "-o", "s", "--", "sh", "-c", "cat data data | wc -c; read x < data; kill -KILL $$", expect=137)
        session, *files = self.report("s")
        self.assertEqual(session["coverage"]["unknown_processes"], 0 if ended_processes_report() else 1)
        found, = [file for file in files if file["path"] == f"{self.dir}/data"]
        self.assertGreaterEqual(found["bytes_read"], 600_000)

    def test_top_shows_a_program_that_runs(self):
        (self.dir / "data").write_bytes(bytes(100_000))
        process = self.start("profile", "run", "-o", "s", "--", "sh", "-c", "while :; do read x < data; done")
        try:
            until = time.monotonic() + penstock_cli.PATIENCE_S
            top = {"operations": 0}
            while top["operations"] == 0 and time.monotonic() < until:
                done = self.run_cli("profile", "top", "s", "--once", "--interval", "200ms", "--json", expect=None)
                top = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else top
            self.assertGreater(top["processes"], 0)
            self.assertIn(f"{self.dir}/data", [file["path"] for file in top["hottest"]])
        finally:
            process.terminate()
            self.assertEqual(process.wait(timeout=penstock_cli.PATIENCE_S), 143)
            process.communicate()


if __name__ == "__main__":
    penstock_cli.main()
