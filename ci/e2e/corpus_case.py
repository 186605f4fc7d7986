"""What tests of commands over a folder of files share: the folder, a corpus of it, long commands that are stopped."""

import os
import random
import signal
import subprocess

from penstock_cli import PENSTOCK, CliTest

FILES = 40
NOBODY = 65534


def content(number):
    return random.Random(number).randbytes(2000 + 317 * number)


class CorpusTest(CliTest):
    def folder(self, name="photos", files=FILES):
        """A folder as somebody else might have made it: two classes of files that end in .jpg, and other things."""
        root = self.dir / name
        for number in range(files):
            file = root / ("cat" if number % 2 else "dog") / f"{number:04}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content(number))
        return root

    def corpus(self, name="corpus", files=FILES):
        """A corpus with a manifest and checksums."""
        photos = self.folder(name + ".photos", files)
        self.run_cli("copy", photos, "--scan", "--to", self.dir / name)
        return self.dir / name

    def as_another_user(self):
        """For run_cli(): root may do everything, so that the user nobody runs the command. Any other user runs it as is."""
        if os.geteuid() != 0:
            return {}
        self.dir.chmod(0o755)
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        try:
            subprocess.run([PENSTOCK, "--version"], capture_output=True, check=True, **as_user)
        except (OSError, subprocess.CalledProcessError):  # below a folder that is closed to others, say
            self.skipTest("the program cannot be run by another user here")
        return as_user

    def fails(self, *args, code=1, words=(), **kwargs):
        done = self.run_cli(*args, expect=code, **kwargs)
        self.assertEqual(done.stdout, "", "diagnostics belong on stderr")
        for word in words:
            self.assertIn(str(word), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def started(self, *args, word, **kwargs):
        """Starts a long command, and returns when its progress line shows the word and that something is done."""
        process = self.start(*args, "--progress", "always", **kwargs)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        seen = ""
        while not (word in seen and any(f"{word}: {digit}" in seen for digit in "123456789")):
            piece = process.stderr.read(1)
            self.assertTrue(piece, f"ended too early: {seen}")
            seen += piece
        return process

    def stop(self, process, how=signal.SIGINT):
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + how, err)
        self.assertIn("interrupted", out + err)
        return out

    def tree(self, root):
        return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
