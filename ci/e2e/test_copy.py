"""copy from outside: what arrives, what stays when it is stopped, and what it refuses."""

import os
import pathlib
import signal
import subprocess

from corpus_case import FILES, CorpusTest, content
from messages import message
from penstock_cli import main


class Copy(CorpusTest):
    def test_the_same_objects_and_manifest(self):
        root = self.corpus()
        done = self.run_cli("copy", root, "--to", self.dir / "to")
        self.assertIn(message("objects-copied", n=40), done.stdout)
        self.assertEqual(self.tree(root), self.tree(self.dir / "to"))
        (again,) = self.records("copy", root, "--to", self.dir / "to")
        self.assertEqual((again["copied"], again["already_there"], again["verdict"]), (0, FILES, "ok"))
        self.assertEqual(self.tree(root), self.tree(self.dir / "to"))

    def test_what_a_scan_could_not_read_is_missed_in_the_verdict(self):
        made, root = self.dir / "made", self.dir / "theirs"
        self.run_cli("generate", "imagenet", "--format", "tfrecord", "--set", "shards=3", "--samples", 6,
                     "--set", "median=4KB", "--out", made)
        root.mkdir()
        for shard in made.glob("*.tfrecord"):
            (root / shard.name).write_bytes(shard.read_bytes())
        (whole,) = self.records("copy", root, "--scan", "--to", self.dir / "whole")
        self.assertEqual((whole["verdict"], whole["scan"]["unreadable"]), ("ok", 0))
        self.assertNotIn("reason", whole)
        victim = root / "imagenet-00001-of-00003.tfrecord"
        victim.write_bytes(b"x" * 20 + victim.read_bytes()[20:])
        (copied,) = self.records("copy", root, "--scan", "--to", self.dir / "to")
        self.assertEqual((copied["verdict"], copied["objects"], copied["scan"]["unreadable"]), ("degraded", 2, 1))
        self.assertIn(victim.name, copied["reason"])
        done = self.run_cli("copy", root, "--scan", "--to", self.dir / "to")
        self.assertRegex(done.stdout, f"degraded: the copy lacks .* 1 that cannot be read .*{victim.name}")

    def test_every_durability(self):
        root = self.corpus()
        for word in ("visible", "file", "file_and_name"):
            self.run_cli("copy", root, "--to", self.dir / word, "--durability", word)
            self.assertEqual(self.tree(root), self.tree(self.dir / word))
        self.fails("copy", root, "--to", self.dir / "x", "--durability", "forever", code=2, words=["forever"])

    def test_interrupted_it_leaves_no_half_object_and_goes_on(self):
        root = self.corpus()
        to = self.dir / "to"
        for how in (signal.SIGINT, signal.SIGTERM):
            process = self.started("copy", root, "--to", f"{to},write_limit=40k", "--threads", 2, word="copy")
            out = self.stop(process, how)
            self.assertIn("interrupted", out)
            copied = self.tree(to)
            self.assertNotIn(".penstock/manifest", copied)
            copied.pop(".penstock/copying")
            self.assertLess(len(copied), FILES)
            for name, data in copied.items():
                self.assertEqual(data, (root / name).read_bytes(), name)
            self.fails("verify", to, words=[message("unfinished-copy"), "penstock copy"])
        self.assertGreater(len(copied), 0)
        (rest,) = self.records("copy", root, "--to", to, "--resume")
        self.assertEqual(rest["already_there"], len(copied))
        self.assertEqual(self.tree(root), self.tree(to))

    def test_killed_it_leaves_no_half_object_and_goes_on(self):
        root = self.corpus()
        to = self.dir / "to"
        for options in ("", ",publish=rename"):
            process = self.started("copy", root, "--to", f"{to},write_limit=40k{options}", "--threads", 2, word="copy")
            process.kill()
            process.wait()
            for name, data in self.tree(to).items():
                if not pathlib.Path(name).name.startswith(".penstock-tmp-") and name != ".penstock/copying":
                    self.assertEqual(data, (root / name).read_bytes(), name)
        self.run_cli("copy", root, "--to", to)
        done = self.run_cli("verify", to)
        self.assertIn("40 right", done.stdout)

    def test_a_full_target(self):
        root = self.corpus()
        self.fails("copy", root, "--to", f"{self.dir / 'small'},capacity=100k", words=["needs", "free"])
        self.assertFalse((self.dir / "small").exists(), "no copy was started")
        done = self.fails("copy", root, "--to", f"{self.dir / 'full'},fail=write:enospc@#20..", words=[message("objects-already-copied")])
        self.assertRegex(done.stderr, "(?i)no space")
        self.assertNotIn(".penstock/manifest", self.tree(self.dir / "full"))
        self.run_cli("copy", root, "--to", self.dir / "full")
        self.assertEqual(self.tree(root), self.tree(self.dir / "full"))

    def test_a_full_file_system(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a small tmpfs")
        mount = self.dir / "tmpfs"
        mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount], capture_output=True).returncode != 0:
            self.skipTest("this machine does not let us mount a tmpfs")
        self.addCleanup(subprocess.run, ["umount", mount], check=False)
        root = self.corpus()
        self.fails("copy", root, "--to", mount, words=["needs", "free"])
        self.assertEqual(list(mount.iterdir()), [])

    def test_an_unwritable_target(self):
        root = self.corpus()
        to = self.dir / "to"
        to.mkdir()
        as_user = self.as_another_user()
        if not as_user:
            to.chmod(0o500)
        self.fails("copy", root, "--to", to, words=["ermission", to], **as_user)
        self.assertEqual(list(to.iterdir()), [])

    def test_it_does_not_touch_what_others_put_there(self):
        root = self.corpus()
        to = self.dir / "to"
        (to / "dog").mkdir(parents=True)
        (to / "dog" / "0010.jpg").write_bytes(b"the only picture of my dog")
        self.fails("copy", root, "--to", to, words=[message("object-already-there", name="dog"), "--replace"])
        self.assertEqual(self.tree(to), {"dog/0010.jpg": b"the only picture of my dog"})
        (to / "dog" / "mine.txt").write_text("x")
        self.run_cli("copy", root, "--to", to, "--replace")
        self.assertEqual((to / "dog" / "0010.jpg").read_bytes(), content(10))
        self.assertEqual((to / "dog" / "mine.txt").read_text(), "x")
        other = self.corpus("other", files=3)
        self.fails("copy", other, "--to", to, words=[message("other-corpus-there")])
        self.fails("copy", other, "--to", to, "--replace", words=[message("other-corpus-there"), "--replace works only for folders without a corpus"])
        self.assertIn(message("unfinished-copy"), " ".join(self.run_cli("copy", "--help").stdout.split()))

    def test_the_obstacle_is_named(self):
        root = self.corpus()
        to = self.dir / "to"
        self.run_cli("copy", root, "--to", to)
        (to / "dog" / "0010.jpg").unlink()
        (to / "dog" / "0010.jpg").mkdir()
        done = self.fails("copy", root, "--to", to, words=[message("folder-in-place-of-file", name="dog/0010.jpg", to=to)])
        self.assertIn(message("same-command-goes-on"), done.stderr)
        (to / "dog" / "0010.jpg").rmdir()
        self.run_cli("copy", root, "--to", to)
        self.assertEqual(self.tree(root), self.tree(to))
        other = self.dir / "other"
        other.mkdir()
        (other / "dog").write_text("of somebody")
        self.fails("copy", root, "--to", other, "--replace", words=[message("file-in-place-of-folder", name="dog", other=other)])
        self.assertEqual((other / "dog").read_text(), "of somebody")

    def test_one_is_no_plural(self):
        root = self.corpus(files=1)
        self.assertIn("1 of 1 object copied", self.run_cli("copy", root, "--to", self.dir / "to").stdout)
        self.assertIn(message("count-already-there", n=1), self.run_cli("copy", root, "--to", self.dir / "to").stdout)
        self.assertIn("1 of 1 object checked, 1 right", self.run_cli("verify", root).stdout)

    def test_a_damaged_source_is_named(self):
        root = self.corpus()
        victim = root / "cat" / "0011.jpg"
        data = bytearray(victim.read_bytes())
        data[0] ^= 0x80
        victim.write_bytes(data)
        self.fails("copy", root, "--to", self.dir / "to", words=["cat/0011.jpg", "checksum"])
        victim.unlink()
        self.fails("copy", root, "--to", self.dir / "to", words=["cat/0011.jpg"])
        self.assertFalse((self.dir / "to" / ".penstock" / "manifest").exists())
        victim.mkdir()
        self.fails("copy", root, "--to", self.dir / "to", words=["cat/0011.jpg", message("is-a-directory")])
        victim.rmdir()
        victim.symlink_to(victim.name)
        self.fails("copy", root, "--to", self.dir / "to", words=["cat/0011.jpg", message("target-has-symbolic-links")])
        victim.unlink()
        victim.write_bytes(content(11))
        self.run_cli("copy", root, "--to", self.dir / "to", "--resume")
        self.assertEqual(self.tree(root), self.tree(self.dir / "to"))

    def test_a_target_that_lies_is_found_out(self):
        root = self.corpus()
        self.fails("copy", root, "--to", f"{self.dir / 'to'},fail=flip@0.2", words=[message("object-reads-back-wrong")])

    def test_usage(self):
        root = self.corpus()
        self.fails("copy", root, code=2, words=["--to"])
        (self.dir / "alias").symlink_to(root)
        for itself in (root, f"{root}/", self.dir / "alias", root / "new", root / "dog" / "deep" / "new", self.dir / "alias" / "new"):
            self.fails("copy", root, "--to", itself, code=2, words=["itself"])
        self.fails("copy", root / "dog", "--scan", "--to", root / "dog" / "new", code=2, words=["itself"])
        self.fails("copy", root, "--to", "nosuch:/x", code=2, words=["nosuch"])
        self.fails("copy", root, "--to", f"{self.dir / 'x'},limt=1", code=2, words=["limt", "limit"])
        self.fails("copy", root, "--to", self.dir / "x", "--threads", 0, code=2)
        self.fails("copy", root, "--to", self.dir / "x", "--resume", words=["--resume"])
        self.fails("copy", self.folder("bare"), "--to", self.dir / "x", words=[message("no-manifest")])
        file = self.dir / "file"
        file.write_text("x")
        for below in (file, file / "below", file / "far" / "below"):
            for words in ((), ("--resume",)):
                self.fails("copy", root, "--to", below, *words, code=2, words=["is a file or below one; --to needs a folder"])
        (self.dir / "link").symlink_to("nowhere")
        for below in ("link", self.dir / "link" / "below"):
            self.fails("copy", root, "--to", below, code=2, words=[f"'{self.dir}/link' is a broken link to 'nowhere'", "--to"])
        self.assertFalse((self.dir / "x").exists())


if __name__ == "__main__":
    main()
