"""TIER on the command line: the grammar, its mistakes, and tiers that are slow, full or failing."""

import json
import os
import resource
import signal
import subprocess

from penstock_cli import CliTest, PENSTOCK, main


class Tiers(CliTest):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        self.data.mkdir()
        for i in range(20):
            (self.data / f"{i}.jpg").write_bytes(bytes([i]) * (10_000 + i))
        self.bytes = sum(file.stat().st_size for file in self.data.iterdir())

    def copy(self, tier, **kwargs):
        return self.run_cli("copy", self.data, "--scan", "--types", "any", "--to", tier, **kwargs)

    def objects(self, folder):
        """Names and bytes of all that is visible or hidden below a folder, without the manifest."""
        return {path.name: path.read_bytes() for path in folder.rglob("*")
                if path.is_file() and path.parent.name != ".penstock"}

    def whole(self):
        return {path.name: path.read_bytes() for path in self.data.iterdir()}

    def test_every_spelling_of_a_tier_reaches_the_same_place(self):
        spellings = ["plain", "./dot:colon", "posix:one", "named=posix:two", "posix:three,limit=1GiB/s",
                     "posix:with%2Ccomma", str(self.dir / "absolute")]
        folders = ["plain", "dot:colon", "one", "two", "three", "with,comma", "absolute"]
        for tier, folder in zip(spellings, folders):
            with self.subTest(tier):
                self.copy(tier)
                self.assertEqual(self.objects(self.dir / folder), self.whole())

    def test_mistakes_name_the_nearest_and_touch_nothing(self):
        for tier, words in {
            "posx:out": "did you mean 'posix'",
            "nosuch:out": "valid: ",
            "posix:out,limt=1MB/s": "did you mean 'limit'",
            "posix:out,limit=0": "limit",
            "posix:out,limit=99999999999999GB/s": "limit",
            "posix:out,latency=5": "latency",
            "posix:out,fail=eoi@1": "did you mean 'eio'",
            "posix:out,fail=eio@2": "between 0 and 1",
            "posix:out,limit=1MB/s,oops": "%2C",
            "posix:": "folder",
        }.items():
            with self.subTest(tier):
                done = self.copy(tier, expect=2)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")
        self.assertEqual([path.name for path in self.dir.iterdir()], ["data"])

    def test_a_failing_write_leaves_no_half_object_and_the_copy_goes_on(self):
        for fault in ["write:enospc@#7", "publish:eio@#7", "open:emfile@#7", "write:edquot@#7.."]:
            for way in ["auto", "rename"]:
                with self.subTest(fault=fault, publish=way):
                    out = self.dir / f"out-{fault}-{way}".replace(":", "-")
                    done = self.copy(f"posix:{out},publish={way},fail={fault}", expect=1)
                    self.assertIn("injected fault", done.stderr)
                    there = self.objects(out)
                    self.assertLess(len(there), 20)
                    whole = self.whole()
                    self.assertEqual({name: whole.get(name) for name in there}, there)
                    self.copy(out)
                    self.assertEqual(self.objects(out), whole)

    def test_a_full_tier_says_so(self):
        done = self.copy(f"posix:{self.dir}/out,capacity=100KB", expect=1)
        self.assertRegex(done.stderr, "free|space|full")
        self.assertFalse((self.dir / "out").exists() and self.objects(self.dir / "out"))

    def test_a_limit_of_the_file_size_is_an_error_and_leaves_nothing_half_made(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_005, 10_005))

        done = self.copy(self.dir / "out", expect=1, preexec_fn=limited)
        self.assertIn("File too large", done.stderr)
        whole = self.whole()
        there = self.objects(self.dir / "out")
        self.assertEqual({name: whole.get(name) for name in there}, there)

    def test_an_unwritable_target_is_named(self):
        blocked = self.dir / "blocked"
        blocked.write_text("a file where a folder should be")
        done = self.copy(blocked / "out", expect=1)
        self.assertIn("blocked", done.stderr)
        plain = {}
        if os.geteuid() == 0:
            plain = {"user": 65534, "group": 65534, "extra_groups": []}
            self.dir.chmod(0o755)
        closed = self.dir / "closed"
        closed.mkdir(mode=0o555)
        try:
            done = self.copy(closed / "out", expect=1, **plain)
        except PermissionError:
            self.skipTest("the program lies where a plain user may not run it")
        self.assertIn("Permission denied", done.stderr)
        self.assertEqual(list(closed.iterdir()), [])

    def test_reads_that_fail_are_failures_with_a_reason(self):
        self.copy("out")
        records = self.records("read", "out", "--tier", f"bad=posix:{self.dir}/out,fail=read:estale@#5",
                               "--only-tiers", "--threads", "1", "--min-time", "100ms", "--cache", "asis", expect=None)
        bad = [record for record in records if record["parameters"].get("tier") == "bad"]
        self.assertTrue(bad)
        self.assertEqual({record["verdict"] for record in bad}, {"failed"})
        self.assertIn("Stale file handle", bad[0]["reason"])

    def test_wrong_bytes_are_found_by_the_checksums(self):
        self.copy("out")
        done = self.run_cli("verify", f"posix:{self.dir}/out,fail=flip@#3", expect=1)
        self.assertIn(".jpg", done.stdout + done.stderr)
        self.run_cli("verify", "out")

    def test_an_interrupt_ends_a_slow_tier_at_once(self):
        process = self.start("copy", self.data, "--scan", "--types", "any", "--to",
                             f"posix:{self.dir}/out,write_limit=1KB/s")
        while process.poll() is None and not (self.dir / "out").exists():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        whole = self.whole()
        there = self.objects(self.dir / "out")
        self.assertEqual({name: whole.get(name) for name in there}, there)

    def test_version_lists_the_back_ends(self):
        done = subprocess.run([PENSTOCK, "--version", "--json"], capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        present = {row["name"] for row in rows if row["kind"] == "backend" and row["present"]}
        self.assertLessEqual({"mem", "posix"}, present)


if __name__ == "__main__":
    main()
