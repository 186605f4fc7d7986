"""What the tests of `penstock profile serve` share: a page that is served, those who ask it, and programs to be looked at."""

import contextlib
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from penstock_cli import BUILD, PATIENCE_S, PENSTOCK, SANITIZED, SOURCE, has_library

LIBRARY = BUILD / "libpenstock_profile.so"
SEEDS = SOURCE / "profiling" / "fuzz_seeds" / "session"

# Reads as often as each line of its input says, says when that is done, and ends with its input.
READER = textwrap.dedent("""
    import os, sys
    fd = os.open(sys.argv[1], os.O_RDONLY)
    print("ready", flush=True)
    for line in sys.stdin:
        for i in range(int(line)):
            os.pread(fd, 1000, 0)
        print("done", flush=True)
""")
# Reads until it is told to end, or until its parent has ended. If a folder is given, a file there shows that it reads.
BUSY = textwrap.dedent("""
    import os, signal, sys, time
    parent = os.getppid()
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    fd = os.open(sys.argv[1], os.O_RDONLY)
    print("ready", flush=True)
    if len(sys.argv) > 2:
        open(os.path.join(sys.argv[2], str(os.getpid())), "x").close()
    while not stop and os.getppid() == parent:
        os.pread(fd, 1000, 0)
        time.sleep(0.001)
""")


def children(pid):
    """The processes that it has started and that have become another program than it is, with their words."""
    found = {}
    own = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid and (words := (folder / "cmdline").read_bytes()) not in (b"", own):
                found[int(folder.name)] = words.split(b"\0")[:-1]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def state(pid):
    """As ps shows it: "T" is stopped. Nothing where there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def finish(process):
    """As a user would end it; nothing is left of it in any case."""
    process.terminate()
    try:
        process.wait(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


class Page:
    """One that is served; asks with the token unless told otherwise."""

    def __init__(self, test, session, *words, cwd=None):
        # SIGHUP ends it also where nohup has started the test.
        self.process = subprocess.Popen([PENSTOCK, "profile", "serve", str(session), "--json", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, cwd=cwd or test.folder, env=os.environ | {"TMPDIR": str(test.temporary)},
                                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        test.addCleanup(finish, self.process)
        line = self.process.stdout.readline()
        test.assertTrue(line, "" if line else self.process.stderr.read())
        self.said = json.loads(line)
        self.port, self.token, self.url = self.said["port"], self.said["token"], self.said["url"]

    def ask(self, path, method="GET", token=None, headers=None, body=None, host=None):
        """Status, headers, body. `token`: "" for none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
            if token != "":
                connection.putheader("Authorization", f"Bearer {token or self.token}")
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def status(self, *args, **kwargs):
        return self.ask(*args, **kwargs)[0]

    def connect(self, text=b""):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        try:
            s.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return s

    def raw(self, text):
        """What comes back for these bytes, until the other side closes."""
        with self.connect(text) as s:
            return everything(s)

    def request(self, path, method="GET"):
        return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n\r\n".encode()

    def hold(self, test, path, method="GET"):
        """Asks for what another process makes, and stops that one: the connection, and its number."""
        until = time.monotonic() + PATIENCE_S
        others = children(self.process.pid).keys()
        while True:
            s = self.connect(self.request(path, method))
            test.addCleanup(s.close)
            while not select.select([s], [], [], 0)[0]:
                for pid in children(self.process.pid).keys() - others:
                    with contextlib.suppress(ProcessLookupError):  # it was quicker
                        os.kill(pid, signal.SIGSTOP)
                    while state(pid) not in ("T", "Z", ""):
                        time.sleep(0.001)
                    if state(pid) == "T":
                        return s, pid
            s.close()  # it has its place no longer
            test.assertLess(time.monotonic(), until, f"{path} was always made before it could be stopped")

    def live(self):
        return json.loads(self.ask("/live")[2])

    def wait(self, test, what, holds):
        until = time.monotonic() + PATIENCE_S
        while True:
            live = self.live()
            if live["looked"] and holds(live):
                return live
            test.assertLess(time.monotonic(), until, f"{what}: {json.dumps(live)[:2000]}")
            time.sleep(0.05)

    def post(self, test, path, expect=200):
        status, _, body = self.ask(path, "POST")
        test.assertEqual(status, expect, body)
        return json.loads(body) if status == 200 else body.decode()


def everything(connection):
    answer = b""
    try:
        while part := connection.recv(65536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def code(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.maxDiff = None
        if not has_library("cpp-httplib"):
            raise unittest.SkipTest("this build lacks cpp-httplib")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-serve-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.data = self.folder / "data"
        self.data.write_bytes(bytes(4096))

    def saved(self, name="saved"):
        session = self.folder / name
        session.mkdir()
        shutil.copy(SEEDS / "traced", session / "100-5.session")
        return session

    def report(self, session, *words):
        done = subprocess.run([PENSTOCK, "profile", "report", "--json", *words, str(session)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, *rows = map(json.loads, done.stdout.splitlines())
        return first, {row["path"]: row for row in rows if row["kind"] == "file"}

    def end(self, page, how=signal.SIGTERM):
        begin = time.monotonic()
        page.process.send_signal(how)
        page.process.wait(timeout=PATIENCE_S)
        self.assertEqual(page.process.returncode, 128 + how)
        return time.monotonic() - begin


class RunningTest(ServeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if SANITIZED:
            raise unittest.SkipTest("Python has no sanitizer's runtime")
        if not LIBRARY.exists():
            raise unittest.SkipTest("this build has no profiler")

    def begin(self, program, *words, session="session", before=(), env=None):
        process = subprocess.Popen([PENSTOCK, "profile", "run", "-o", self.folder / session, "--", *before, sys.executable, "-c", program, *map(str, words)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        self.addCleanup(finish, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def busy(self, **kwargs):
        process = self.begin(BUSY, self.data, **kwargs)
        page = Page(self, self.folder / kwargs.get("session", "session"))
        return process, page, page.wait(self, "it runs", lambda live: live["running"])

    def busy_with_a_strange_name(self):
        """Of what it reads."""
        self.data = pathlib.Path(os.fsdecode(os.fsencode(self.folder) + b"/<script>document.title='owned'</script>\n\xff&amp;"))
        self.data.parent.mkdir()
        self.data.write_bytes(bytes(4096))
        return self.busy()
