"""Tiers in an object store that answers in the wrong way: what is called done is there, and what failed leaves nothing."""

import http.server
import os
import re
import subprocess
import threading
import urllib.parse

from penstock_cli import PENSTOCK, CliTest, main

RESULT = "CompleteMultipartUploadResult"
NO_RESULTS = {
    "page": b"<!DOCTYPE html><html><body>Welcome</body></html>",
    "nothing": b"",
    "blanks": b" \n \n  ",
    "cut": f"<?xml version='1.0'?>\n<{RESULT}><ETag>x</ETag>".encode(),
    "other": b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
    "trailing": f"<{RESULT}></{RESULT}>\0\0".encode(),
    "gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
}
ERROR = b"\n<?xml version='1.0'?><Error><Code>InternalError</Code><Message>try again</Message></Error>"


class Store(http.server.ThreadingHTTPServer):
    """Objects in memory. It asks for no signature."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.objects, self.marks = {}, {}  # by key
        self.uploads = {}  # open ones, by id: the key, the mark, the parts by number
        self.started = 0
        self.answer, self.times, self.completes = None, 0, False  # see replace()

    def replace(self, answer, times, completes=False):
        """The next completions of an upload are answered so; they are done first if `completes`."""
        self.answer, self.times, self.completes = answer, times, completes

    def handle_error(self, request, client_address):
        pass  # a client that went away

    def complete(self, query, body):
        replaced = self.times > 0
        self.times -= replaced
        if not replaced or self.completes:
            if query["uploadId"] not in self.uploads:
                return 404, b"<Error><Code>NoSuchUpload</Code></Error>"
            key, mark, parts = self.uploads.pop(query["uploadId"])
            self.objects[key] = b"".join(parts[int(number)] for number in re.findall(rb"<PartNumber>(\d+)", body))
            self.marks[key] = mark
        return 200, self.answer if replaced else f"<{RESULT}><ETag>x</ETag></{RESULT}>".encode()

    def change(self, method, key, query, mark, body):
        if method == "DELETE":
            self.uploads.pop(query.get("uploadId"), None)
            if "uploadId" not in query:
                self.objects.pop(key, None)
            return 204, b""
        if method == "POST" and "uploads" in query:
            self.started += 1
            self.uploads[str(self.started)] = (key, mark, {})
            name = "InitiateMultipartUploadResult"
            return 200, f"<{name}><UploadId>{self.started}</UploadId></{name}>".encode()
        if method == "POST":
            return self.complete(query, body)
        if "uploadId" in query:
            self.uploads[query["uploadId"]][2][int(query["partNumber"])] = body
        else:
            self.objects[key], self.marks[key] = body, mark
        return 200, b""

    def list(self, prefix):
        rows = "".join(f"<Contents><Key>{key}</Key><Size>{len(data)}</Size></Contents>"
                       for key, data in sorted(self.objects.items()) if key.startswith(prefix))
        return 200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        key = urllib.parse.unquote(url.path).removeprefix("/bucket").lstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mark = self.headers.get("x-amz-meta-penstock", "")
        with self.server.lock:
            if not key:
                status, text = self.server.list(query.get("prefix", ""))
            elif self.command in ("GET", "HEAD"):
                text = self.server.objects.get(key)
                status, mark = (200, self.server.marks[key]) if text is not None else (404, "")
            else:
                status, text = self.server.change(self.command, key, query, mark, body)
        self.reply(status, text or b"", mark)

    def reply(self, status, text, mark):
        asked = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("Range") or "")
        if asked and status == 200:
            status, size, first = 206, len(text), int(asked[1])
            text = text[first : int(asked[2]) + 1]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{first + len(text) - 1}/{size}")
        self.send_header("ETag", '"x"')
        self.send_header("x-amz-meta-penstock", mark)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(text)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any


class S3Answers(CliTest):
    def setUp(self):
        super().setUp()
        self.store = Store()
        self.addCleanup(self.store.server_close)
        threading.Thread(target=self.store.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(self.store.shutdown)
        (self.dir / "from").mkdir()
        self.data = os.urandom(6 << 20)
        (self.dir / "from" / "large.bin").write_bytes(self.data)

    def copy(self, expect=0):
        self.store.objects.clear()
        self.store.started = 0
        tier = f"s3:http://127.0.0.1:{self.store.server_address[1]}/bucket/to,part=5MiB,retries=2,timeout=5s"
        return self.run_cli("copy", "from", "--to", tier, "--scan", "--types", "bin", expect=expect,
                            env={**os.environ, "no_proxy": "127.0.0.1"})

    def check(self, stored):
        self.assertEqual(self.store.started, 1)
        self.assertEqual(self.store.uploads, {})
        self.assertEqual([data for key, data in self.store.objects.items() if key.endswith("large.bin")],
                         [self.data] if stored else [])
        if not stored:
            self.assertEqual([key for key in self.store.objects if key.endswith("manifest")], [])

    def test_an_upload_that_is_never_completed_fails(self):
        for name, answer in {**NO_RESULTS, "error": ERROR}.items():
            with self.subTest(name):
                self.store.replace(answer, 99)
                done = self.copy(expect=1)
                self.assertIn("large.bin", done.stderr)
                self.assertIn("InternalError" if name == "error" else "no_proxy", done.stderr)
                self.check(stored=False)

    def test_an_upload_is_completed_in_a_later_try(self):
        for name, answer in {**NO_RESULTS, "error": ERROR}.items():
            with self.subTest(name):
                self.store.replace(answer, 2)
                self.copy()
                self.check(stored=True)

    def test_an_upload_that_was_completed_is_done(self):
        for name, answer in NO_RESULTS.items():
            with self.subTest(name):
                self.store.replace(answer, 1, completes=True)
                self.copy()
                self.check(stored=True)


def lacking():
    """Why none of this can run here, or None."""
    tier = subprocess.run([PENSTOCK, "verify", "s3:http://127.0.0.1:9/b,retries=0"], capture_output=True, text=True, check=False)
    return tier.stderr if tier.returncode == 77 else None


if __name__ == "__main__":
    main(lacking)
