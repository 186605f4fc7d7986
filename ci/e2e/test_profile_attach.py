#!/usr/bin/env python3
"""`penstock profile attach` to processes that run: nothing of theirs goes wrong, every slot is put back, and what the windows hold is what
the programs say that they did. The same by the programs' own calls (penstock_profile_start and its kin)."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from penstock_cli import BUILD, PENSTOCK, SANITIZED, main
from profile_case import QUIET, python_with

LIBRARY = BUILD / "libpenstock_profile.so"
BUSY = BUILD / "profiling" / "interpose" / "penstock_profile_busy"
PLUGIN = BUILD / "profiling" / "interpose" / "penstock_profile_plugin.so"
CYCLES = 10 if SANITIZED else 100
PAUSE_LIMIT_MS = 50  # the median is held against it and said; time decides nothing


def begun(process):
    """Once it has its libc."""
    for _ in range(1000):
        if "libc" in pathlib.Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8"):
            return
        time.sleep(0.01)


def may_trace():
    """Why this machine does not let us attach, or nothing."""
    child = subprocess.Popen(["sleep", "20"])
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        seize, detach = 0x4206, 17
        if libc.ptrace(seize, child.pid, None, None) != 0:
            return f"ptrace: {os.strerror(ctypes.get_errno())}"
        libc.ptrace(detach, child.pid, None, None)
        return ""
    finally:
        child.kill()
        child.wait()


class AttachTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.maxDiff = None
        if not LIBRARY.exists() or not BUSY.exists():
            raise unittest.SkipTest("this build has no profiler that attaches")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-attach-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def profile(self, *words, expect=0):
        done = subprocess.run([PENSTOCK, "profile", *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, expect, f"{words}: {done.stdout}{done.stderr}")
        return done

    def ask(self, *words):
        return json.loads(self.profile(*words, "--json").stdout)

    def report(self, *sessions):
        rows = [json.loads(line) for line in self.profile("report", "--json", "--all", *sessions).stdout.splitlines()]
        return rows[0], {row["path"]: row for row in rows[1:] if row["kind"] == "file"}

    def start(self, *words, **kwargs):
        process = subprocess.Popen([*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kwargs)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def tell(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()


@unittest.skipIf(may_trace(), f"processes cannot be attached to here ({may_trace()})")
class Attach(AttachTest):
    def busy(self):
        data = self.folder / "data"
        data.mkdir()
        process = self.start(BUSY, data, PLUGIN, self.folder / "log")
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process, data

    def calls(self):
        """Of the busy program's readers: (begin, end, bytes) of each."""
        return [struct.unpack_from("<qqQ", record) for record in
                (lambda log: (log[i:i + 24] for i in range(0, len(log), 24)))((self.folder / "log").read_bytes())]

    def test_many_times(self):
        process, data = self.busy()
        pauses, windows = [], []
        readers = [str(data / f"f{i}") for i in range(3)]
        for i in range(CYCLES):
            before = time.monotonic_ns()
            attached = self.ask("attach", process.pid, "-o", self.folder / f"s{i}")
            begun = time.monotonic_ns()
            self.assertGreater(attached["slots"], 20)
            count = 10 + i
            told = self.tell(process, f"batch {count}")
            self.assertEqual(told, str(count * 4096))
            ending = time.monotonic_ns()
            detached = self.ask("detach", process.pid)
            ended = time.monotonic_ns()
            self.assertEqual(detached["slots_unrestored"], 0)
            self.assertLessEqual(detached["slots_restored"] + detached["slots_unloaded"] - attached["slots"], 20)
            self.assertGreaterEqual(detached["slots_restored"] + detached["slots_unloaded"], attached["slots"])
            pauses += [attached["stopped_ms"], detached["stopped_ms"]]
            # What is done while nobody looks is seen by nobody.
            self.tell(process, "batch 7")
            session, files = self.report(self.folder / f"s{i}")
            self.assertEqual(session["problems"], [])
            # A handler's first read may come upon its own thread in the midst of an update: that is counted as dropped.
            self.assertLessEqual(session["drops"]["operations"], 3, session["drops"])
            self.assertEqual(session["dropped"], session["drops"]["operations"])
            batch = files[str(data / "batch")]
            self.assertEqual((batch["bytes_read"], batch["reads"], batch["opens"], batch["closes"]), (count * 4096, count, 1, 1))
            windows.append((before, begun, ending, ended, sum(files[name]["bytes_read"] for name in readers if name in files)))
            shutil.rmtree(self.folder / f"s{i}")
            self.assertIsNone(process.poll(), "the program has ended")
        said = self.tell(process, "quit")
        self.assertEqual(process.wait(timeout=60), 0, said)
        self.assertTrue(said.startswith("0 wrong, "), said)
        calls = self.calls()
        for before, begun, ending, ended, seen in windows:
            surely = sum(count for begin, end, count in calls if begin >= begun and end <= ending)
            perhaps = sum(count for begin, end, count in calls if end >= before and begin <= ended)
            self.assertLessEqual(surely, seen)
            self.assertLessEqual(seen, perhaps)
        median = statistics.median(pauses)
        print(f"{CYCLES} attachments: one thread was stopped for {median:.2f} ms in the median, {max(pauses):.2f} ms at worst "
              f"({'within' if median <= PAUSE_LIMIT_MS else 'ABOVE'} {PAUSE_LIMIT_MS} ms)", file=sys.stderr)

    def test_what_is_loaded_later(self):
        process, data = self.busy()
        self.ask("attach", process.pid, "-o", self.folder / "s")
        self.assertEqual(self.tell(process, "plugin 25"), str(25 * 4096))
        self.assertEqual(self.tell(process, "plugin 5"), str(5 * 4096))
        detached = self.ask("detach", process.pid)
        self.assertEqual(detached["slots_unrestored"], 0)
        self.tell(process, "plugin 3")
        _, files = self.report(self.folder / "s")
        row = files[str(data / "plugin")]
        self.assertEqual((row["bytes_read"], row["opens"]), (30 * 4096, 2))
        self.assertTrue(self.tell(process, "quit").startswith("0 wrong"))

    def test_what_another_thread_is_just_loading(self):
        # The busy program's other thread loads and unloads the same library all the time: it may be half loaded when it is opened.
        process, data = self.busy()
        self.ask("attach", process.pid, "-o", self.folder / "s")
        for _ in range(300):
            self.assertEqual(self.tell(process, "plugin 3"), str(3 * 4096))
        self.ask("detach", process.pid)
        _, files = self.report(self.folder / "s")
        row = files[str(data / "plugin")]
        self.assertEqual((row["bytes_read"], row["opens"]), (900 * 4096, 300))
        self.assertTrue(self.tell(process, "quit").startswith("0 wrong"))

    def test_every_call_is_kept(self):
        process, data = self.busy()
        self.ask("attach", process.pid, "-o", self.folder / "s", "--trace-limit", "1MiB")
        self.assertEqual(self.ask("status", process.pid)["trace_limit"], 1 << 20)
        self.profile("trace", "on", process.pid)
        self.tell(process, "batch 50")
        self.profile("trace", "off", process.pid)
        snapshot = self.folder / "snapshot"
        self.profile("snapshot", process.pid, "-o", snapshot)
        self.tell(process, "batch 50")
        _, files = self.report(snapshot)
        self.assertEqual(files[str(data / "batch")]["reads"], 50)
        self.ask("detach", process.pid)
        _, files = self.report(self.folder / "s")
        self.assertEqual(files[str(data / "batch")]["reads"], 100)
        self.profile("export", "--to", "chrome", snapshot, "-o", self.folder / "trace.json")
        events = json.loads((self.folder / "trace.json").read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        self.assertGreater(len([event for event in events if event.get("ph") == "X"]), 50)

    def test_what_is_said(self):
        process, _ = self.busy()
        self.assertIn("not watched", self.profile("status", process.pid).stdout)
        self.assertIn("nothing to end", self.profile("detach", process.pid, expect=2).stderr)
        self.profile("attach", process.pid, "-o", self.folder / "s")
        status = self.ask("status", process.pid)
        self.assertEqual((status["watched"], status["how"], status["session"]), (True, "attached", str(self.folder / "s")))
        again = self.profile("attach", process.pid, "-o", self.folder / "t", expect=1)
        self.assertIn("already", again.stderr)
        self.assertFalse((self.folder / "t").exists())
        self.assertIn(str(self.folder / "data" / "f0"), self.profile("top", "--once", "--all", process.pid).stdout)
        self.profile("detach", process.pid)
        self.assertIn("idle", self.profile("status", process.pid).stdout)
        self.assertIn("nothing to end", self.profile("detach", process.pid, expect=2).stderr)
        self.profile("attach", process.pid, "-o", self.folder / "again")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        session, _ = self.report(self.folder / "again")
        self.assertEqual(session["processes"], 1)
        self.assertIn("no process", self.profile("attach", process.pid, expect=1).stderr)
        self.assertIn("no process's number", self.profile("attach", "x", expect=2).stderr)
        self.profile("attach", expect=2)

    def test_what_cannot_be_attached_to(self):
        stopped = self.start("sleep", "60")
        os.kill(stopped.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED)
        self.assertIn("kill -CONT", self.profile("attach", stopped.pid, "-o", self.folder / "s", expect=2).stderr)
        if shutil.which("cc"):
            (self.folder / "m.c").write_text("#include <unistd.h>\nint main(void) { sleep(60); return 0; }\n")
            for flags, word in ((["-static"], "static"), (["-m32"], "32-bit")):
                made = subprocess.run(["cc", *flags, "-o", self.folder / "m", self.folder / "m.c"], capture_output=True, check=False)
                if made.returncode == 0:
                    process = self.start(self.folder / "m")
                    time.sleep(0.1)
                    self.assertIn(word, self.profile("attach", process.pid, "-o", self.folder / "s", expect=2).stderr)
                    self.end(process)
        self.assertFalse((self.folder / "s").exists())
        watched = self.start(PENSTOCK, "profile", "run", "-o", self.folder / "w", "--", "sleep", "60")
        for _ in range(200):
            files = list((self.folder / "w").glob("*.session"))
            if files:
                break
            time.sleep(0.05)
        pid = int(files[0].name.split("-")[0])
        self.assertIn("already", self.profile("attach", pid, "-o", self.folder / "s", expect=1).stderr)
        os.kill(pid, signal.SIGTERM)
        watched.wait(timeout=30)

    def test_who_sleeps(self):
        process = self.start("sleep", "60")
        begun(process)
        self.ask("attach", process.pid, "-o", self.folder / "s")
        self.ask("detach", process.pid)
        self.ask("attach", process.pid, "-o", self.folder / "t")
        self.ask("detach", process.pid)
        self.assertIsNone(process.poll())

    def test_another_users(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be somebody else")
        self.folder.chmod(0o755)
        mine = self.start("sleep", "60")
        theirs = self.start("sleep", "60", user=65534, group=65534)
        begun(mine)
        begun(theirs)
        attached = self.ask("attach", theirs.pid, "-o", self.folder / "s")
        self.assertGreater(attached["slots"], 0)
        self.assertEqual((self.folder / "s").stat().st_uid, 65534)
        self.ask("detach", theirs.pid)
        place = self.folder / "p"
        shutil.copytree(BUILD, place, ignore=lambda folder, names: [n for n in names if n not in (pathlib.Path(PENSTOCK).name,)])
        done = subprocess.run([place / pathlib.Path(PENSTOCK).name, "profile", "attach", str(mine.pid), "-o", "/tmp/never"],
                              capture_output=True, text=True, check=False, user=65534, group=65534, env={**os.environ, "HOME": "/nonexistent"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("root", done.stderr)

    PYTHON = textwrap.dedent("""
        import sys, threading
        path = sys.argv[1]
        def read(count):
            for _ in range(count):
                with open(path, "rb", buffering=0) as file:
                    assert file.read(4096) == b"x" * 4096
        print("ready", flush=True)
        for line in sys.stdin:
            threads = [threading.Thread(target=read, args=(int(line),)) for _ in range(3)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(3 * int(line) * 4096, flush=True)
    """)

    def test_python(self):
        path = self.folder / "data"
        path.write_bytes(b"x" * 5000)
        process = self.start(sys.executable, "-c", self.PYTHON, path)
        process.stdout.readline()
        for i in range(5):
            attached = self.ask("attach", process.pid, "-o", self.folder / f"s{i}")
            self.assertEqual(self.tell(process, "20"), str(60 * 4096))
            detached = self.ask("detach", process.pid)
            self.assertEqual(detached["slots_unrestored"], 0)
            self.assertGreaterEqual(detached["slots_restored"], attached["slots"])
            self.tell(process, "4")
            _, files = self.report(self.folder / f"s{i}")
            row = files[str(path)]
            self.assertEqual((row["bytes_read"], row["opens"], row["closes"]), (60 * 4096, 60, 60))

    # A line "N" is N epochs; "long FILE" one that is not over before there is that file. Every picture is looked at by its content.
    TENSORFLOW = textwrap.dedent("""
        import glob, os, sys
        import tensorflow as tf
        files = sorted(glob.glob(sys.argv[1] + "/*"))
        def fingerprint(content):
            return tf.strings.to_hash_bucket_fast(content, 1 << 60)
        wanted = [int(fingerprint(open(file, "rb").read())) for file in files]
        def load(file, wanted):
            content = tf.io.read_file(file)
            return tf.strings.length(content), tf.cast(fingerprint(content) != wanted, tf.int32)
        pictures = tf.data.Dataset.from_tensor_slices((files, wanted))
        def batches(data):
            return data.map(load, num_parallel_calls=4).batch(8).prefetch(2)
        def summed(data, stop=None):
            total = wrong = 0
            for sizes, unlike in batches(data):
                total += int(tf.reduce_sum(sizes))
                wrong += int(tf.reduce_sum(unlike))
                if stop and os.path.exists(stop):
                    break
            return total, wrong
        print("ready", flush=True)
        for line in sys.stdin:
            word, *stop = line.split()
            print(*summed(pictures.repeat(), *stop) if stop else summed(pictures.repeat(int(word))), flush=True)
    """)

    def start_tensorflow(self):
        python = None if SANITIZED else python_with("tensorflow")
        if python is None:
            self.skipTest("no Python with tensorflow here (ci/interop brings one)")
        images = self.folder / "images"
        images.mkdir()
        for i in range(64):
            (images / f"{i}.jpg").write_bytes(os.urandom(20000 + i))
        process = self.start(python, "-c", self.TENSORFLOW, images, stderr=subprocess.DEVNULL, env=os.environ | QUIET)
        self.assertEqual(process.stdout.readline(), "ready\n")
        epoch, wrong = map(int, self.tell(process, "1").split())
        self.assertEqual((epoch, wrong), (sum(20000 + i for i in range(64)), 0))
        return process, images, epoch

    def test_tensorflow(self):
        process, images, epoch = self.start_tensorflow()
        self.ask("attach", process.pid, "-o", self.folder / "s")
        self.assertEqual(self.tell(process, "3"), f"{3 * epoch} 0")
        self.assertEqual(self.ask("detach", process.pid)["slots_unrestored"], 0)
        _, files = self.report(self.folder / "s")
        self.assertEqual(sum(row["bytes_read"] for path, row in files.items() if path.startswith(f"{images}/")), 3 * epoch)

    def test_tensorflow_in_the_midst_of_an_epoch(self):
        process, images, epoch = self.start_tensorflow()
        stop = self.folder / "stop"
        process.stdin.write(f"long {stop}\n")
        process.stdin.flush()
        pauses, seen = [], 0
        for i in range(CYCLES):
            session = self.folder / "s"
            attached = self.ask("attach", process.pid, "-o", session)
            time.sleep(0.02)
            detached = self.ask("detach", process.pid)
            self.assertEqual(detached["slots_unrestored"], 0)
            self.assertGreaterEqual(detached["slots_restored"] + detached["slots_unloaded"], attached["slots"])
            pauses += [attached["stopped_ms"], detached["stopped_ms"]]
            told, files = self.report(session)
            self.assertEqual(told["problems"], [])
            seen += sum(row["bytes_read"] for path, row in files.items() if path.startswith(f"{images}/"))
            shutil.rmtree(session)
            self.assertIsNone(process.poll(), "the program has ended")
        stop.touch()
        total, wrong = map(int, process.stdout.readline().split())
        self.assertEqual(wrong, 0)
        self.assertGreater(seen, 0, "it read nothing while it was attached to")
        self.assertLess(seen, total)
        self.assertEqual(self.tell(process, "1"), f"{epoch} 0")
        median = statistics.median(pauses)
        print(f"tensorflow, {CYCLES} attachments to {attached['slots']} slots within an epoch: one thread was stopped for {median:.2f} ms in the "
              f"median, {max(pauses):.2f} ms at worst ({'within' if median <= PAUSE_LIMIT_MS else 'ABOVE'} {PAUSE_LIMIT_MS} ms)", file=sys.stderr)


class OwnCalls(AttachTest):
    SCRIPT = textwrap.dedent("""
        import ctypes, sys, threading
        library, session, path, every = sys.argv[1:]
        profile = ctypes.CDLL(library)
        stop = threading.Event()
        def read(count):
            for _ in range(count):
                with open(path, "rb", buffering=0) as file:
                    assert file.read(4096) == b"x" * 4096
        def go_on():
            while not stop.is_set():
                read(1)
        session = session.encode() or None
        if int(every):
            assert profile.penstock_profile_every(int(every)) == 0
            assert profile.penstock_profile_start(session, b"all") == 0
            for step in range(10):
                read(3)
                profile.penstock_profile_step()
            assert profile.penstock_profile_stop() == 0
        else:
            read(5)
            for window in range(20):
                assert profile.penstock_profile_start(session, b"window %d" % window) == 0
                assert profile.penstock_profile_start(session, b"another") != 0
                read(window)
                assert profile.penstock_profile_stop() == 0
                assert profile.penstock_profile_stop() != 0
                read(2)
            # Cut while others read.
            others = [threading.Thread(target=go_on) for _ in range(3)]
            for other in others: other.start()
            for window in range(50):
                assert profile.penstock_profile_start(session, b"busy") == 0
                assert profile.penstock_profile_stop() == 0
            stop.set()
            for other in others: other.join()
    """)

    def run_script(self, every=0, preload=False):
        if SANITIZED:
            self.skipTest("Python has no sanitizer's runtime")
        path = self.folder / "data"
        path.write_bytes(b"x" * 5000)
        session = self.folder / "s"
        words = [sys.executable, "-c", self.SCRIPT, LIBRARY, "" if preload else session, path, every]
        if preload:
            words = [PENSTOCK, "profile", "run", "-o", session, "--", *words]
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return session, path

    def windows(self, session, path):
        """Reads of the file, by each file of the session in order."""
        reads = []
        for image in sorted(session.glob("*.session"), key=lambda image: int(image.stem.split("-")[1])):
            _, files = self.report(image)
            reads.append(files[str(path)]["reads"] if str(path) in files else 0)
        return reads

    def test_windows(self):
        session, path = self.run_script()
        reads = self.windows(session, path)
        self.assertEqual(reads[:20], list(range(20)))
        self.assertEqual(len(reads), 70)

    def test_windows_of_a_watched_program(self):
        session, path = self.run_script(preload=True)
        reads = self.windows(session, path)
        self.assertEqual(reads[:40], ([5] + [count for window in range(20) for count in (window, 2)])[:40])  # then others come

    def test_every_steps(self):
        session, path = self.run_script(every=4)
        self.assertEqual(self.windows(session, path), [12, 12, 6])
        told = [json.loads(line) for line in self.profile("report", "--json", "--all", "--by", "window", session).stdout.splitlines()][1:]
        self.assertEqual([(row["kind"], row["label"], row["begun"]) for row in told],
                         [("window", "all", "window"), ("window", "steps 4 to 7", "window"), ("window", "steps 8 to 11", "window")])
        self.assertIn("steps 4 to 7", self.profile("report", "--by", "window", session).stdout)

    def test_windows_of_steps_while_others_read_ahead(self):
        """As a loader does that prefetches: which reads are a window's, the program's own log says of each read's begin."""
        if SANITIZED:
            self.skipTest("Python has no sanitizer's runtime")
        path, session, log = self.folder / "data", self.folder / "s", self.folder / "log"
        path.write_bytes(bytes(1 << 20))
        script = textwrap.dedent("""
            import ctypes, json, os, queue, sys, threading, time
            profile = ctypes.CDLL(sys.argv[1])
            batches, stop, reads = queue.Queue(4), threading.Event(), []
            def read_ahead():
                file = os.open(sys.argv[3], os.O_RDONLY)
                while not stop.is_set():
                    for i in range(32):
                        begin = time.time_ns()
                        reads.append((begin, len(os.pread(file, 100 + i, 4096 * i))))
                        time.sleep(0.0005)  # few begin in the moment that a cut takes
                    batches.put(None)
            threads = [threading.Thread(target=read_ahead) for _ in range(4)]
            assert profile.penstock_profile_every(5) == 0
            assert profile.penstock_profile_start(sys.argv[2].encode(), b"all") == 0
            for thread in threads: thread.start()
            cuts = []
            for step in range(1, 61):
                for _ in range(8): batches.get()
                profile.penstock_profile_step()
                if step % 5 == 0: cuts.append(time.time_ns())
            stop.set()
            while any(thread.is_alive() for thread in threads):
                while not batches.empty(): batches.get()
                time.sleep(0.001)
            assert profile.penstock_profile_stop() == 0
            json.dump({"reads": reads, "cuts": cuts}, open(sys.argv[4], "w"))
        """)
        done = subprocess.run([sys.executable, "-c", script, LIBRARY, session, path, log], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(log.read_text())
        self.assertEqual(len(told["cuts"]), 12)
        seen = []
        for image in sorted(session.glob("*.session"), key=lambda image: int(image.stem.split("-")[1])):
            _, files = self.report(image)
            seen.append(files[str(path)]["bytes_read"] if str(path) in files else 0)
        self.assertEqual(sum(seen), sum(size for _, size in told["reads"]), "none is lost between windows")
        ends = [0, *told["cuts"], float("inf")]
        logged = [sum(size for begin, size in told["reads"] if after <= begin < before) for after, before in zip(ends, ends[1:])]
        self.assertEqual(len(seen), len(logged))
        for window, own in list(zip(seen, logged))[:12]:
            self.assertAlmostEqual(window, own, delta=0.02 * own)

    def test_no_call_is_lost_between_windows(self):
        if SANITIZED:
            self.skipTest("the profiler watches builds without a sanitizer")
        data = self.folder / "data"
        data.mkdir()
        script = self.folder / "cut.py"
        script.write_text(textwrap.dedent("""
            import ctypes, os, sys, threading
            profile = ctypes.CDLL(sys.argv[1])
            def read(path, out):
                file = os.open(path, os.O_RDONLY)
                for i in range(20000):
                    assert len(os.pread(file, 1000, 0)) == 1000
                os.close(file)
            threads = [threading.Thread(target=read, args=(f"{sys.argv[2]}/{i}", i)) for i in range(3)]
            for thread in threads: thread.start()
            cuts = 0
            while any(thread.is_alive() for thread in threads) and cuts < 200:
                assert profile.penstock_profile_start(None, b"busy") == 0
                assert profile.penstock_profile_stop() == 0
                cuts += 1
            for thread in threads: thread.join()
            print(cuts)
        """))
        for i in range(3):
            (data / str(i)).write_bytes(bytes(1000))
        for extra in ([], ["--trace"]):
            session = self.folder / f"s{len(extra)}"
            done = subprocess.run([PENSTOCK, "profile", "run", *extra, "-o", session, "--", sys.executable, script, LIBRARY, data],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(int(done.stdout), 3)
            told, files = self.report(session)
            self.assertEqual(told["problems"], [])
            self.assertEqual([files[str(data / str(i))]["reads"] for i in range(3)], [20000] * 3)
            self.assertEqual([files[str(data / str(i))]["opens"] for i in range(3)], [1] * 3)


if __name__ == "__main__":
    main()
