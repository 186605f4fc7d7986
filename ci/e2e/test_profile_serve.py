"""`penstock profile serve`: who is let in and who is not, what is answered and what is not, and how it ends."""

import gzip
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

from messages import message
from penstock_cli import PATIENCE_S, PENSTOCK, has_library, main
from profile_serve_case import SEEDS, Page, ServeTest, code, everything, finish, state

# Asks as another user: descriptor and process are that one's before it connects.
STRANGER = textwrap.dedent("""
    import encodings.idna, os, socket, sys  # that one need not be able to read Python's own folder
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    answer = b""
    try:  # who is refused is refused before it asks, and not waited for
        s.sendall(sys.argv[2].encode())
    except OSError:
        pass
    try:
        while part := s.recv(65536):
            answer += part
    except OSError:
        pass
    print(answer.decode(errors="replace").split("\\r\\n")[0])
""")
# Another user that connects all the time, and keeps its connections: of each the server has to find out whose it is.
FLOOD = textwrap.dedent("""
    import collections, encodings.idna, os, socket, struct, sys
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    parent = os.getppid()
    held = collections.deque()
    while os.getppid() == parent:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", int(sys.argv[1])))
        held.append(s)
        if len(held) == 500:
            print("ready", flush=True)
        while len(held) > 500:
            held.popleft().close()
""")


