"""Tiers in a real object store that checks signatures (ci/testbed/s3). Skipped where that is not installed."""

import os
import pathlib
import subprocess
import time

from messages import message
from penstock_cli import BUILD, PENSTOCK, SOURCE, CliTest, main

TESTBED = SOURCE / "ci" / "testbed" / "s3"
SECRET = "only-on-loopback"


def start(folder, *words):
    """The environment of a server over the folder, or why there is none."""
    done = subprocess.run([TESTBED, "start", folder, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return None, done
    words = [word for line in done.stdout.splitlines() for word in line.split()[1:]]
    return dict(word.split("=", 1) for word in words), done


class S3(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.dir / "store"
        self.addCleanup(subprocess.run, [TESTBED, "stop", self.store], check=False)

    def serve(self, *words):
        environment, done = start(self.store, *words)
        self.assertIsNotNone(environment, done.stderr)
        self.env = {**os.environ, **environment, "no_proxy": "127.0.0.1"}
        return environment["PENSTOCK_TEST_S3"]

    def run_s3(self, *args, **kwargs):
        return self.run_cli(*args, **{"env": self.env, **kwargs})

    def stored(self, name=""):
        return self.store / "data" / "penstock" / name

    def test_make_copy_read_verify(self):
        url = self.serve()
        self.run_s3("generate", "imagenet", "--samples", 60, "--seed", 5, "--out", f"s3:{url}/made")
        self.run_cli("generate", "imagenet", "--samples", 60, "--seed", 5, "--out", self.dir / "local")
        self.assert_same_tree("local", self.stored("made"))
        self.assertIn("60 right", self.run_s3("verify", f"s3:{url}/made").stdout)
        self.run_s3("copy", f"s3:{url}/made", "--to", self.dir / "back")
        self.assert_same_tree("local", "back")
        self.run_s3("copy", "local", "--to", f"s3:{url}/a%2Cb=c d\u00e9")
        self.assert_same_tree("local", self.stored("a,b=c d\u00e9"))
        done = self.run_s3("read", f"s3=s3:{url}/made", "--threads", 1, "--depth", 8, "--min-time", "200ms", "--repeat", 1,
                           "--results", "records")
        self.assertIn("s3", done.stdout)
        for record in (self.dir / "records").iterdir():
            text = record.read_text(encoding="utf-8")
            self.assertNotIn(SECRET, text)
            self.assertIn('"network":true', text.replace(" ", ""))

    def test_large_objects_go_in_parts(self):
        url = self.serve()
        large = self.dir / "photos" / "large.bin"
        large.parent.mkdir()
        large.write_bytes(os.urandom(13 << 20))
        self.run_s3("copy", "photos", "--scan", "--types", "bin", "--to", f"s3:{url}/parts,part=5MiB")
        self.assertEqual(self.stored("parts/large.bin").read_bytes(), large.read_bytes())
        self.assertIn("1 right", self.run_s3("verify", f"s3:{url}/parts,part=5MiB").stdout)
        for options in ("part=5MiB", "part=5MiB,connections=1"):
            self.run_s3("read", f"s3:{url}/parts,{options}", "--depth", 2, "--verify", "--min-time", "100ms", "--repeat", 1)

    def test_a_wrong_secret(self):
        url = self.serve()
        self.run_s3("generate", "imagenet", "--samples", 3, "--out", f"s3:{url}/made")
        for args in (("verify", f"s3:{url}/made"), ("generate", "imagenet", "--samples", 3, "--out", f"s3:{url}/other")):
            done = self.run_s3(*args, env={**self.env, "AWS_SECRET_ACCESS_KEY": "wrong-secret"}, expect=1)
            self.assertIn("SignatureDoesNotMatch", done.stderr)
            self.assertIn(message("s3-secret-key-wrong"), done.stderr)
            self.assertNotIn("wrong-secret", done.stderr + done.stdout)
        self.assertFalse(self.stored("other").exists())

    def test_a_bucket_that_is_not_there(self):
        url = self.serve()
        self.assertIn("no-such-bucket", self.run_s3("verify", f"s3:{url[:-8]}no-such-bucket/x", expect=None).stderr)

    def test_a_server_that_is_killed_in_the_middle(self):
        url = self.serve()
        self.run_s3("generate", "imagenet", "--samples", 300, "--out", f"s3:{url}/made")
        process = self.start("verify", f"s3:{url}/made,limit=12MB/s", "--threads", 2, env=self.env)
        for _ in range(2):
            time.sleep(0.3)
            subprocess.run([TESTBED, "stop", self.store, "KILL"], check=True)
            self.assertEqual(self.serve(), url)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("300 right", out)

    def test_https(self):
        url = self.serve("tls")
        self.assertTrue(url.startswith("https://"))
        self.run_s3("generate", "imagenet", "--samples", 20, "--out", f"s3:{url}/made")
        self.assertIn("20 right", self.run_s3("verify", f"s3:{url}/made").stdout)
        untrusted = {name: value for name, value in self.env.items() if name != "AWS_CA_BUNDLE"}
        done = self.run_s3("verify", f"s3:{url}/made", env=untrusted, expect=1)
        self.assertIn("AWS_CA_BUNDLE", done.stderr)

    def test_the_contract(self):
        contract = pathlib.Path(BUILD) / "io_backends" / "backend_contract_test"
        if not contract.exists():
            self.skipTest("this build has no backend_contract_test")
        self.serve()
        done = subprocess.run([contract, "s3", "--gtest_filter=*plain"], env=self.env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])


def lacking():
    """Why none of this can run here, or None."""
    tier = subprocess.run([PENSTOCK, "verify", "s3:http://127.0.0.1:9/b,retries=0"], capture_output=True, text=True, check=False)
    if tier.returncode == 77:
        return tier.stderr
    probe = subprocess.run([TESTBED, "find"], capture_output=True, text=True, check=False)
    return probe.stderr if probe.returncode == 77 else None


if __name__ == "__main__":
    main(lacking)
