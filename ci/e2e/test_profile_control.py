#!/usr/bin/env python3
"""Tracing on demand: what runs under the profiler is armed and disarmed from outside, and keeps that many calls and no more.
What is kept and what is counted is held against what the programs say that they did."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from messages import message
from penstock_cli import BUILD, PENSTOCK, main
from profile_control_case import ControlTest, LIBRARY, READER

MPI = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
EDGE_NS = 50_000_000  # by which the clocks of two processes may differ

# A rank of a job: reads until a file is there.
RANK = textwrap.dedent("""
    import os, sys, time
    path = sys.argv[1] + os.environ["OMPI_COMM_WORLD_RANK"]
    fd = os.open(path, os.O_RDONLY)
    done = 0
    def say(what):
        # All ranks share mpirun's output, which cuts their lines as it likes.
        with open(path + ".part", "w") as file:
            file.write(str(what))
        os.rename(path + ".part", path + "." + ("said" if what == "ready" else "made"))
    say("ready")
    while not os.path.exists(sys.argv[2]):
        os.pread(fd, 100, done * 100)
        done += 1
        time.sleep(0.001)
    say(done)
""")

# Forks a child that does nothing but fork another one and end; then both that are left read, until a file is there.
GRANDPARENT = textwrap.dedent("""
    import os, sys, time
    folder = sys.argv[1]
    def read(path):
        fd = os.open(path, os.O_RDONLY)
        while not os.path.exists(folder + "/stop"):
            os.pread(fd, 10, 0)
            time.sleep(0.002)
    print("ready", flush=True)
    sys.stdin.readline()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            read(folder + "/grandchild")
        os._exit(0)
    os.waitpid(child, 0)
    read(folder + "/parent")
""")

# Forks while another thread goes from window to window: each child opens one of its own.
WINDOWS = textwrap.dedent("""
    import ctypes, os, signal, sys, threading
    profile = ctypes.CDLL(None)
    over = []
    def windows():
        while not over:
            profile.penstock_profile_start(None, b"window")
            profile.penstock_profile_stop()
    thread = threading.Thread(target=windows)
    thread.start()
    failed = 0
    for i in range(int(sys.argv[2])):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            profile.penstock_profile_stop()
            profile.penstock_profile_start(None, b"child")
            fd = os.open(sys.argv[1], os.O_RDONLY)
            os.pread(fd, 100, 0)
            profile.penstock_profile_stop()
            os._exit(0)
        failed += os.waitpid(child, 0)[1] != 0
    over.append(1)
    thread.join()
    print(failed, flush=True)
""")

# One thread after the other, three at a time, each of that many reads; offsets tell which read it was.
THREADS = textwrap.dedent("""
    import os, sys, threading
    path, threads, reads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    fd = os.open(path, os.O_RDONLY)
    def read(number):
        for i in range(reads):
            os.pread(fd, 100, (number * reads + i) * 100)
    for first in range(0, threads, 3):
        some = [threading.Thread(target=read, args=(number,)) for number in range(first, min(first + 3, threads))]
        for thread in some: thread.start()
        for thread in some: thread.join()
""")

# Forks and executes while somebody traces: each of them reads its own file.
FAMILY = textwrap.dedent("""
    import os, sys, time
    def read(path, seconds):
        fd = os.open(path, os.O_RDONLY)
        end, done = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            os.pread(fd, 10, 0)
            done += 1
            time.sleep(0.002)
        os.close(fd)
    folder = sys.argv[1]
    if len(sys.argv) > 2:
        read(folder + "/executed", float(sys.argv[2]))
        sys.exit(0)
    print("ready", flush=True)
    sys.stdin.readline()
    child = os.fork()
    if child == 0:
        read(folder + "/forked", 1.0)
        os.execv(sys.executable, [sys.executable, sys.argv[0], folder, "2.5"])
    read(folder + "/parent", 3.5)
    os.waitpid(child, 0)