class WithoutHttplib(unittest.TestCase):
    def test_serve_is_listed_and_reports_why_it_is_missing(self):
        listed = subprocess.run([PENSTOCK, "profile", "--help"], capture_output=True, text=True, check=True)
        self.assertRegex(listed.stdout, r"(?m)^  serve\s")
        if has_library("cpp-httplib"):
            self.skipTest("this build has cpp-httplib")
        with tempfile.TemporaryDirectory() as folder:
            session = pathlib.Path(folder, "session")
            session.mkdir()
            shutil.copy(SEEDS / "traced", session / "100-5.session")
            done = subprocess.run([PENSTOCK, "profile", "serve", session], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertIn(message("build-lacks-cpp-httplib"), done.stderr)
            page = pathlib.Path(folder, "page.html")  # what the message advises
            subprocess.run([PENSTOCK, "profile", "report", session, "--html", page], capture_output=True, check=True)
            self.assertIn("<html", page.read_text(encoding="utf-8"))


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
        self.addCleanup(finish, other)
        self.assertRegex(other.stdout.readline(), r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}\n$")
        done = subprocess.run([PENSTOCK, "profile", "serve", str(self.session), "--port", str(page.port)], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(message("port-in-use"), done.stderr)
        for words, what in (([], "SESSION|PID"), (["no-such"], "neither"), ([str(self.session), "--port", "70000"], "65535"), ([str(self.folder)], "")):
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
        self.addCleanup(finish, process)
        line = process.stdout.readline()
        if not line:
            self.skipTest(f"that user cannot run it here: {process.communicate()[1]}")
        output = json.loads(line)
        text = f"GET /live?token={output['token']} HTTP/1.1\r\nHost: 127.0.0.1:{output['port']}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", output["port"])) as s:
            s.sendall(text.encode())
            self.assertEqual(code(everything(s)), 200)
        done = subprocess.run([sys.executable, "-c", STRANGER, str(output["port"]), text], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
        self.assertEqual(done.stdout.split(" ")[1], "403", done.stdout)
        done = subprocess.run([sys.executable, "-c", STRANGER.replace("65534", "65533"), str(output["port"]), text], capture_output=True, text=True,
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

    def test_who_waits_before_it_sends_a_body_is_told_to_go_on(self):
        page = self.page
        head = (f"POST /trace?seconds=0 HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nAuthorization: bearer {page.token}\r\n"
                "Expect: 100-continue\r\nContent-Length: {}\r\n\r\n")
        with page.connect(head.format(3).encode()) as s:
            self.assertEqual(s.recv(4096), b"HTTP/1.1 100 Continue\r\n\r\n")
            s.sendall(b"abc")
            output = everything(s)
        self.assertEqual(code(output), 200)
        self.assertEqual(code(page.raw(head.format(5000).encode())), 413)

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

    def test_ranges_are_ignored(self):
        """However long they are: an answer is sent whole."""
        whole = self.page.ask("/download")
        for ranges in ("bytes=0-9", "bytes=0-0,-1", "bytes=" + ",".join(["0-1"] * 1800), "lines=1-2", "bytes=9-0"):
            status, headers, body = self.page.ask("/download", headers={"Range": ranges})
            self.assertEqual((status, body), (200, whole[2]), ranges[:40])
            self.assertNotIn("content-range", headers)

    def test_compressed_and_multipart_bodies_are_not_unpacked(self):
        packed = gzip.compress(bytes(3 << 20))
        for headers in ({"Content-Encoding": "gzip"}, {"Content-Type": "multipart/form-data; boundary=x"},
                        {"Content-Type": "application/x-www-form-urlencoded"}):
            self.assertEqual(self.page.status("/trace?seconds=0", "POST", headers=headers, body=packed), 200, headers)
            self.assertEqual(self.page.status("/none", "POST", headers=headers, body=packed), 404, headers)

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

    def test_slow_clients_are_ended_and_do_not_block(self):
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.page.port), timeout=PATIENCE_S) as slow:
            slow.sendall(b"GET /live HT")
            self.assertEqual(self.page.status("/live"), 200)
            self.assertEqual(code(everything(slow)), 408)
        self.assertGreater(time.monotonic() - begin, 9)

    def test_more_than_it_takes_at_once(self):
        page = self.page
        first, job = page.hold(self, "/report.json")
        waiting = [first]
        for _ in range(31):
            waiting.append(page.connect(page.request("/report.json")))
            self.addCleanup(waiting[-1].close)
        self.assertEqual([code(page.raw(page.request("/live"))) for _ in range(8)], [503] * 8)
        os.kill(job, signal.SIGCONT)
        self.assertEqual([code(everything(s)) for s in waiting], [200] * 32)
        self.wait_for_room(page)

    def wait_for_room(self, page):
        until = time.monotonic() + PATIENCE_S
        while page.status("/live") != 200:
            self.assertLess(time.monotonic(), until)

    def test_who_has_gone_waits_no_more(self):
        page = self.page
        first, job = page.hold(self, "/report.json")
        for _ in range(40):
            with page.connect(page.request("/report.json")):
                page.raw(page.request("/live"))  # so the one before has been read
        self.wait_for_room(page)
        self.assertEqual(page.status("/trace?seconds=0", "POST"), 200)
        self.assertEqual(state(job), "T")
        os.kill(job, signal.SIGCONT)
        self.assertEqual(code(everything(first)), 200)

    @unittest.skipUnless(os.geteuid() == 0, "only root can connect as another user")
    def test_another_user_that_connects_all_the_time_does_not_block(self):
        page = self.page
        asked, job = page.hold(self, "/report.json")
        flood = subprocess.Popen([sys.executable, "-c", FLOOD, str(page.port)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(finish, flood)
        self.assertEqual(flood.stdout.readline(), "ready\n")
        os.kill(job, signal.SIGCONT)
        self.assertEqual(code(everything(asked)), 200)
        self.end(page)

    def test_a_snapshot_that_cannot_be_finished_leaves_nothing(self):
        page = self.page
        asked, job = page.hold(self, "/snapshot", "POST")
        before = set(self.folder.glob("saved-snapshot-*"))
        os.kill(job, signal.SIGKILL)
        self.assertEqual(code(everything(asked)), 500)
        made = set(self.folder.glob("saved-snapshot-*"))
        self.assertEqual(len(before - made), 1, "the one that was being made")
        for one in made:
            self.assertEqual(self.report(one)[1], self.report(self.session)[1])
        made.add(pathlib.Path(page.post(self, "/snapshot")["session"]))
        self.assertEqual(set(self.folder.glob("saved-snapshot-*")), made)

    def test_what_was_started_ends_with_it(self):
        page = self.page
        jobs = [page.hold(self, *asked)[1] for asked in (("/report",), ("/report.json",), ("/snapshot", "POST"))]
        before = set(self.folder.glob("saved-snapshot-*"))
        self.end(page)
        self.assertEqual([state(job) for job in jobs], [""] * 3)
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertEqual(len(before - set(self.folder.glob("saved-snapshot-*"))), 1)

    def test_what_has_ended_is_shown_and_taken_along(self):
        page = self.page
        live = page.wait(self, "it is looked at", lambda live: True)
        self.assertEqual((live["running"], live["processes"], live["bytes_read"]), (False, [], 49152))
        self.assertIn("/data/a", [file["path"] for file in live["hottest"]])
        self.assertAlmostEqual(sum(point[2] for point in live["history"]), live["bytes_read"], delta=1)
        self.assertAlmostEqual(sum(point[4] for point in live["history"]), live["operations"], delta=1)
        self.assertIn(message("nothing-running"), page.post(self, "/trace?seconds=5", expect=409))
        for wrong in ("", "x", "-1", "1.5", "3601", "99999999999999999999"):
            page.post(self, f"/trace?seconds={wrong}", expect=400)
        self.assertIn(b"I/O profile", page.ask("/report")[2])
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


if __name__ == "__main__":
    main()
