"""`penstock profile serve` of programs that run: what is shown of them, and which of their calls are kept when it is asked for."""

import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import unittest

from messages import message
from penstock_cli import PATIENCE_S, PENSTOCK, main
from profile_serve_case import BUSY, READER, Page, RunningTest, finish

MPI = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def may_use_mpi():
    if shutil.which("mpirun") is None:
        return "no mpirun here"
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=60, check=False)
    return "" if message("mpirun-is-open-mpi") in done.stdout else "this mpirun is not Open MPI's"


class Live(RunningTest):
    def test_rates_are_those_of_the_program(self):
        reader = self.begin(READER, self.data)
        page = Page(self, self.folder / "session")
        first = page.wait(self, "it runs", lambda live: live["running"])
        self.assertEqual(first["processes"][0]["trace"], False)

        def of_data(live):
            return sum(file["bytes_read"] for file in live["hottest"] if file["path"] == str(self.data))
        before = first["bytes_read"]
        reads = 0
        for count in (100, 2000, 1):
            reader.stdin.write(f"{count}\n")
            reader.stdin.flush()
            self.assertEqual(reader.stdout.readline(), "done\n")
            reads += count
            live = page.wait(self, "all is seen", lambda live: live["bytes_read"] >= before + reads * 1000)
            self.assertEqual(live["bytes_read"], before + reads * 1000)
            self.assertEqual(live["running"], True)
        moved = sum(point[2] for point in live["history"])
        self.assertEqual(moved, reads * 1000)
        self.assertLessEqual(of_data(live), reads * 1000)
        # Everybody sees the same, and however many ask, one look a second is all that it takes.
        begin = time.monotonic()
        looks = {}
        for one in (page.live() for _ in range(50)):
            what = {key: value for key, value in one.items() if key != "trace"}
            self.assertEqual(looks.setdefault(one["at_s"], what), what)
        self.assertLessEqual(len(looks), time.monotonic() - begin + 2)
        reader.stdin.close()
        reader.wait()
        live = page.wait(self, "it has ended", lambda live: not live["running"])
        self.assertEqual(live["bytes_read"], before + reads * 1000)
        self.assertEqual(of_data(live), reads * 1000)
        page.post(self, "/trace?seconds=1", expect=409)
        self.assertEqual(page.status("/report"), 200)

    def test_calls_are_kept_as_long_as_asked_for(self):
        process, page, live = self.busy()
        armed_ns = time.time_ns()
        output = page.post(self, "/trace?seconds=3600")
        self.assertTrue(output["armed"])
        page.wait(self, "it is armed", lambda live: live["processes"][0]["trace"])
        output = page.post(self, "/trace?seconds=1")  # replaces
        self.assertLessEqual(output["seconds_left"], 1)
        self.assertEqual(output["running"], len(live["processes"]))
        live = page.wait(self, "it is disarmed", lambda live: not live["trace"]["armed"])
        disarmed_ns = time.time_ns()
        page.wait(self, "it is seen", lambda live: not live["processes"][0]["trace"])
        for one in live["trace"]["processes"]:
            self.assertTrue(armed_ns <= one["from_ns"] <= one["to_ns"] <= disarmed_ns, one)
            self.assertEqual(one["failed"], "")
        process_of_data = {one["pid"]: one for one in live["trace"]["processes"]}
        time.sleep(0.3)
        os.kill(live["processes"][0]["pid"], signal.SIGTERM)
        process.wait()
        out = self.folder / "trace.json"
        subprocess.run([PENSTOCK, "profile", "export", "--to", "chrome", self.folder / "session", "-o", out], check=True, capture_output=True)
        trace = json.loads(out.read_text())
        # On the threads' tracks: files have the same calls once more.
        calls = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] in process_of_data]
        self.assertGreater(len(calls), 50)
        # Only the first one of a thread may have started before its process was armed.
        times = sorted(event["ts"] for event in calls)
        self.assertLessEqual(times[-1] - times[1], (disarmed_ns - armed_ns) / 1e3)

    def test_where_all_have_ended_nothing_is_armed_again(self):
        process, page, live = self.busy()
        page.post(self, "/trace?seconds=3600")
        os.kill(live["processes"][0]["pid"], signal.SIGTERM)
        process.wait()
        self.assertIn(message("nothing-running"), page.post(self, "/trace?seconds=3600", expect=409))
        self.assertFalse(page.live()["trace"]["armed"])

    def test_the_end_disarms(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            process, page, live = self.busy(session=f"s{how}")
            page.post(self, "/trace?seconds=3600")
            page.wait(self, "it is armed", lambda live: live["processes"][0]["trace"])
            self.end(page, how)
            done = subprocess.run([PENSTOCK, "profile", "status", self.folder / f"s{how}", "--json"], capture_output=True, text=True, check=True)
            self.assertEqual({json.loads(line)["trace"] for line in done.stdout.splitlines()}, {False})

    def test_disarmed_when_asked(self):
        _, page, _ = self.busy()
        page.post(self, "/trace?seconds=3600")
        self.assertFalse(page.post(self, "/trace?seconds=0")["armed"])
        page.wait(self, "it is disarmed", lambda live: not live["processes"][0]["trace"] and not live["trace"]["armed"])

    def test_what_begins_meanwhile_is_armed(self):
        script = f"import os, subprocess, sys\nprint('ready', flush=True)\nsys.stdin.readline()\nsubprocess.run([sys.executable, '-c', {BUSY!r}, {str(self.data)!r}])\n"
        process = self.begin(script)
        page = Page(self, self.folder / "session")
        page.wait(self, "it runs", lambda live: live["running"])
        page.post(self, "/trace?seconds=3600")
        process.stdin.write("\n")
        process.stdin.flush()
        live = page.wait(self, "the child is armed", lambda live: sum(one["trace"] for one in live["processes"]) == 2)
        page.post(self, "/trace?seconds=0")
        page.wait(self, "both are disarmed", lambda live: not any(one["trace"] for one in live["processes"]))
        for one in live["processes"]:
            os.kill(one["pid"], signal.SIGTERM)

    def test_by_a_processes_number_and_taken_along_while_it_runs(self):
        process, page, live = self.busy()
        by_number = Page(self, live["processes"][0]["pid"])
        self.assertEqual(by_number.said["session"], str(self.folder / "session"))
        body = page.ask("/download")[2]
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as archive:
            names = archive.getnames()
            archive.extractall(self.folder / "out", filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(self.folder / "out")
        self.assertIn("session/session.json", names)
        self.assertTrue(all(re.fullmatch(r"session/([^/]+\.session|session\.json)", name) for name in names), names)
        self.assertGreater(self.report(self.folder / "out/session")[1][str(self.data)]["bytes_read"], 0)
        made = page.post(self, "/snapshot")["session"]
        self.assertEqual(os.stat(made).st_mode & 0o777, 0o700)
        self.assertGreater(self.report(made)[1][str(self.data)]["bytes_read"], 0)
        # A copy's processes run, but do not write there.
        copy = Page(self, made)
        self.assertFalse(copy.wait(self, "it is looked at", lambda live: True)["running"])
        os.kill(live["processes"][0]["pid"], signal.SIGTERM)
        process.wait()
        page.wait(self, "it has ended", lambda live: not live["running"])

    def test_big_sessions_are_sent_as_they_are_taken(self):
        _, page, _ = self.busy()
        big = self.folder / "session" / "1-1.session"
        big.write_bytes(b"x" * 4096)
        os.truncate(big, 300 << 20)
        with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE_S) as s:
            s.sendall(f"GET /download?token={page.token} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode())
            s.recv(1000)  # and no more for a while
            for _ in range(5):
                self.assertEqual(page.status("/live"), 200)
            held = int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{page.process.pid}/status").read_text())[1])
            self.assertLess(held, 150 << 10)
            os.truncate(big, 1000)
            length = sum(len(part) for part in iter(lambda: s.recv(1 << 20), b""))
        self.assertGreater(length, 300 << 20)

    def test_a_name_may_be_anything(self):
        _, page, _ = self.busy_with_a_strange_name()
        live = page.wait(self, "it is seen", lambda live: any("<script>" in file["path"] for file in live["hottest"]))
        path = next(file["path"] for file in live["hottest"] if "<script>" in file["path"])
        self.assertEqual(path, f"{self.folder}/<script>document.title='owned'</script>\n\ufffd&amp;")

    @unittest.skipIf(may_use_mpi(), may_use_mpi())
    def test_four_ranks(self):
        ready = self.folder / "ready"
        ready.mkdir()
        process = subprocess.Popen([PENSTOCK, "profile", "run", "-o", self.folder / "session", "--", "mpirun", "--oversubscribe", "-np", "4",
                                    sys.executable, "-c", BUSY, self.data, ready], env=MPI, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(finish, process)
        until = time.monotonic() + PATIENCE_S
        while len(list(ready.iterdir())) < 4:
            self.assertLess(time.monotonic(), until, "not all ranks run")
            time.sleep(0.05)
        page = Page(self, self.folder / "session")

        def ranks(live):
            return [one for one in live["processes"] if one["rank"] is not None]
        live = page.wait(self, "all ranks run", lambda live: len(ranks(live)) == 4)
        self.assertEqual([one["rank"] for one in ranks(live)], [0, 1, 2, 3])
        page.post(self, "/trace?seconds=3600")
        page.wait(self, "all are armed", lambda live: sum(one["trace"] for one in ranks(live)) == 4)
        page.post(self, "/trace?seconds=1")
        live = page.wait(self, "all are disarmed", lambda live: not live["trace"]["armed"] and not any(one["trace"] for one in live["processes"]))
        self.assertEqual(sorted(one["rank"] for one in live["trace"]["processes"] if one["rank"] is not None), [0, 1, 2, 3])
        for one in ranks(live):
            os.kill(one["pid"], signal.SIGTERM)
        process.wait(timeout=PATIENCE_S)
        page.wait(self, "all have ended", lambda live: not live["running"])


if __name__ == "__main__":
    main()
