"""Every answer of an object store, replaced by every kind of wrong one: no exit 0 hides missing work."""

import contextlib
import itertools
import json
import os
import urllib.parse

import test_s3_answers
from penstock_cli import main

KINDS = {"copy": ("list", "head", "put", "create", "part", "complete"), "back": ("list", "head", "get"),
         "verify": ("list", "head", "get"), "scan": ("list", "head", "get"),
         "generate": ("list", "head", "get", "put", "delete"), "read": ("list", "head", "get")}
PAGE = b"<!DOCTYPE html><html><body>Welcome</body></html>"
ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>try again</Message></Error>"
OTHER = b"<Other><IsTruncated>false</IsTruncated></Other>"
# The answers that replace the right one, as functions of its status, headers and body.
FAULTS = {
    "empty": lambda status, headers, body: (200, {}, b""),
    "page": lambda status, headers, body: (200, {}, PAGE),
    "error in a 200": lambda status, headers, body: (200, {}, ERROR),
    "other element": lambda status, headers, body: (200, {}, OTHER),
    "no headers": lambda status, headers, body: (status, {}, body),
    "no length": lambda status, headers, body: (status, {**headers, "Content-Length": None}, body),
    "cut": lambda status, headers, body: (status, {**headers, "Content-Length": len(body) + 1000}, body[: len(body) // 2]),
    "short": lambda status, headers, body: (status, headers, body[: len(body) // 2]),
    "long": lambda status, headers, body: (status, headers, body + b"x" * 7),
    "less than was asked": lambda status, headers, body: (
        (206, {**headers, "Content-Range": f"bytes 0-{max(len(body) // 2 - 1, 0)}/{len(body)}"}, body[: len(body) // 2])),
    "other range": lambda status, headers, body: (206, {**headers, "Content-Range": "bytes 9-99999999/5"}, body),
    "odd lengths": lambda status, headers, body: (status, {**headers, "Content-Length": 18446744073709551615}, body),
    **{str(code): (lambda status, headers, body, code=code: (code, {}, b""))
       for code in (201, 202, 204, 206, 301, 304, 307, 400, 403, 404, 409, 412, 416, 429, 500, 503)},
}
# These faults leave of a right answer what proves the work. Only a store that lies gives them without the work.
OF_A_RIGHT_ANSWER = ("no headers", "no length", "cut", "short", "long", "less than was asked", "other range", "odd lengths")
LISTING_FAULTS = {
    "no IsTruncated": (b"<IsTruncated>false</IsTruncated>", b""),
    "IsTruncated without a token": (b"false</IsTruncated>", b"true</IsTruncated>"),
    "odd IsTruncated": (b"false</IsTruncated>", b"no</IsTruncated>"),
    "no sizes": (b"Size>", b"Bytes>"),
    "no keys": (b"Key>", b"Name>"),
    "negative sizes": (b"<Size>", b"<Size>-"),
    "foreign keys": (b"<Key>", b"<Key>other/"),
}


class Handler(test_s3_answers.Handler):
    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        key = urllib.parse.unquote(url.path).removeprefix("/bucket").lstrip("/")
        kind = {"GET": "get" if key else "list", "HEAD": "head", "PUT": "part" if "partNumber" in query else "put",
                "POST": "create" if "uploads" in query else "complete",
                "DELETE": "abort" if "uploadId" in query else "delete"}[self.command]
        with self.server.lock:
            self.server.seen.add(kind)
            self.server.delimiter = query.get("delimiter")  # each request of these tests ends before the next
            self.fault = None
            if kind == self.server.kind and self.server.times > 0:
                self.server.times -= 1
                self.fault = self.server.fault
        if self.fault is not None and not self.server.executes:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.reply(200, b"", "")
        else:
            super().handle_any()

    def reply(self, status, text, mark):
        if self.fault is None:
            super().reply(status, text, mark)
            return
        headers = {"ETag": '"x"', "x-amz-meta-penstock": mark}
        status, headers, text = self.fault(status, headers, text)
        self.send_response(status)
        length = headers.pop("Content-Length", len(text))
        for name, value in headers.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Connection", "close")
        elif status not in (204, 304):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.close_connection = length != len(text) or status in (204, 304)
        if self.command != "HEAD" and status not in (204, 304):
            with contextlib.suppress(OSError):
                self.wfile.write(text)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any


class Store(test_s3_answers.Store):
    def __init__(self):
        super().__init__(Handler)
        self.kind, self.fault, self.executes, self.times, self.seen = "", None, True, 0, set()
        self.delimiter, self.left = None, 0

    def list(self, query):
        if not self.delimiter:
            return super().list(query)
        prefix = query.get("prefix", "")
        names = sorted(key.removeprefix(prefix) for key in self.objects if key.startswith(prefix))
        folders = sorted({name.split("/")[0] for name in names if "/" in name})
        rows = "".join(f"<Contents><Key>{prefix}{name}</Key><Size>{len(self.objects[prefix + name])}</Size></Contents>"
                       for name in names if "/" not in name)
        rows += "".join(f"<CommonPrefixes><Prefix>{prefix}{name}/</Prefix></CommonPrefixes>" for name in folders)
        return 200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()


class S3Faults(test_s3_answers.StoreTest):
    make_store = Store

    def setUp(self):
        super().setUp()
        (self.dir / "from" / "sub").mkdir()
        self.files = {"large.bin": self.data, "a.bin": b"a" * 3000, "sub/b.bin": b"b" * 5000, "sub/c.bin": b"c"}
        for name, data in self.files.items():
            (self.dir / "from" / name).write_bytes(data)
        self.runs = 0
        self.timeout_s = 1  # some faults are an answer that never comes

    def folder(self, name):
        return self.tier(f"bucket/{name}", f"part=5MiB,retries=0,timeout={self.timeout_s}s")

    def penstock(self, *args):
        self.runs += 1
        done = self.run_cli(*args, expect=None, env={**os.environ, "no_proxy": "127.0.0.1"})
        self.assertIn(done.returncode, (0, 1, 2, 3, 65, 77), done.stderr)  # no signal
        if done.returncode != 0:
            self.assertNotEqual(done.stderr + done.stdout, "")
        return done

    def do_copy(self):
        self.store.objects.clear()
        self.store.uploads.clear()
        done = self.penstock("copy", "from", "--to", self.folder("to"), "--scan", "--types", "bin", "--threads", 1)
        stored = {key.removeprefix("to/"): data for key, data in self.store.objects.items()}
        if done.returncode == 0:
            for name, data in self.files.items():
                self.assertEqual(stored.get(name), data, name)
            self.assertTrue(any("manifest" in key for key in stored))
        return done

    def do_back(self):
        back = self.dir / f"back-{self.runs}"
        done = self.penstock("copy", self.folder("to"), "--to", back, "--threads", 1)
        if done.returncode == 0:
            for name, data in self.files.items():
                self.assertEqual((back / name).read_bytes(), data, name)
        return done

    def do_verify(self):
        done = self.penstock("verify", self.folder("to"), "--threads", 1)
        if done.returncode == 0:
            self.assertIn("4 right", done.stdout)
        return done

    def do_scan(self):
        done = self.penstock("describe", self.folder("plain"), "--scan", "--types", "bin", "--json")
        if done.returncode == 0:
            self.assertEqual(json.loads(done.stdout.splitlines()[0])["samples"], len(self.files))
        return done

    def do_generate(self):
        for key in [key for key in self.store.objects if key.startswith("made/")]:
            del self.store.objects[key]
        done = self.penstock("generate", "imagenet", "--samples", 5, "--threads", 1, "--out", self.folder("made"))
        self.store.left, self.store.times = self.store.times, 0
        if done.returncode == 0:
            self.assertIn("5 right", self.run_cli("verify", self.folder("made"), env={**os.environ, "no_proxy": "127.0.0.1"}).stdout)
        return done

    def do_read(self):
        done = self.penstock("read", self.folder("to"), "--verify", "--threads", 1, "--min-time", "1ms", "--repeat", 1,
                             "--no-baseline", "--no-ceiling", "--json")
        if done.returncode == 0:
            record = [json.loads(line) for line in done.stdout.splitlines()][-1]
            self.assertEqual(record["metrics"].get("errors", {"value": 0})["value"], 0)
            self.assertGreater(record["metrics"]["payload_bytes_per_s"]["value"], 0)
        return done

    def prepare(self):
        self.assertEqual(self.do_copy().returncode, 0)
        self.store.objects.update({f"plain/{name}": data for name, data in self.files.items()})
        self.store.marks.update({f"plain/{name}": "" for name in self.files})

    def inject(self, command, kind, fault, executes, times):
        before = dict(self.store.objects), dict(self.store.marks)
        self.store.kind, self.store.fault, self.store.executes, self.store.times = kind, fault, executes, times
        done = getattr(self, f"do_{command}")()
        left = self.store.left if command == "generate" else self.store.times
        self.store.times = 0
        if command != "copy":
            self.store.objects, self.store.marks = before
        return done, times - left

    def try_all(self, command):
        self.prepare()
        self.store.seen = set()
        self.timeout_s = 100
        plain, _ = self.inject(command, "", None, True, 0)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.timeout_s = 1
        kinds = [kind for kind in KINDS[command] if kind in self.store.seen]
        self.assertGreater(len(kinds), 1)
        for kind, name in itertools.product(kinds, FAULTS):
            for executes in (True,) if kind in ("list", "head", "get") or name in OF_A_RIGHT_ANSWER else (True, False):
                with self.subTest(kind=kind, fault=name, executes=executes):
                    _, hits = self.inject(command, kind, FAULTS[name], executes, 99)
                    self.assertGreater(hits, 0)

    def test_copy_to_the_store(self):
        self.try_all("copy")

    def test_copy_from_the_store(self):
        self.try_all("back")

    def test_verify(self):
        self.try_all("verify")

    def test_scan(self):
        self.try_all("scan")

    def test_generate(self):
        self.try_all("generate")

    def test_read(self):
        self.try_all("read")

    def test_listings_that_lack_something(self):
        self.prepare()
        for name, (old, new) in LISTING_FAULTS.items():
            with self.subTest(fault=name):
                done, hits = self.inject("scan", "list", lambda status, headers, body, old=old, new=new: (
                    status, headers, body.replace(old, new)), True, 99)
                self.assertGreater(hits, 0)
                self.assertEqual(done.returncode, 1, done.stderr)


if __name__ == "__main__":
    main(test_s3_answers.lacking)
