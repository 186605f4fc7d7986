"""Tiers in an object store that answers in the wrong way: what is called done is there, and what failed leaves nothing."""

import http.server
import json
import os
import re
import shutil
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
KEYS = {"aws_access_key_id": "TESTKEY", "aws_secret_access_key": "only-for-this-test"}
ERROR = b"\n<?xml version='1.0'?><Error><Code>InternalError</Code><Message>try again</Message></Error>"


class Store(http.server.ThreadingHTTPServer):
    """Objects in memory. It asks for no signature."""

    daemon_threads = True

    def __init__(self, handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.lock = threading.Lock()
        self.objects, self.marks = {}, {}  # by key
        self.uploads = {}  # open ones, by id: the key, the mark, the parts by number
        self.started = 0
        self.answer, self.wrong_answers, self.completes = None, 0, False  # see replace()
        self.listings = []  # what the next listings are answered with, in place of the list
        self.pages = {}  # what every listing is answered with, by its continuation token ("" without one)
        self.asks_for_keys = False

    def replace(self, answer, times, completes=False):
        """The next completions of an upload are answered so; they are done first if `completes`."""
        self.answer, self.wrong_answers, self.completes = answer, times, completes

    def handle_error(self, request, client_address):
        pass  # a client that went away

    def complete(self, query, body):
        replaced = self.wrong_answers > 0
        self.wrong_answers -= replaced
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

    def list(self, query):
        prefix = query.get("prefix", "")
        if self.listings:
            return self.listings.pop()
        if self.pages:
            return 200, self.pages[query.get("continuation-token", "")]
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
            if self.server.asks_for_keys and f"Credential={KEYS['aws_access_key_id']}/" not in self.headers.get("Authorization", ""):
                status, text = 403, b"<Error><Code>AccessDenied</Code><Message>no key</Message></Error>"
            elif not url.path.startswith("/bucket"):
                status, text = 404, b"<Error><Code>NoSuchBucket</Code><Message>it does not exist</Message></Error>"
            elif not key:
                status, text = self.server.list(query)
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


class StoreTest(CliTest):
    """A store of a test, and the folder `from` with an object that is written in parts."""

    make_store = Store

    def setUp(self):
        super().setUp()
        self.store = self.make_store()
        self.addCleanup(self.store.server_close)
        threading.Thread(target=self.store.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(self.store.shutdown)
        (self.dir / "from").mkdir()
        self.data = os.urandom(6 << 20)
        (self.dir / "from" / "large.bin").write_bytes(self.data)

    def tier(self, where, options="part=5MiB,retries=2,timeout=5s"):
        return f"s3:http://127.0.0.1:{self.store.server_address[1]}/{where},{options}"


class S3Answers(StoreTest):

    def copy(self, expect=0):
        self.store.objects.clear()
        self.store.started = 0
        return self.run_cli("copy", "from", "--to", self.tier("bucket/to"), "--scan", "--types", "bin", expect=expect,
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

    def describe(self, where="bucket/d", expect=0, **environment):
        """Scans a folder of one picture with keys from nowhere but `home/` and these variables."""
        self.store.objects["d/a.jpg"] = b"\xff\xd8\xff" + bytes(500)
        usual = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
        return self.run_cli("describe", self.tier(where), "--scan", "--json", expect=expect,
                            env={**usual, "no_proxy": "127.0.0.1", "HOME": str(self.dir / "home"), **environment})

    def home(self, **files):
        """Writes ~/.aws/NAME for each, and nothing else is there."""
        folder = self.dir / "home" / ".aws"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)

    def test_a_listing_is_asked_for_again(self):
        for name, answer in {"error": (200, ERROR), "busy": (503, ERROR.replace(b"InternalError", b"SlowDown"))}.items():
            with self.subTest(name):
                self.store.listings = [answer]
                done = self.describe(AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s")
                self.assertEqual((json.loads(done.stdout)["samples"], self.store.listings), (1, []))

    def test_a_listing_that_is_none_is_no_empty_folder(self):
        for name, answer in {"error": ERROR, "page": NO_RESULTS["page"], "nothing": b"", "cut": b"<ListBucketResult><Contents><Key>d/a"}.items():
            with self.subTest(name):
                self.store.listings = [(200, answer)] * 9
                done = self.describe(expect=1, AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s")
                self.assertIn("InternalError" if name == "error" else "list", done.stderr)

    def test_listings_of_several_pages(self):
        def page(*parts):
            return f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode()

        one, two = (f"<Contents><Key>d/{name}.jpg</Key><Size>900</Size></Contents>" for name in "ab")
        more, last, token = "<IsTruncated>true</IsTruncated>", "<IsTruncated>false</IsTruncated>", "<NextContinuationToken>t</NextContinuationToken>"
        samples = {
            "empty page": ({"": page(more, token), "t": page(last, one, two)}, 2),
            "capitals": ({"": page(more.replace("true", "True"), token, one), "t": page(last.replace("false", "False"), two)}, 2),
            "token of the last page": ({"": page(last, token, one, two)}, 2),
            "folder": ({"": page(last, "<Contents><Key>d/</Key><Size>0</Size></Contents>", one)}, 1),
            "comment": ({"": page("<!-- cached -->", last, one)}, 1),
            "character data": ({"": page(last, one.replace("d/a.jpg", "<![CDATA[d/a.jpg]]>"))}, 1),
            "no token": ({"": page(more, one)}, None),
            "same token": ({"": page(more, token, one), "t": page(more, token, two)}, None),
            "no size": ({"": page(last, "<Contents><Key>d/a.jpg</Key></Contents>")}, None),
            "no key": ({"": page(last, "<Contents><Size>1</Size></Contents>")}, None),
            "neither": ({"": page("<IsTruncated>maybe</IsTruncated>", one)}, None),
        }
        for name, (pages, count) in samples.items():
            with self.subTest(name):
                self.store.pages = pages
                done = self.describe(expect=1 if count is None else 0, AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s")
                if count is not None:
                    self.assertEqual(json.loads(done.stdout)["samples"], count)

    def test_a_bucket_that_is_missing_is_named(self):
        done = self.describe("missing/d", expect=2, AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s")
        self.assertIn("bucket 'missing'", done.stderr)

    def test_keys_are_where_the_aws_tools_look_for_them(self):
        keys = "".join(f"{name} = {key}\n" for name, key in KEYS.items())
        program = self.dir / "keys.sh"
        program.write_text("#!/bin/sh\necho '" + json.dumps({"Version": 1, "AccessKeyId": KEYS["aws_access_key_id"],
                                                             "SecretAccessKey": KEYS["aws_secret_access_key"]}) + "'\n")
        program.chmod(0o755)
        self.store.asks_for_keys = True
        (self.dir / "elsewhere").write_text("[default]\n" + keys)
        places = {
            "credentials": ({"credentials": "[default]\n" + keys}, {}),
            "config": ({"config": "[default]\n" + keys}, {}),
            "crlf": ({"credentials": ("[default]\n" + keys).replace("\n", "\r\n")}, {}),
            "byte order mark": ({"credentials": "\ufeff[default]\n" + keys}, {}),
            "indented": ({"credentials": " [default]\n  " + keys.replace("\n", "\n  ")}, {}),
            "no blanks": ({"credentials": "[default]\n" + keys.replace(" = ", "=")}, {}),
            "empty keys before": ({"credentials": "[default]\naws_access_key_id =\n", "config": "[default]\n" + keys}, {}),
            "comments": ({"credentials": "# mine\n; old\n\n[other]\na = b\n[default] # now\n" + keys}, {}),
            "capitals": ({"credentials": "[default]\n" + keys.replace("aws_access", "AWS_ACCESS").replace("_key", "_KEY")}, {}),
            "colons": ({"credentials": "[default]\n" + keys.replace(" = ", ": ")}, {}),
            "default in full": ({"config": "[profile default]\n" + keys}, {}),
            "quotes": ({"config": "[profile \"my training\"]\n" + keys}, {"AWS_PROFILE": "my training"}),
            "profile of config": ({"config": "[profile training]\n" + keys}, {"AWS_PROFILE": "training"}),
            "profile of credentials": ({"credentials": "[training]\n" + keys}, {"AWS_PROFILE": "training"}),
            "process": ({"config": f"[default]\ncredential_process = {program}\n"}, {}),
            "other file": ({}, {"AWS_SHARED_CREDENTIALS_FILE": str(self.dir / "elsewhere")}),
        }
        for name, (files, environment) in places.items():
            with self.subTest(name):
                self.home(**files)
                self.assertEqual(json.loads(self.describe(**environment).stdout)["samples"], 1)

    def test_what_there_is_in_place_of_keys_is_named(self):
        keys = "".join(f"{name} = {key}\n" for name, key in KEYS.items())
        self.store.asks_for_keys = True
        for word, files in {"training": {"credentials": "[training]\n" + keys}, "sso": {"config": "[default]\nsso_start_url = https://x\n"},
                            "'false'": {"config": "[default]\ncredential_process = false secret\n"}}.items():
            with self.subTest(word):
                self.home(**files)
                stderr = self.describe(expect=1 + (word == "'false'")).stderr
                self.assertIn(word, stderr)
                self.assertNotIn("secret", stderr)
        self.home()
        self.assertIn("'/nonexistent/keys'", self.describe(expect=1, AWS_SHARED_CREDENTIALS_FILE="/nonexistent/keys").stderr)
        (self.dir / "home" / ".aws" / "credentials").mkdir()
        self.assertIn("Is a directory", self.describe(expect=1).stderr)


def lacking():
    """Why none of this can run here, or None."""
    tier = subprocess.run([PENSTOCK, "verify", "s3:http://127.0.0.1:9/b,retries=0"], capture_output=True, text=True, check=False)
    return tier.stderr if tier.returncode == 77 else None


if __name__ == "__main__":
    main(lacking)
