"""`penstock profile serve`: who is let in and who is not, what is shown while programs run and after, and what a browser makes of it."""

import http.client
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import unittest
import urllib.parse

import browser
from penstock_cli import BUILD, PATIENCE_S, PENSTOCK, SANITIZED, SOURCE, main

LIBRARY = BUILD / "libpenstock_profile.so"
SEEDS = SOURCE / "profiling" / "fuzz_seeds" / "session"
MPI = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
EDGE_NS = 300_000_000  # from the word in the page to the first call that obeys it, on a busy machine

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
# Reads all the time until it is told to end.
BUSY = textwrap.dedent("""
    import os, signal, sys, time
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    fd = os.open(sys.argv[1], os.O_RDONLY)
    print("ready", flush=True)
    while not stop:
        os.pread(fd, 1000, 0)
        time.sleep(0.001)
""")
# Asks as another user: descriptor and process are that one's before it connects.
STRANGER = textwrap.dedent("""
    import encodings.idna, os, socket, sys  # that one need not be able to read Python's own folder
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.sendall(sys.argv[2].encode())
    answer = b""
    while part := s.recv(65536):
        answer += part
    print(answer.decode(errors="replace").split("\\r\\n")[0])
""")
# Pixels that the lines of a chart have, by their colours: the test's own look.
PAINTED = """[...document.querySelectorAll('figure.chart')].map((figure) => {
  const canvas = figure.querySelector('.plot canvas');
  const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
  const context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const strokes = ['--c0', '--c1', '--c2'].map((name) => parseInt(getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1), 16));
  let count = 0;
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 200 && strokes.includes((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2])) ++count;
  return [figure.id, figure.dataset.drawn, count];
})"""


def may_use_mpi():
    if shutil.which("mpirun") is None:
        return "no mpirun here"
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=60, check=False)
    return "" if "Open MPI" in done.stdout else "this mpirun is not Open MPI's"