""")


def may_use_mpi():
    if shutil.which("mpirun") is None:
        return "no mpirun here"
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=60, check=False)
    return "" if message("mpirun-is-open-mpi") in done.stdout else "this mpirun is not Open MPI's"


class Bounded(ControlTest):
    def run_traced(self, script, *words, limit="128KiB"):
        session = self.folder / "s"
        self.profile("run", "--trace", "--trace-limit", limit, "-o", session, "--", sys.executable, "-c", script, self.data, *words)
        return session

    def test_the_oldest_calls_give_way_and_are_counted(self):
        made = 20000
        session = self.run_traced(READER, made, 0)
        output, files = self.report(session)
        self.assertEqual(files[str(self.data)]["reads"], made, "counters are never bounded")
        reads, trace = self.calls(session, self.data)
        kept = sorted(event["args"]["offset"] // 100 for event in reads)
        self.assertGreater(len(kept), 1500)
        self.assertLessEqual(len(kept), (128 << 10) // 48)
        self.assertEqual(kept, list(range(made - len(kept), made)), "the last ones, and no gap")
        # Every call of the program is either kept or counted as dropped: all of them are in the whole of the counters.
        full = self.folder / "full"
        self.profile("run", "--trace", "--trace-limit", "0", "-o", full, "--", sys.executable, "-c", READER, self.data, made, 0)
        whole = self.report(full)[0]
        self.assertEqual(whole["drops"]["segments"], 0)
        self.assertAlmostEqual(output["drops"]["segments"] + output["calls_kept"]["calls"], whole["calls_kept"]["calls"], delta=20)
        self.assertEqual(len(self.calls(full, self.data)[0]), made)
        self.assertEqual(trace["otherData"]["calls_dropped"], output["drops"]["segments"])
        self.assertIn(message("oldest-calls-dropped"), self.profile("report", "--all", session).stdout)
        self.assertIn(message("calls-kept-count"), self.profile("report", "--all", session).stdout)
        self.profile("report", "--all", "--html", self.folder / "page.html", session)
        self.assertIn(message("oldest-calls-dropped"), (self.folder / "page.html").read_text())
        self.assertIn("missing", self.profile("export", "--to", "chrome", session, "-o", self.folder / "t.json").stderr)
        self.assertEqual(self.ask("export", "--to", "darshan", session, "-o", self.folder / "log")[0]["records"] > 0, True)
        self.assertLess(sum(file.stat().st_size for file in session.glob("*.session")), 2 << 20)

    def test_threads_that_come_and_go(self):
        threads, reads = 300, 100
        session = self.run_traced(THREADS, threads, reads)
        output, files = self.report(session)
        self.assertEqual(files[str(self.data)]["reads"], threads * reads)
        events, _ = self.calls(session, self.data)
        kept = sorted(event["args"]["offset"] // 100 for event in events)
        self.assertEqual(len(kept), len(set(kept)))
        # Each thread at a time may have a block beyond the limit: three, and on a busy machine those that Python takes for ended.
        self.assertLessEqual(len(kept), ((128 << 10) + 10 * 16384) // 48)
        self.assertGreater(output["drops"]["segments"], threads * reads - len(kept) - 1)
        self.assertEqual(kept[-1], threads * reads - 1)
        # The last 300 calls are all kept, of every thread.
        self.assertEqual(kept[-300:], list(range(threads * reads - 300, threads * reads)))

    def test_what_is_usual_and_what_is_refused(self):
        session = self.folder / "s"
        process, pid = self.reader(session)
        self.assertEqual(self.ask("status", session)[-1]["trace_limit"], 256 << 20)
        self.assertEqual(self.ask("status", pid)[0]["trace_limit"], 256 << 20)
        self.assertIn("128KiB", self.profile("run", "--trace-limit", "1KiB", "--", "true", expect=2).stderr)
        self.end(process)


class OnDemand(ControlTest):
    def test_one_process(self):
        session = self.folder / "s"
        process, pid = self.reader(session)
        self.assertFalse(self.ask("status", pid)[0]["trace"])
        row, = self.ask("trace", "on", pid)
        self.assertEqual((row["pid"], row["trace"], row["changed"], row["failed"]), (pid, True, True, ""))
        self.assertTrue(self.ask("status", session)[0]["trace"])
        self.assertIn(message("status-every-call-kept"), self.profile("status", pid).stdout)
        self.assertIn(message("unchanged-as-before"), self.profile("trace", "on", pid).stdout)
        time.sleep(0.3)
        self.assertIn("counted", self.profile("trace", "off", session).stdout)
        self.assertFalse(self.ask("status", pid)[0]["trace"])
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        made = int(process.stdout.readline())
        process.wait(timeout=60)
        output, files = self.report(session)
        self.assertEqual(files[str(self.data)]["reads"], made)
        kept = len(self.calls(session, self.data)[0])
        self.assertGreater(kept, 0)
        self.assertLess(kept, made)
        self.assertGreaterEqual(output["calls_kept"]["calls"], kept)
        self.assertIn(message("nothing-running"), self.profile("trace", "on", session, expect=1).stderr)
        self.assertIn(message("nothing-running"), self.profile("status", session).stdout)
        self.assertIn(message("process-not-watched"), self.profile("trace", "on", os.getpid(), expect=1).stderr)

    def test_arguments_that_make_no_sense(self):
        for words, expected in ((("trace",), "on|off"), (("trace", "on"), "on|off"), (("trace", "up", "1"), "on or off"),
                            (("trace", "off", "1", "--for", "1s"), "--for"), (("trace", "on", "1", "--for", "0s"), "--for"),
                            (("snapshot",), "snapshot"), (("status",), "status"), (("status", "1", "--for", "1s"), "for")):
            self.assertIn(expected, self.profile(*words, expect=2).stderr, words)
        self.assertIn("neither", self.profile("trace", "on", self.folder / "none", expect=1).stderr)

    def test_ctrl_c_and_a_lost_terminal_disarm(self):
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))  # nohup's is inherited
        session = self.folder / "s"
        process, pid = self.reader(session)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            tracing = self.trace_for(pid, "60s", "--json")
            self.wait_until_traced(pid)
            tracing.send_signal(number)
            out, _ = tracing.communicate(timeout=30)
            self.assertEqual(tracing.returncode, 128 + number)
            self.assertFalse(self.ask("status", pid)[0]["trace"])
            self.assertGreater(json.loads(out)["kept_s"], 0)
        self.end(process)

    def test_a_process_that_ends_meanwhile(self):
        session = self.folder / "s"
        process, pid = self.reader(session)
        tracing = self.trace_for(session, "60s")
        self.wait_until_traced(pid)
        process.send_signal(signal.SIGTERM)
        out, err = tracing.communicate(timeout=30)  # and does not wait for the minute to pass
        self.assertEqual(tracing.returncode, 0, err)
        self.assertIn(message("ended-during-trace"), out)
        process.wait(timeout=30)

    def test_forks_and_execs_are_followed(self):
        session = self.folder / "s"
        script = self.folder / "family.py"
        script.write_text(FAMILY)
        for name in ("parent", "forked", "executed"):
            (self.folder / name).write_bytes(b"x" * 100)
        process = self.start([sys.executable, script, self.folder], session)
        self.assertEqual(process.stdout.readline(), "ready\n")
        tracing = self.trace_for(session, "2500ms", "--json")
        self.wait_until_traced(session)
        process.stdin.write("\n")
        process.stdin.flush()
        out, err = tracing.communicate(timeout=60)
        self.assertEqual(tracing.returncode, 0, err)
        rows = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(rows), 2, rows)
        self.assertEqual([row["failed"] for row in rows], ["", ""])
        self.assertFalse(any(row["trace"] for row in self.ask("status", session)))
        process.wait(timeout=60)
        output, files = self.report(session)
        for name in ("parent", "forked", "executed"):
            kept = len(self.calls(session, self.folder / name)[0])
            self.assertGreater(kept, 0, name)
            made = files[str(self.folder / name)]["reads"]
            # A fork's child is armed from its begin; the others continue after the window's end.
            (self.assertEqual if name == "forked" else self.assertLess)(kept, made, name)

    @unittest.skipIf(may_use_mpi(), may_use_mpi())
    def test_four_ranks_in_the_middle(self):
        session = self.folder / "s"
        for rank in range(4):
            (self.folder / f"data{rank}").write_bytes(bytes(4096))
        script = self.folder / "rank.py"
        script.write_text(RANK)
        stop = self.folder / "stop"
        data = [self.folder / f"data{rank}" for rank in range(4)]
        process = self.start(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", "4", sys.executable, script,
                              self.data, stop], session, env=MPI)
        self.wait_until("all ranks read", lambda: all(path.with_suffix(".said").exists() for path in data))
        refused = self.profile("trace", "on", session, "--for", "1s", "--rank", "7", expect=1)
        self.assertIn(message("no-process-of-these-ranks"), refused.stderr)
        time.sleep(0.5)
        begin_ns = time.time_ns()
        rows = self.ask("trace", "on", session, "--rank", "0..3", "--for", "2s")
        end_ns = time.time_ns()
        time.sleep(0.5)
        stop.touch()
        process.communicate(timeout=120)
        self.assertEqual([row["rank"] for row in rows], [0, 1, 2, 3])
        self.assertEqual([(row["changed"], row["ended"], row["failed"], row["trace"]) for row in rows], [(True, False, "", False)] * 4)
        _, files = self.report(session)
        begin = self.begin_ns(session)
        for row, path in zip(rows, data):
            made = int(path.with_suffix(".made").read_text())
            self.assertEqual(files[str(path)]["reads"], made, "counters are exact")
            self.assertLessEqual(begin_ns, row["from_ns"])
            self.assertLess(row["from_ns"], row["to_ns"])
            self.assertLessEqual(row["to_ns"], end_ns)
            events, _ = self.calls(session, path)
            self.assertGreater(len(events), 10, path)
            self.assertLess(len(events), made)
            for event in events:
                at = begin + event["ts"] * 1000
                self.assertGreater(at, begin_ns - EDGE_NS)
                self.assertLess(at, end_ns + EDGE_NS)

    def test_grandchildren_of_parents_that_did_nothing_are_disarmed(self):
        session = self.folder / "s"
        for name in ("parent", "grandchild"):
            (self.folder / name).write_bytes(b"x" * 100)
        process = self.start([sys.executable, "-c", GRANDPARENT, self.folder], session)
        self.assertEqual(process.stdout.readline(), "ready\n")
        tracing = self.trace_for(session, "60s", "--json")
        self.wait_until_traced(session)
        process.stdin.write("\n")
        process.stdin.flush()
        self.wait_until("both were traced", lambda: [row["trace"] for row in self.ask("status", session)] == [True, True])
        tracing.send_signal(signal.SIGTERM)
        out, err = tracing.communicate(timeout=60)
        self.assertEqual(len(out.splitlines()), 2, out + err)
        self.assertEqual([row["trace"] for row in self.ask("status", session)], [False, False])
        (self.folder / "stop").touch()
        process.wait(timeout=60)

    def test_forks_while_windows_are_cut(self):
        session = self.folder / "s"
        self.assertEqual(self.profile("run", "-o", session, "--", sys.executable, "-c", WINDOWS, self.data, 100).stdout, "0\n")


class OtherUsers(ControlTest):
    def test_are_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be somebody else")
        session = self.folder / "s"
        process, pid = self.reader(session)
        self.folder.chmod(0o755)
        place = self.folder / "bin"
        shutil.copytree(BUILD, place, ignore=lambda folder, names: [name for name in names if folder != str(BUILD) or
                                                                    name not in (pathlib.Path(PENSTOCK).name, LIBRARY.name)])
        other_user = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/", "env": os.environ | {"HOME": "/nonexistent"}}
        theirs = self.folder / "theirs"
        theirs.mkdir()
        theirs.chmod(0o777)
        never = theirs / "never"
        for words in (("trace", "on", pid), ("trace", "on", session), ("trace", "on", session, "--for", "1s"),
                      ("snapshot", session, "-o", never), ("snapshot", pid, "-o", never), ("status", session)):
            done = subprocess.run([place / pathlib.Path(PENSTOCK).name, "profile", *map(str, words)], capture_output=True, text=True,
                                  check=False, **other_user)
            self.assertEqual(done.returncode, 1, f"{words}: {done.stdout}{done.stderr}")
        self.assertFalse(never.exists())
        self.assertFalse(self.ask("status", pid)[0]["trace"])
        # Nor is a link followed that is in a session of one's own.
        mine = self.folder / "mine"
        mine.mkdir(mode=0o700)
        file, = session.glob("*.session")
        (mine / file.name).symlink_to(file)
        self.assertIn(message("nothing-running"), self.profile("trace", "on", mine, expect=1).stderr)
        self.end(process)


if __name__ == "__main__":
    main()
