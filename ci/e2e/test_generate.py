"""generate: the same bytes from any number of threads and after any interruption; words that it takes and refuses."""

import io
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from messages import message
import penstock_cli
from generate_case import FULL, SMALL, GenerateTest
from penstock_cli import tree


class SameBytes(GenerateTest):
    def test_threads_do_not_matter(self):
        first = self.records("generate", "imagenet", "--out", "one", "--samples", 200, "--seed", 7, "--threads", 1)[0]
        second = self.records("generate", "imagenet", "--out", "four", "--samples", 200, "--seed", 7, "--threads", 4)[0]
        self.assert_same_tree(self.dir / "one", self.dir / "four")
        self.assertEqual(first["corpus"]["checksum"], second["corpus"]["checksum"])
        pictures = list((self.dir / "one").rglob("*.JPEG"))
        self.assertEqual(len(pictures), 200)
        self.assertEqual({path.parent.name for path in pictures}, {f"n{label:08}" for label in range(200)})
        self.assertEqual(sum(path.stat().st_size for path in pictures), first["corpus"]["bytes"])
        sizes = sorted(path.stat().st_size for path in pictures)
        self.assertAlmostEqual(sizes[100] / 112000, 1, delta=0.1)
        self.assertEqual([name for name in os.listdir(self.dir / "one" / ".penstock")], ["manifest"])

    def test_other_seeds_are_other_pictures(self):
        self.run_cli("generate", "imagenet", "--out", "a", "--samples", 3, "--seed", 1)
        self.run_cli("generate", "imagenet", "--out", "b", "--samples", 3, "--seed", 2)
        first, second = tree(self.dir / "a"), tree(self.dir / "b")
        self.assertEqual(first.keys(), second.keys())
        self.assertFalse([name for name in first if first[name] is not None and first[name] == second[name]])

    def test_folders_can_be_laid_out(self):
        self.generate("flat", 9, "--set", "dirs=flat")
        self.assertEqual(len(list((self.dir / "flat").glob("*.JPEG"))), 9)

        words = ("--samples", 9, "--set", "median=20kB", "--set", "dirs=flat")
        self.run_cli("generate", "malware", "--out", "dumps", *words)
        for path in (self.dir / "dumps").glob("*.bytes"):
            self.assertRegex(path.name, r"^[A-Z][A-Za-z0-9_.]+_[0-9A-Za-z]{20}\.bytes$")
        self.assertEqual(len(list((self.dir / "dumps").iterdir())), 10)

    def test_verify_finds_one_flipped_bit(self):
        self.generate("data", 30)
        self.run_cli("verify", "data")
        victim = sorted((self.dir / "data").rglob("*.JPEG"))[17]
        content = bytearray(victim.read_bytes())
        content[len(content) // 2] ^= 8
        victim.write_bytes(content)
        done = self.run_cli("verify", "data", expect=1)
        self.assertIn(str(victim.relative_to(self.dir / "data")), done.stdout + done.stderr)

    def test_others_can_decode_them(self):
        self.generate("data", 20)
        pictures = sorted((self.dir / "data").rglob("*.JPEG"))
        try:
            from PIL import Image  # pylint: disable=import-outside-toplevel
        except ImportError:
            Image = None
        if Image is None and not shutil.which("djpeg"):
            self.skipTest("neither Python's PIL nor djpeg is here to decode the pictures")
        for path in pictures:
            if Image is not None:
                with Image.open(io.BytesIO(path.read_bytes())) as picture:
                    picture.load()
                    self.assertEqual(picture.mode, "RGB")
                    self.assertEqual(picture.format, "JPEG")
            else:
                done = subprocess.run(["djpeg", "-strict", str(path)], capture_output=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, b""), path)