class Page:
    """One that is served; asks with the token unless told otherwise."""

    def __init__(self, test, session, *words, cwd=None):
        self.process = subprocess.Popen([PENSTOCK, "profile", "serve", str(session), "--json", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, cwd=cwd or test.folder)
        test.addCleanup(self.process.communicate)
        test.addCleanup(self.process.kill)
        line = self.process.stdout.readline()
        test.assertTrue(line, "nothing was said of where it is" if line else self.process.stderr.read() if self.process.poll() is not None else "")
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

    def raw(self, text):
        """What comes back for these bytes, until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as s:
            try:
                s.sendall(text)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return everything(s)

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

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-profile-serve-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
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


class Saved(ServeTest):
    def setUp(self):
        super().setUp()
        self.session = self.saved()
        (self.session / "secret.txt").write_text("not of the session")
        self.page = Page(self, self.session)

    def test_says_where_it_is(self):
        page = self.page
        self.assertEqual(page.said["session"], str(self.session))
        self.assertEqual(page.url, f"http://127.0.0.1:{page.port}/?token={page.token}")
        self.assertRegex(page.token, r"^[0-9a-f]{32}$")
        other = subprocess.Popen([PENSTOCK, "profile", "serve", str(self.session)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.stdout.close)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.assertRegex(other.stdout.readline(), r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}\n$")
        done = subprocess.run([PENSTOCK, "profile", "serve", str(self.session), "--port", str(page.port)], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("somebody's already", done.stderr)
        for words, what in (([], "one session"), (["no-such"], "neither"), ([str(self.session), "--port", "70000"], "65535"), ([str(self.folder)], "")):
            done = subprocess.run([PENSTOCK, "profile", "serve", *words], capture_output=True, text=True, check=False, cwd=self.folder)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(what, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_without_the_token_nothing_is_said(self):
        page = self.page
        wrong = page.token[:-1] + ("0" if page.token[-1] != "0" else "1")
        for token in ("", wrong, page.token + "0", page.token[:-1], page.token.upper() + "x"):
            for path in ("/", "/live", "/report", "/report.json", "/download", "/none"):
                status, headers, body = page.ask(path, token=token)
                self.assertEqual(status, 401, path)
                self.assertNotIn(b"session.json", body)
            for path in ("/trace?seconds=5", "/snapshot"):
                self.assertEqual(page.status(path, "POST", token=token), 401)
            self.assertEqual(page.status(f"/live?token={token}", token=""), 401)
        self.assertEqual(page.status(f"/live?token={page.token}", token=""), 200)
        self.assertEqual(page.status("/live"), 200)
        self.assertEqual(list(self.folder.glob("saved-snapshot*")), [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can ask as another user")
    def test_another_user_is_refused_with_the_token(self):
        page = self.page
        text = f"GET /live?token={page.token} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n"
        done = subprocess.run([sys.executable, "-c", STRANGER, str(page.port), text], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
        self.assertEqual(done.stdout.split(" ")[1], "403", done.stdout)
        self.assertEqual(page.status("/live"), 200)

    @unittest.skipUnless(os.geteuid() == 0, "only root can hand a session to another user")
    def test_of_another_users_page_root_is_let_in_and_others_are_not(self):
        open_folder = self.folder / "open"
        open_folder.mkdir()
        self.folder.chmod(0o755)
        session = self.saved("open/theirs")
        for path in (session, session / "100-5.session"):
            os.chown(path, 65533, 65533)
        process = subprocess.Popen([sys.executable, "-c", "import os, sys\nos.setgroups([]); os.setgid(65533); os.setuid(65533)\n"
                                    "os.execv(sys.argv[1], sys.argv[1:])", PENSTOCK, "profile", "serve", str(session), "--json", "--no-config"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        if not line:
            self.skipTest(f"that user cannot run it here: {process.communicate()[1]}")
        said = json.loads(line)
        text = f"GET /live?token={said['token']} HTTP/1.1\r\nHost: 127.0.0.1:{said['port']}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", said["port"])) as s:
            s.sendall(text.encode())
            self.assertEqual(code(everything(s)), 200)
        done = subprocess.run([sys.executable, "-c", STRANGER, str(said["port"]), text], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
        self.assertEqual(done.stdout.split(" ")[1], "403", done.stdout)
        done = subprocess.run([sys.executable, "-c", STRANGER.replace("65534", "65533"), str(said["port"]), text], capture_output=True, text=True,
                              check=True, timeout=PATIENCE_S)
        self.assertEqual(done.stdout.split(" ")[1], "200", done.stdout)

    def test_a_client_of_ipv6_that_speaks_ipv4_is_known(self):
        try:
            s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            s.connect(("::ffff:127.0.0.1", self.page.port))
        except OSError as problem:
            self.skipTest(f"no such sockets here: {problem}")
        with s:
            s.sendall(f"GET /live?token={self.page.token} HTTP/1.1\r\nHost: localhost:{self.page.port}\r\n\r\n".encode())
            self.assertEqual(code(everything(s)), 200)

    def test_nothing_is_listened_to_but_loopback(self):
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
        ends = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{self.page.port:04X}")]
        self.assertEqual(ends, [f"{struct.unpack('=I', socket.inet_aton('127.0.0.1'))[0]:08X}:{self.page.port:04X}"])

    def test_paths_lead_nowhere_else(self):
        page = self.page
        for path in ("/../etc/passwd", "/%2e%2e/etc/passwd", "/%2e%2e%2fetc%2fpasswd", "/download/../x", "/download/", "/download/secret.txt",
                     "/download/..%2f..%2fdata", "//", "//etc/passwd", "/./", "/.", "/..", "/live/", "/Live", "/index.html", "/favicon.ico",
                     "/report.json/../download", "/session.json", "/%2fetc/passwd", "/\\..\\x"):
            status, _, body = page.ask(path)
            self.assertEqual(status, 404, path)
            self.assertNotIn(b"root:", body)
        for path in ("/%00", "/%", "/%0a"):
            self.assertEqual(page.status(path), 400, path)

    def test_methods(self):
        page = self.page
        for method, path in (("POST", "/"), ("POST", "/live"), ("DELETE", "/download"), ("PUT", "/"), ("GET", "/trace?seconds=1"), ("GET", "/snapshot"),
                             ("OPTIONS", "/live"), ("HEAD", "/trace")):
            status, headers, _ = page.ask(path, method)
            self.assertEqual(status, 405, (method, path))
            self.assertIn("allow", headers)
        for path in ("/", "/live", "/report", "/report.json", "/download"):
            status, headers, body = page.ask(path, "HEAD")
            self.assertEqual((status, body), (200, b""))
            self.assertGreater(int(headers["content-length"]), 0)

    def test_requests_have_bounds(self):
        page = self.page
        line = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nAuthorization: Bearer {page.token}\r\n"
        self.assertEqual(code(page.raw((line + "\r\n").encode())), 200)
        self.assertEqual(code(page.raw((line + "X: " + "x" * 9000 + "\r\n\r\n").encode())), 431)
        self.assertEqual(code(page.raw(b"GET /" + b"x" * 200000)), 431)
        self.assertEqual(code(page.raw(b"x" * 8192)), 431)
        post = line.replace("GET /live", "POST /trace?seconds=0")
        self.assertEqual(page.status("/trace?seconds=0", "POST", body=b"b" * 4096), 200)
        self.assertEqual(page.status("/trace?seconds=0", "POST", body=b"b" * 4097), 413)
        self.assertEqual(code(page.raw((post + "Content-Length: 100000000\r\n\r\n").encode() + b"b" * 100000)), 413)
        self.assertEqual(code(page.raw((post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").encode())), 501)
        for text in (b"\r\n\r\n", b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", line.encode().replace(b"\r\n", b"\n") + b"\n",
                     (line + "Host: again\r\n\r\n").encode(), b"GET / HTTP/1.1\r\n\r\n", os.urandom(500) + b"\r\n\r\n"):
            self.assertEqual(code(page.raw(text)), 400, text)
        self.assertEqual(page.status("/live"), 200)

    def test_other_hosts_and_origins_are_refused(self):
        page = self.page
        for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1", f"127.0.0.1:{page.port + 1}", f"127.0.0.1.evil.example:{page.port}"):
            self.assertEqual(page.status("/live", host=host), 403, host)
        self.assertEqual(page.status("/live", host=f"localhost:{page.port}"), 200)
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{page.port + 1}", f"https://127.0.0.1:{page.port}"):
            self.assertEqual(page.status("/trace?seconds=0", "POST", headers={"Origin": origin}), 403, origin)
        self.assertEqual(page.status("/trace?seconds=0", "POST", headers={"Origin": f"http://127.0.0.1:{page.port}"}), 200)

    def test_answers_forbid_what_they_do_not_need(self):
        for path in ("/", "/live", "/report", "/report.json", "/download", "/none"):
            _, headers, body = self.page.ask(path)
            self.assertIn("default-src 'none'", headers["content-security-policy"])
            self.assertEqual((headers["x-content-type-options"], headers["referrer-policy"], headers["cache-control"]),
                             ("nosniff", "no-referrer", "no-store"))
            self.assertEqual(int(headers["content-length"]), len(body))
        first, second = (re.search("nonce-([0-9a-f]+)", self.page.ask("/")[1]["content-security-policy"])[1] for _ in range(2))
        self.assertNotEqual(first, second)
        self.assertIn("sandbox", self.page.ask("/report")[1]["content-security-policy"])

    def test_slow_clients_are_ended_and_hold_up_nobody(self):
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.page.port), timeout=PATIENCE_S) as slow:
            slow.sendall(b"GET /live HT")
            self.assertEqual(self.page.status("/live"), 200)
            self.assertEqual(code(everything(slow)), 408)
        self.assertGreater(time.monotonic() - begin, 9)

    def test_more_than_it_takes_at_once(self):
        page = self.page
        waiting = [socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE_S) for _ in range(40)]
        for s in waiting:
            self.addCleanup(s.close)
        request = f"GET /live?token={page.token} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode()
        late = [code(everything(s)) for s in waiting[32:]]
        self.assertEqual(late, [503] * 8)
        for s in waiting[:32]:
            s.sendall(request)
        self.assertEqual([code(everything(s)) for s in waiting[:32]], [200] * 32)
        until = time.monotonic() + PATIENCE_S
        while page.status("/live") != 200:
            self.assertLess(time.monotonic(), until)

    def test_what_has_ended_is_shown_and_taken_along(self):
        page = self.page
        live = page.wait(self, "it is looked at", lambda live: True)
        self.assertEqual((live["running"], live["processes"], live["bytes_read"]), (False, [], 49152))
        self.assertIn("/data/a", [file["path"] for file in live["hottest"]])
        self.assertAlmostEqual(sum(point[2] for point in live["history"]), live["bytes_read"], delta=1)
        self.assertAlmostEqual(sum(point[4] for point in live["history"]), live["operations"], delta=1)
        self.assertIn("nothing runs", page.post(self, "/trace?seconds=5", expect=409))
        for wrong in ("", "x", "-1", "1.5", "3601", "99999999999999999999"):
            page.post(self, f"/trace?seconds={wrong}", expect=400)
        self.assertIn(b"What the I/O did", page.ask("/report")[2])
        printed = subprocess.run([PENSTOCK, "profile", "report", "--json", self.session], capture_output=True, check=True).stdout
        self.assertEqual(page.ask("/report.json")[2], printed)
        status, headers, body = page.ask("/download")
        self.assertEqual(status, 200)
        self.assertIn('filename="saved.tar"', headers["content-disposition"])
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as archive:
            self.assertEqual(archive.getnames(), ["saved/100-5.session"])
            archive.extractall(self.folder / "out", filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(self.folder / "out")
        self.assertEqual((self.folder / "out/saved/100-5.session").read_bytes(), (self.session / "100-5.session").read_bytes())
        self.assertEqual(self.report(self.folder / "out/saved"), self.report(self.session))
        if shutil.which("tar"):
            (self.folder / "a.tar").write_bytes(body)
            listed = subprocess.run(["tar", "tf", self.folder / "a.tar"], capture_output=True, text=True, check=True)
            self.assertEqual((listed.stdout, listed.stderr), ("saved/100-5.session\n", ""))
        made = page.post(self, "/snapshot")
        self.assertEqual(pathlib.Path(made["session"]).parent, self.folder)
        self.assertEqual(self.report(made["session"])[1], self.report(self.session)[1])

    def test_files_may_be_chosen(self):
        page = Page(self, self.session, "--include", "/data/a", "--units", "si")
        live = page.wait(self, "it is looked at", lambda live: True)
        self.assertEqual([file["path"] for file in live["hottest"]], ["/data/a"])
        rows = [json.loads(line) for line in page.ask("/report.json")[2].splitlines()]
        self.assertEqual([row["path"] for row in rows[1:]], ["/data/a"])

    def test_a_folder_that_goes_away_is_said(self):
        self.page.wait(self, "it is looked at", lambda live: True)
        shutil.rmtree(self.session)
        live = self.page.wait(self, "it has gone", lambda live: live["error"])
        self.assertFalse(live["running"])
        self.assertNotEqual(self.page.status("/download"), 200)
        self.assertEqual(self.page.status("/report"), 500)
        self.assertEqual(self.page.status("/"), 200)

    def test_signals_end_it(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            page = Page(self, self.session)
            page.wait(self, "it is looked at", lambda live: True)
            self.end(page, how)
            rest = page.process.stdout.read() + page.process.stderr.read()
            self.assertNotIn(page.token, rest)


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

        def end():
            process.kill()
            process.stdin.close()
            process.stdout.close()
            process.wait()
        self.addCleanup(end)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def busy(self, **kwargs):
        process = self.begin(BUSY, self.data, **kwargs)
        page = Page(self, self.folder / kwargs.get("session", "session"))
        return process, page, page.wait(self, "it runs", lambda live: live["running"])


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
        # Everybody sees the same.
        looks = {json.dumps([one["at_s"], one["change"]]) for one in (page.live() for _ in range(20))}
        self.assertLessEqual(len(looks), 20)
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
        said = page.post(self, "/trace?seconds=30")
        self.assertTrue(said["armed"])
        said = page.post(self, "/trace?seconds=2")  # replaces
        self.assertLessEqual(said["seconds_left"], 2)
        self.assertEqual(said["running"], len(live["processes"]))
        page.wait(self, "it is armed", lambda live: live["processes"][0]["trace"])
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
        times = [event["ts"] for event in calls]
        self.assertLess(max(times) - min(times), 2e6 + 2 * EDGE_NS / 1e3 + 1e6)

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
        name = os.fsencode(self.folder) + b"/<script>document.title='owned'</script>\n\xff&amp;"
        self.data = pathlib.Path(os.fsdecode(name))
        self.data.parent.mkdir()
        self.data.write_bytes(bytes(4096))
        _, page, _ = self.busy()
        live = page.wait(self, "it is seen", lambda live: any("<script>" in file["path"] for file in live["hottest"]))
        path = next(file["path"] for file in live["hottest"] if "<script>" in file["path"])
        self.assertEqual(path, f"{self.folder}/<script>document.title='owned'</script>\n\ufffd&amp;")
        if browser.find() is None:
            self.skipTest("no Chromium here: what it makes of such names is not seen")
        shown = browser.Browser(self.folder / "profile")
        self.addCleanup(shown.close)
        shown.open(page.url, ready="document.documentElement?.dataset.ready === 'yes'")
        self.assertEqual(shown.evaluate("document.title"), "session - penstock")
        cells = shown.evaluate("[...document.querySelectorAll('#file-table td:first-child')].map((cell) => cell.textContent)")
        self.assertIn(path.replace("\n", "\u240a"), cells)
        self.assertEqual(shown.complaints(), [])

    @unittest.skipIf(may_use_mpi(), may_use_mpi())
    def test_four_ranks(self):
        process = subprocess.Popen([PENSTOCK, "profile", "run", "-o", self.folder / "session", "--", "mpirun", "--oversubscribe", "-np", "4",
                                    sys.executable, "-c", BUSY, self.data], env=MPI, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        for _ in range(4):
            self.assertEqual(process.stdout.readline(), "ready\n")
        page = Page(self, self.folder / "session")

        def ranks(live):
            return [one for one in live["processes"] if one["rank"] is not None]
        live = page.wait(self, "all ranks run", lambda live: len(ranks(live)) == 4)
        self.assertEqual([one["rank"] for one in ranks(live)], [0, 1, 2, 3])
        page.post(self, "/trace?seconds=2")
        page.wait(self, "all are armed", lambda live: sum(one["trace"] for one in ranks(live)) == 4)
        live = page.wait(self, "all are disarmed", lambda live: not live["trace"]["armed"] and not any(one["trace"] for one in live["processes"]))
        self.assertEqual(sorted(one["rank"] for one in live["trace"]["processes"] if one["rank"] is not None), [0, 1, 2, 3])
        for one in ranks(live):
            os.kill(one["pid"], signal.SIGTERM)
        process.wait(timeout=PATIENCE_S)
        page.wait(self, "all have ended", lambda live: not live["running"])


@unittest.skipIf(browser.find() is None, "no Chromium here (ci/bootstrap browser brings it)")
class Seen(RunningTest):
    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(self.folder / "profile")
        self.addCleanup(self.browser.close)
        rows = subprocess.run([PENSTOCK, "--version", "--json"], capture_output=True, text=True, check=True).stdout
        self.charts = any(row.get("name") == "uplot" and row.get("present") for row in map(json.loads, rows.splitlines()))

    def show(self, page, **kwargs):
        self.browser.open(page.url, ready="document.documentElement?.dataset.ready === 'yes'", **kwargs)
        self.browser.draw()

    def check(self, page, painted=True):
        foreign, _ = self.browser.requests()
        self.assertEqual([url for url in foreign if not url.startswith(f"http://127.0.0.1:{page.port}/")], [])
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), True, "nothing is beside the page")
        if painted and self.charts:
            for name, said, pixels in self.browser.evaluate(PAINTED):
                self.assertEqual(said, "yes", name)
                self.assertGreater(pixels, 20, name)

    def until(self, what):
        deadline = time.monotonic() + PATIENCE_S
        while not self.browser.evaluate(what):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.1)

    def picture(self, name):
        if folder := os.environ.get("PENSTOCK_PICTURES"):
            import base64
            data = self.browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
            pathlib.Path(folder, name + ".png").write_bytes(base64.b64decode(data))

    def test_while_it_runs(self):
        process, page, live = self.busy()
        page.wait(self, "there is something to draw", lambda live: len(live["history"]) > 2)
        for dark, width in ((False, 1440), (True, 1440), (False, 390), (True, 390)):
            with self.subTest(dark=dark, width=width):
                self.show(page, dark=dark, width=width)
                self.check(page)
                self.picture(f"live-{'dark' if dark else 'light'}-{width}")
        self.assertEqual(self.browser.evaluate("[...document.querySelectorAll('#process-table tbody tr')].length"), len(live["processes"]))
        self.assertRegex(self.browser.evaluate("document.getElementById('state').textContent"), r"^1 process runs, since ")
        self.browser.evaluate("(document.getElementById('seconds').value = '2', document.querySelector('#trace button').click())")
        self.until("document.getElementById('state').textContent.includes('Every call is kept')")
        self.until("!document.getElementById('state').textContent.includes('Every call is kept')")
        self.browser.evaluate("document.getElementById('snapshot').click()")
        self.until("document.getElementById('said').textContent.includes('-snapshot-')")
        os.kill(live["processes"][0]["pid"], signal.SIGTERM)
        process.wait()
        self.until("document.documentElement.dataset.running === 'false'")
        self.assertTrue(self.browser.evaluate("document.getElementById('trace').hidden && document.getElementById('snapshot').hidden"))
        self.check(page)

    def test_after_it_has_ended(self):
        page = Page(self, self.saved())
        page.wait(self, "it is looked at", lambda live: True)
        for dark, width in ((False, 1440), (True, 390)):
            self.show(page, dark=dark, width=width)
            self.check(page)
            self.picture(f"saved-{'dark' if dark else 'light'}-{width}")
        self.assertIn("saved session", self.browser.evaluate("document.getElementById('state').textContent"))
        self.assertTrue(self.browser.evaluate("document.getElementById('trace').hidden"))
        report = self.browser.evaluate("document.getElementById('report').href")
        self.browser.open(report, ready="document.documentElement?.dataset.ready === 'yes'")
        self.check(page, painted=False)
        self.assertIn("What the I/O did", self.browser.evaluate("document.body.textContent"))

    def test_links_bring_what_they_say(self):
        page = Page(self, self.saved())
        self.show(page)
        links = self.browser.evaluate("['report', 'report-json', 'download'].map((id) => document.getElementById(id).getAttribute('href'))")
        self.assertEqual([urllib.parse.urlsplit(link).path for link in links], ["/report", "/report.json", "/download"])
        for link in links:
            self.assertEqual(page.status(link, token=""), 200)


if __name__ == "__main__":
    main()
