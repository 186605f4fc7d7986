"""ci/testbed/limited_fs: the same bytes, no faster than it was told, for reading only, and gone afterwards. Skipped where there is
no FUSE."""

import filecmp
import os
import pathlib
import signal
import subprocess
import threading
import time

import penstock_cli

PROGRAM = penstock_cli.BUILD / "ci" / "testbed" / "limited_fs"
RATE = 4_000_000
SECONDS = 2


def mounted(path):
    return f" {path} " in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8")


class LimitedFs(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.dir = self.dir.resolve()
        self.source, self.mount = self.dir / "source", self.dir / "mount"
        (self.source / "below").mkdir(parents=True)
        self.mount.mkdir()
        for number in range(4):
            (self.source / "below" / f"{number}.bin").write_bytes(os.urandom(RATE * SECONDS // 4))
        (self.source / "name").symlink_to("below/0.bin")

    def mount_it(self, *words):
        process = subprocess.Popen([PROGRAM, self.source, self.mount, "--foreground", *map(str, words)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        line = process.stdout.readline()
        self.assertIn(str(self.mount), line, "" if line else process.stderr.read())
        return process

    def end(self, process, number=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(number)
        process.communicate(timeout=60)

    def test_the_same_bytes_no_faster_than_the_limit(self):
        self.mount_it("--bytes-per-second", RATE)
        different, started = [], time.monotonic()

        def compare(name):
            if not filecmp.cmp(self.source / name, self.mount / name, shallow=False):
                different.append(name)

        readers = [threading.Thread(target=compare, args=(f"below/{number}.bin",)) for number in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        took = time.monotonic() - started
        self.assertEqual(different, [])
        # A machine that is busy makes it slower, nothing makes it faster.
        self.assertLessEqual(RATE * SECONDS / took, RATE * 1.2)

    def test_nothing_stays_in_the_page_cache(self):
        self.mount_it("--bytes-per-second", RATE)
        first = self.mount / "below" / "0.bin"
        for _ in range(2):
            started = time.monotonic()
            first.read_bytes()
            self.assertGreater(time.monotonic() - started, SECONDS / 4 / 1.2)

    def test_a_latency_is_waited_for(self):
        self.mount_it("--bytes-per-second", "1GB", "--latency", "100ms")
        started = time.monotonic()
        with open(self.mount / "below" / "0.bin", "rb", buffering=0) as file:
            for _ in range(3):
                self.assertEqual(len(file.read(4096)), 4096)
        self.assertGreaterEqual(time.monotonic() - started, 0.3)

    def test_names_are_the_sources_and_nothing_is_written(self):
        self.mount_it("--bytes-per-second", RATE)
        self.assertEqual(sorted(os.listdir(self.mount / "below")), sorted(os.listdir(self.source / "below")))
        self.assertEqual(os.readlink(self.mount / "name"), "below/0.bin")
        self.assertEqual((self.mount / "name").stat().st_size, RATE * SECONDS // 4)
        with self.assertRaises(FileNotFoundError):
            (self.mount / "nowhere").stat()
        for write in (lambda: (self.mount / "new").write_text("x", encoding="utf-8"), lambda: (self.mount / "name").unlink()):
            with self.assertRaises(OSError):
                write()

    def test_signals_unmount(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.mount_it("--bytes-per-second", RATE)
            self.assertTrue(mounted(self.mount))
            self.end(process, number)
            self.assertEqual(process.returncode, 0)
            self.assertFalse(mounted(self.mount))

    def test_it_goes_to_the_background_when_it_is_mounted(self):
        subprocess.run([PROGRAM, "source", "mount", "--bytes-per-second", str(RATE)], cwd=self.dir, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        self.addCleanup(subprocess.run, ["umount", self.mount], capture_output=True, check=False)
        self.assertEqual((self.mount / "below" / "0.bin").stat().st_size, RATE * SECONDS // 4)
        self.assertTrue(mounted(self.mount))

    def test_arguments_that_are_wrong(self):
        for words, expected, status in (((), "needs SOURCE and MOUNT", 2), (("source", "mount"), "--bytes-per-second", 2),
                                    (("source", "mount", "--bytes-per-second", "fast"), "fast", 2),
                                    (("source", "mount", "--bytes-per-second"), "needs a value", 2),
                                    (("source", "mount", "--bytes-per-second", "1MB", "--latency", "5"), "--latency", 2),
                                    (("source", "mount", "third"), "unexpected argument", 2),
                                    (("source", "mount", "--speed"), "no option '--speed'", 2),
                                    (("source", "nowhere", "--bytes-per-second", "1MB"), "'nowhere'", 1)):
            with self.subTest(words):
                done = subprocess.run([PROGRAM, *words], cwd=self.dir, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(expected, done.stderr)


def lacking():
    """Why none of this can run here, or None."""
    if not os.access(PROGRAM, os.X_OK):
        return "limited_fs is not built: libfuse3 is not installed"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse here"
    if os.geteuid() != 0:
        return "only root unmounts in these tests"
    return None


if __name__ == "__main__":
    penstock_cli.main(lacking)