class Stopped(GenerateTest):
    """Slowed by a throttled tier where need be, so that there is a middle to stop in."""

    SAMPLES = 240

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reference = tempfile.TemporaryDirectory(prefix="penstock-test-")
        cls.addClassCleanup(cls.reference.cleanup)
        cls.whole = pathlib.Path(cls.reference.name, "whole")
        subprocess.run([penstock_cli.PENSTOCK, "generate", "imagenet", "--out", cls.whole, "--samples", str(cls.SAMPLES),
                        *SMALL], check=True, capture_output=True, cwd=cls.reference.name)

    def start_slowly(self, out, *args, options="latency=6ms"):
        return self.start("generate", "imagenet", "--out", f"posix:{out},{options}", "--samples", self.SAMPLES, *SMALL,
                          "--threads", 2, *args)

    def wait_for_pictures(self, folder, count, process):
        deadline = time.monotonic() + 60
        while len(penstock_cli.present(folder, "*.JPEG")) < count:
            self.assertIsNone(process.poll(), "ended before it was stopped")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_interrupt_and_resume(self):
        many = 300 if penstock_cli.SANITIZED else 3000  # what takes long enough to be stopped in the middle
        self.generate("many", many)
        for name, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            out = self.dir / f"where it's stopped by {code}"
            process = self.start("generate", "imagenet", "--out", out, "--samples", many, *SMALL, "--threads", 1)
            self.wait_for_pictures(out, 30, process)
            process.send_signal(name)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, err)
            self.assertIn("--resume", err)
            self.assert_no_corpus(out)
            self.assert_whole_objects(out, self.dir / "many")
            self.assertFalse([path for path in out.rglob(".penstock-tmp*")])
            refused = self.generate(out, many, expect=1)
            self.assertIn("--resume", refused.stderr)
            for command in (("describe", out), ("read", out), ("verify", out)):
                output = self.run_cli(*command, expect=1)
                self.assertIn(message("unfinished-data-set", many=many), output.stderr)
                self.assertIn("--resume", output.stderr)
            # What was started says the rest: seed, number and settings need not be said again.
            words = output.stderr.strip().rpartition("to finish it: penstock ")[2]
            self.assertEqual(shlex.split(words), ["generate", "imagenet", "--out", str(out), "--resume"], "a shell accepts it unchanged")
            record = self.records(*shlex.split(words))[0]
            self.assertGreaterEqual(record["parameters"]["samples_kept"], 25)
            self.assert_same_tree(out, self.dir / "many")

    def test_the_record_says_interrupted(self):
        out = self.dir / "stopped"
        process = self.start_slowly(out, "--json")
        self.wait_for_pictures(out, 5, process)
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
        records = [json.loads(line) for line in stdout.splitlines()]
        self.assertEqual([record["verdict"] for record in records], ["interrupted"])

    def test_killed_anywhere_and_resumed(self):
        chance = random.Random(20)
        for options in ("latency=6ms", "latency=6ms,publish=rename"):
            out = self.dir / options.replace(",", "-")
            killed = 0
            for _ in range(4):
                process = self.start_slowly(out, "--resume", options=options)
                time.sleep(chance.uniform(0.2, 2.0))
                process.kill()
                process.communicate(timeout=60)
                if process.returncode == 0:
                    break
                killed += 1
                self.assert_whole_objects(out, self.whole)
            self.generate(f"posix:{out},{options.replace('latency=6ms', 'latency=0ms')}", self.SAMPLES, "--resume")
            self.assert_same_tree(out, self.whole)
            self.assertGreater(killed, 0)

    def test_resume_makes_damaged_samples_again(self):
        out = self.dir / "damaged"
        process = self.start("generate", "imagenet", "--out", f"posix:{out},fail=publish:eio@#200", "--samples", self.SAMPLES,
                             *SMALL)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("Input/output error", err)
        self.assertIn("--resume", err)
        pictures = sorted(out.rglob("*.JPEG"))
        pictures[0].unlink()
        pictures[1].write_bytes(b"")
        content = bytearray(pictures[2].read_bytes())
        content[100] ^= 1
        pictures[2].write_bytes(content)
        done = self.generate(out, self.SAMPLES, "--resume")
        self.assertIn("3 objects of the earlier run were missing or wrong and were generated again", done.stderr)
        self.assertRegex(done.stdout, "kept 1[89][0-9] samples")
        self.assert_same_tree(out, self.whole)

    def test_composed_pictures_are_the_same_by_any_threads_and_after_a_failure(self):
        composed = ("generate", "imagenet", "--samples", 300, "--seed", 7, "--set", "median=12KB")
        self.run_cli(*composed, "--out", "one", "--threads", 1)
        self.run_cli(*composed, "--out", "four", "--threads", 4)
        self.assert_same_tree(self.dir / "four", self.dir / "one")
        self.run_cli(*composed, "--out", "posix:broken,fail=publish:eio@#170", "--threads", 2, expect=1)
        self.run_cli(*composed, "--out", "broken", "--resume")
        self.assert_same_tree(self.dir / "broken", self.dir / "one")
        self.run_cli("verify", "broken")

    def test_resume_of_something_else_is_refused(self):
        out = self.dir / "other"
        process = self.start_slowly(out)
        self.wait_for_pictures(out, 5, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        before = tree(out)
        for words, expected in ((("--seed", 8), "--seed 7, not 8"), (("--samples", 5), "240 samples, not 5"),
                            (("--set", "median=13KB", "--set", "classes=20", *FULL), "median=12000, not 13000"),
                            (("--set", "classes=20", *FULL), "median=12000, not 112000")):
            done = self.run_cli("generate", "imagenet", "--out", out, "--resume", *words, expect=None)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(expected, done.stderr)
        self.assertEqual(tree(out), before)

    def test_resume_of_a_finished_one_changes_nothing(self):
        before = tree(self.whole)
        done = self.generate(self.whole, self.SAMPLES, "--resume")
        self.assertIn(message("nothing-to-do"), done.stderr)
        # The state after a run that was killed after its last step. Flags that the line does not give are those of that run.
        lock = self.whole / ".penstock" / "generate.lock"
        lock.touch()
        self.assertIn(message("nothing-to-do"), self.run_cli("generate", "imagenet", "--out", self.whole, "--resume").stderr)
        self.assertFalse(lock.exists())
        self.assertEqual(tree(self.whole), before)
        self.run_cli("generate", "imagenet", "--out", self.whole, "--resume", "--samples", 5, expect=1)


class Words(GenerateTest):
    def refused(self, *args, expect=2):
        done = self.run_cli("generate", *args, expect=expect)
        self.assertEqual(done.stdout, "")
        self.assertFalse((self.dir / "out").exists(), "refused before anything was made")
        return done.stderr

    def test_unknown_names_suggest_the_nearest(self):
        self.assertIn(message("did-you-mean", name="imagenet"), self.refused("imagent", "--out", "out"))
        self.assertIn("'--samples'", self.refused("imagenet", "--out", "out", "--sampels", "5"))
        self.assertIn(message("did-you-mean", name="median"), self.refused("imagenet", "--out", "out", "--set", "medain=5KB"))
        self.assertIn(message("did-you-mean", name="files"), self.refused("imagenet", "--out", "out", "--format", "fils"))
        self.assertIn(message("did-you-mean", name="posix"), self.refused("imagenet", "--out", "posx:out"))
        self.assertIn("KEY=VALUE", self.refused("imagenet", "--out", "out", "--set", "median"))

    def test_what_is_missing_is_said(self):
        self.assertIn("imagenet", self.refused())
        self.assertIn("--out", self.refused("imagenet"))

    def test_numbers_out_of_range(self):
        self.assertIn("threads", self.refused("imagenet", "--out", "out", "--threads", "0"))
        self.assertIn("threads", self.refused("imagenet", "--out", "out", "--threads", "1000000"))
        self.assertIn(message("number-too-large"), self.refused("imagenet", "--out", "out", "--bytes", "99999999999999999999"))
        for words in (("--samples", "0"), ("--samples", "-3"), ("--samples", "99999999999999999999"),
                      ("--samples", str(2**63 - 1)), ("--samples", "1e9x"), ("--bytes", "0"), ("--scale", "0"),
                      ("--scale", "-1"), ("--scale", "1e300"), ("--scale", "nan"), ("--samples", "5", "--bytes", "5MB"),
                      ("--set", "median=1"), ("--set", "sigma=9"), ("--set", "classes=0"), ("--set", "dirs=deep")):
            self.refused("imagenet", "--out", "out", *words)

    def test_dry_run_writes_nothing(self):
        before = tree(self.dir)
        done = self.run_cli("generate", "imagenet", "--out", "out", "--bytes", "1GB", "--dry-run", "--json")
        plan = json.loads(done.stdout)
        self.assertAlmostEqual(plan["bytes"], 1e9, delta=2e7)
        self.assertAlmostEqual(plan["samples"], 1e9 / 121328, delta=100)
        self.assertEqual(plan["settings"]["median"], "112000")
        self.assertIn("9144", self.run_cli("generate", "caltech101", "--out", "out", "--dry-run").stdout)
        odd = self.run_cli("generate", "imagenet", "--out", b"odd\xff".decode(errors="surrogateescape"), "--samples", 3,
                           "--dry-run", "--json")
        self.assertTrue(json.loads(odd.stdout)["out"].endswith("odd\ufffd"))
        self.assertEqual(tree(self.dir), before)

    def test_dry_run_estimates_the_time(self):
        plan = json.loads(self.run_cli("generate", "caltech101", "--out", "out", "--threads", 2, "--dry-run", "--json").stdout)
        self.assertGreater(plan["seconds_at_least"], 0)
        self.assertEqual(plan["threads"], 2)
        self.assertIn(message("written-to-memory-just-now"),
                      self.run_cli("generate", "caltech101", "--out", "out", "--dry-run").stdout)

    def test_size_for_asks_for_what_mlperf_storage_wants(self):
        words = ("generate", "unet3d", "--set", "mean=1MB", "--out", "out", "--dry-run", "--json", "--size-for")
        asked = "unet3d,accelerators=2,hosts=1,memory=1GiB"
        plan = json.loads(self.run_cli(*words, asked).stdout)
        self.assertEqual(plan["samples"], 500 * 7 * 2)
        self.assertIn("500 steps x batch 7 x 2 accelerators = 7000", plan["size_for"])
        plan = json.loads(self.run_cli(*words, "unet3d,accelerators=2,hosts=4,memory=1GiB").stdout)
        self.assertAlmostEqual(plan["samples"], 20 * 2**30 / 1e6, delta=300)
        self.assertIn("accelerators", self.run_cli(*words, "unet3d", expect=2).stderr)
        self.assertIn("unet3d", self.run_cli(*words, "unet,accelerators=1", expect=2).stderr)
        self.refused("unet3d", "--out", "out", "--samples", "5", "--size-for", "unet3d,accelerators=1")

    def test_a_mean_without_a_deviation_is_the_same_data_set_again(self):
        small = ("--set", "mean=50kB", "--samples", 6, "--seed", 7)
        self.run_cli("generate", "unet3d", "--out", "whole", *small)
        self.run_cli("generate", "unet3d", "--out", "stopped/part", *small)
        again = self.run_cli("generate", "unet3d", "--out", "stopped/part", *small, "--resume")
        self.assertIn(message("nothing-to-do"), again.stderr)
        self.assertEqual(tree(self.dir / "whole"), tree(self.dir / "stopped/part"))

    def test_what_comes_out_otherwise_is_said(self):
        words = ("generate", "imagenet", "--out", "out", "--dry-run")
        self.assertRegex(self.run_cli(*words, "--bytes", 5).stderr, "one sample takes about [0-9.]+ KiB")
        self.assertNotIn("one sample takes", self.run_cli(*words, "--bytes", "1MB").stderr)
        shards = ("--format", "tfrecord", "--set", "shards=20", "--samples")
        self.assertIn(message("samples-make-shards", n=10), self.run_cli(*words, *shards, 10).stderr)
        self.assertEqual(self.run_cli(*words, *shards, 20).stderr, "")

    def test_list(self):
        text = self.run_cli("generate", "--list").stdout
        for word in ("imagenet", "1281167", "112 KB", "files", "median", "dirs"):
            self.assertIn(word, text)
        self.assertIn(message("did-you-mean", name="imagenet"), self.run_cli("generate", "imagent", "--list", expect=2).stderr)
        one = self.run_cli("generate", "climate", "--list").stdout
        self.assertIn("--format hdf5", one)
        self.assertNotIn("imagenet", one)
        self.assertNotIn("--format cifar", one)
        self.assertEqual([row["name"] for row in self.records("generate", "climate", "--list")], ["climate"])
        rows = self.records("generate", "--list")
        row = next(row for row in rows if row["name"] == "imagenet")
        self.assertEqual(row["samples"], 1281167)
        self.assertIn("Chien", row["source"])
        self.assertEqual({setting["name"] for setting in row["settings"]}, {"median", "sigma", "classes", "encode", "codec"})
        self.assertLessEqual({"files", "npy"}, {form["name"] for form in row["formats"]})

    def test_the_record_has_its_metrics(self):
        record = self.records("generate", "imagenet", "--out", "out", "--samples", 50, *SMALL, "--threads", 2)[0]
        self.assertEqual(record["command"], "generate")
        self.assertEqual(record["verdict"], "ok")
        self.assertEqual(record["seed"], 7)
        self.assertEqual(record["parameters"]["threads"], 2)
        metrics = record["metrics"]
        self.assertLessEqual({"samples_per_s", "payload_bytes_per_s", "wall_s", "peak_memory_bytes"}, metrics.keys())
        self.assertAlmostEqual(metrics["samples_per_s"]["value"] * metrics["wall_s"]["value"], 50, delta=0.01)
        self.assertLess(metrics["peak_memory_bytes"]["value"], 2e9)
        files = list((self.dir / "penstock-results").glob("*-generate-*.jsonl"))
        self.assertEqual(penstock_cli.stored(files[0]), [record])


if __name__ == "__main__":
    penstock_cli.main()
