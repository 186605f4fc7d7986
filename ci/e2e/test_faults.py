"""generate in every format: killed anywhere, on a full disk, on a sick one, over damage; --resume then makes the same tree."""

import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

from messages import message
import penstock_cli
from penstock_cli import tree

# Recipe, settings and samples that make two dozen small objects, of several samples where the format can.
FORMATS = {
    "files": ("cosmoflow", ("mean=20kB",), 24),
    "tfrecord": ("unet3d", ("mean=10kB", "samples_per_file=2"), 48),
    "webdataset": ("unet3d", ("mean=10kB", "samples_per_file=2"), 48),
    "npy": ("cosmoflow", ("mean=20kB", "samples_per_file=1"), 24),
    "npz": ("unet3d", ("mean=10kB", "samples_per_file=2"), 48),
    "cifar": ("cifar10", ("samples_per_file=2",), 48),
    "hdf5": ("unet3d", ("mean=10kB", "samples_per_file=2"), 48),
}

# Where a label's own byte is in an object, for formats that store labels.
LABELS = {
    "tfrecord": lambda content: content.index(b"label") + 11,
    "webdataset": lambda content: content.index(b".cls") // 512 * 512 + 512,
    "npz": lambda content: content.rindex(b"PK\x01\x02", 0, content.rindex(b"x.npy")) - 1,
    "cifar": lambda _: 0,
    "hdf5": lambda content: len(content) - 1,
}


def objects_of(folder):
    """Name -> content of every file that has its final name."""
    return {name: content for name, content in tree(folder).items()
            if content is not None and ".penstock" not in name}


def count_objects(folder):
    return sum(not path.is_dir() for path in folder.rglob("*") if ".penstock" not in str(path.relative_to(folder)))


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


