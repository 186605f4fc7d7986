#!/usr/bin/env python3
"""Windows that a program cuts itself (penstock_profile_start and similar functions): each holds what the program did in it, and between them nothing
is lost."""

import collections
import json
import subprocess
import sys
import textwrap

from messages import message
from penstock_cli import PENSTOCK, SANITIZED, main
from profile_attach_case import LIBRARY, AttachTest


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
        output = [json.loads(line) for line in self.profile("report", "--json", "--all", "--by", "window", session).stdout.splitlines()][1:]
        self.assertEqual([(row["kind"], row["label"], row["begun"]) for row in output],
                         [("window", "all", "window"), ("window", "steps 4 to 7", "window"), ("window", "steps 8 to 9", "window")])
        self.assertIn(message("window-of-steps", n=4, n2=7), self.profile("report", "--by", "window", session).stdout)

    STEPS = textwrap.dedent("""
        import ctypes, os, sys
        profile = ctypes.CDLL(sys.argv[1])
        for step in range(int(sys.argv[2])):
            open(sys.argv[3], "rb").read()
            profile.penstock_profile_step()
            if step == 4 and os.fork() == 0:
                os._exit(0)
        if sys.argv[4:] == ["kill"]:
            os.kill(os.getpid(), 9)
    """)

    def labels(self, session, steps, *more):
        if SANITIZED:
            self.skipTest("Python has no sanitizer's runtime")
        path = self.folder / "data"
        path.write_bytes(b"x" * 5000)
        words = [sys.executable, "-c", self.STEPS, LIBRARY, steps, path, *more]
        # A shell and a program that tell no steps, and one that does.
        subprocess.run([PENSTOCK, "profile", "run", "--every", "4", "-o", session, "--", "sh", "-c", 'cat "$1" && shift && "$@"; exit 0', "sh", str(path),
                        *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        output = [json.loads(line) for line in self.profile("report", "--json", "--all", "--by", "window", session).stdout.splitlines()][1:]
        return [(row["number"], row["label"]) for row in output if row["number"] or row["label"]]

    def test_only_windows_with_steps_are_named_and_by_the_steps_that_they_have(self):
        self.assertEqual(self.labels(self.folder / "a", 10), [(1, "steps 0 to 3"), (2, "steps 4 to 7"), (3, "steps 8 to 9")])
        self.assertEqual(self.labels(self.folder / "b", 8), [(1, "steps 0 to 3"), (2, "steps 4 to 7"), (3, "after step 7")])
        self.assertEqual(self.labels(self.folder / "c", 1), [(1, "step 0")])
        self.assertEqual(self.labels(self.folder / "d", 0), [])
        self.assertEqual(self.labels(self.folder / "e", 6, "kill"), [(1, "steps 0 to 3"), (2, "after step 3")])

    def test_train_tells_its_steps_as_they_end(self):
        if SANITIZED:
            self.skipTest("the profiler watches builds without a sanitizer")
        corpus, session = self.folder / "corpus", self.folder / "s"
        subprocess.run([PENSTOCK, "generate", "imagenet", "--out", corpus, "--samples", "40", "--results", self.folder / "results", "--no-config"],
                       stdout=subprocess.DEVNULL, check=True)
        self.profile("run", "--every", "4", "-o", session, "--", PENSTOCK, "train", "alexnet", "--data", corpus, "--batch", "4", "--threads", "1",
                     "--accelerator", "emulated:step=50ms", "--results", self.folder / "results", "--no-config")
        output = [json.loads(line) for line in self.profile("report", "--json", "--all", "--by", "window", session).stdout.splitlines()][1:]
        self.assertEqual([row["label"] for row in output], ["steps 0 to 3", "steps 4 to 7", "steps 8 to 9"])
        self.assertGreater(output[1]["wall_s"], 0.15, "four steps of 50 ms")

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
        output = json.loads(log.read_text())
        self.assertEqual(len(output["cuts"]), 12)
        seen = []
        for image in sorted(session.glob("*.session"), key=lambda image: int(image.stem.split("-")[1])):
            _, files = self.report(image)
            seen.append(files[str(path)]["bytes_read"] if str(path) in files else 0)
        self.assertEqual(sum(seen), sum(size for _, size in output["reads"]), "none is lost between windows")
        ends = [0, *output["cuts"], float("inf")]
        logged = [sum(size for begin, size in output["reads"] if after <= begin < before) for after, before in zip(ends, ends[1:])]
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
            output, files = self.report(session)
            self.assertEqual(output["problems"], [])
            self.assertEqual([files[str(data / str(i))]["reads"] for i in range(3)], [20000] * 3)
            self.assertEqual([files[str(data / str(i))]["opens"] for i in range(3)], [1] * 3)
            if extra:
                self.assertEqual(output["drops"]["segments"], 0)
                self.assertEqual(self.kept_reads(session, data), {str(data / str(i)): 20000 for i in range(3)})
                for image in sorted(session.glob("*.session"))[:20]:  # what a file has counted is in the same file
                    counted = {path: row["reads"] for path, row in self.report(image)[1].items() if path.startswith(f"{data}/") and row["reads"]}
                    self.assertEqual(self.kept_reads(image, data), counted, image)

    def kept_reads(self, session, data):
        """By file below `data`: the reads that the trace has."""
        out = self.folder / "trace.json"
        done = subprocess.run([PENSTOCK, "profile", "export", "--all", "--to", "chrome", session, "-o", out], check=False, capture_output=True, text=True)
        if done.returncode == 1 and message("nothing-to-export") in done.stderr:
            return {}
        self.assertEqual(done.returncode, 0, done.stderr)
        events = json.loads(out.read_text())["traceEvents"]
        paths = [event["args"].get("file", "") for event in events if event.get("ph") == "X" and event["name"] == "read"]
        return dict(collections.Counter(path for path in paths if path.startswith(f"{data}/")))


if __name__ == "__main__":
    main()