class Faults(penstock_cli.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reference = tempfile.TemporaryDirectory(prefix="penstock-test-")
        cls.addClassCleanup(reference.cleanup)
        cls.whole = {name: pathlib.Path(reference.name, name) for name in FORMATS}
        for name, folder in cls.whole.items():
            words = [penstock_cli.PENSTOCK, *cls.words(name), "--out", folder, "--threads", 1]
            subprocess.run([str(word) for word in words], check=True, capture_output=True, cwd=reference.name)

    @staticmethod
    def words(name):
        recipe, settings, samples = FORMATS[name]
        return ("generate", recipe, "--format", name, "--samples", samples, "--seed", 7,
                *(word for setting in settings for word in ("--set", setting)))

    def resume(self, name):
        """Goes on in the folder of that name, and looks at every byte of what came of it."""
        done = self.run_cli("generate", FORMATS[name][0], "--out", name, "--resume")
        self.assert_same_tree(name, self.whole[name])
        self.run_cli("verify", name)
        return done

    def assert_nothing_half_made(self, name, but=()):
        """All that has an object's name is that object, and there is no manifest."""
        self.assertFalse((self.dir / name / ".penstock" / "manifest").exists(), "half a data set is no corpus")
        whole = objects_of(self.whole[name])
        for path, content in objects_of(self.dir / name).items():
            self.assertTrue(path in but or content == whole[path], f"{name}: {path}")

    def test_every_format_has_a_row(self):
        self.assertEqual(set(FORMATS), self.formats())

    def test_threads_do_not_matter(self):
        for name in FORMATS:
            for threads in (2, 7):
                out = f"{name}-{threads}"
                self.run_cli(*self.words(name), "--out", out, "--threads", threads)
                self.assert_same_tree(out, self.whole[name])

    def start_slowly(self, name, options):
        """Makes the data set, or the rest of it, at a pace at which all of it takes ten seconds on any machine."""
        slow = sum(len(content) for content in objects_of(self.whole[name]).values()) // 10
        return self.start(*self.words(name), "--threads", 2, "--resume", "--out", f"posix:{name},write_limit={slow}B{options}")

    def kill_behind(self, objects, running, chance):
        """Kills each process at a random time up to 0.3 s after it has that many objects; yields name and exit code."""
        due = {}
        deadline = time.monotonic() + penstock_cli.PATIENCE_S
        while running:
            self.assertLess(time.monotonic(), deadline, f"waiting for objects of {sorted(running)}")
            time.sleep(0.01)
            for name, process in sorted(running.items()):
                if name not in due and (process.poll() is not None or count_objects(self.dir / name) >= objects[name]):
                    due[name] = time.monotonic() + chance.uniform(0, 0.3)
                if name in due and time.monotonic() >= due[name]:
                    del running[name]
                    process.kill()
                    process.communicate()
                    yield name, process.returncode

    def damage(self, name, chance):
        """Flips a bit of an object, and returns which."""
        there = sorted(objects_of(self.dir / name))
        if not there:
            return None
        victim = self.dir / name / chance.choice(there)
        flip(victim, chance.randrange(victim.stat().st_size))
        return victim.name

    def test_killed_and_damaged_anywhere(self):
        chance = random.Random(20)
        damaged = {name: set() for name in FORMATS}
        for options in ("", ",publish=rename", "", ""):
            objects = {name: count_objects(self.dir / name) + chance.randrange(4) for name in FORMATS}
            running = {name: self.start_slowly(name, options) for name in FORMATS}
            for name, code in self.kill_behind(objects, running, chance):
                self.assertEqual(code, -signal.SIGKILL, f"{name} was to be killed in the middle")
                self.assert_nothing_half_made(name, but=damaged[name])
                damaged[name].add(self.damage(name, chance))
        for name in FORMATS:
            self.resume(name)

    def test_killed_at_the_end(self):
        """With all objects there, before the manifest or after it."""
        running = {name: self.start_slowly(name, "") for name in FORMATS}
        objects = {name: count_objects(self.whole[name]) for name in FORMATS}
        for name, _ in self.kill_behind(objects, running, random.Random(21)):
            if not (self.dir / name / ".penstock" / "manifest").exists():
                self.assert_nothing_half_made(name)
            self.resume(name)

    def test_a_sick_disk_and_damage_before_the_resume(self):
        for name in FORMATS:
            done = self.run_cli(*self.words(name), "--out", f"posix:{name},fail=publish:eio@#16", "--threads", 1, expect=1)
            self.assertIn("Input/output error", done.stderr)
            self.assertIn("--resume", done.stderr)
            self.assert_nothing_half_made(name)
            there = sorted(objects_of(self.dir / name))
            self.assertGreater(len(there), 6, name)
            framing, cut, grown, gone, inside, label = (self.dir / name / victim for victim in there[:6])
            flip(framing, 0)
            cut.write_bytes(cut.read_bytes()[:-1])
            grown.write_bytes(grown.read_bytes() + b"\0")
            gone.unlink()
            flip(inside, inside.stat().st_size // 2)
            if name in LABELS:
                flip(label, LABELS[name](label.read_bytes()))
            done = self.resume(name)
            wrong = 6 if name in LABELS else 5
            self.assertIn(f"{wrong} objects of the earlier run were missing or wrong and were generated again", done.stderr)
            self.assertIn(message("kept-samples", n=(len(there) - wrong) * FORMATS[name][2] // 24), done.stdout)

    def small_disk(self, name):
        """A tier that is full before the data set is whole: a file system where this user may mount one, with room for its
        samples, but not for the rest of the pages that they end in."""
        plan = json.loads(self.run_cli(*self.words(name), "--out", "nowhere", "--dry-run", "--json").stdout)
        room = plan["bytes"] // 1024 + 8
        out = self.dir / name
        out.mkdir()
        if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}k", "penstock-test", str(out)],
                                                capture_output=True, check=False).returncode == 0:
            self.addCleanup(subprocess.run, ["umount", str(out)], check=False)
            return out
        return f"posix:{out},fail=write:enospc@#20.."

    def test_a_full_disk(self):
        for name in FORMATS:
            disk = self.small_disk(name)
            done = self.run_cli(*self.words(name), "--out", disk, "--threads", 2, expect=1)
            self.assertIn(message("no-space-left"), done.stderr)
            self.assertIn("--resume", done.stderr)
            self.assert_nothing_half_made(name)
            if disk == self.dir / name:
                subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            self.resume(name)


if __name__ == "__main__":
    penstock_cli.main()
