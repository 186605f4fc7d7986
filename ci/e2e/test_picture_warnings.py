#!/usr/bin/env python3
"""Pictures that other readers decode with a warning at most: they are decoded, counted by warning, and the first is named."""

import json
import pathlib

from messages import message
from penstock_cli import main
from train_case import TrainTest, value

END = b"\xff\xd9"


class PictureWarnings(TrainTest):
    def setUp(self):
        super().setUp()
        sound = next(path for path in sorted((self.made / "corpus").rglob("*")) if path.suffix.lower() in (".jpeg", ".jpg")).read_bytes()
        self.assertEqual(sound[-2:], END)
        self.odd = {
            "a_sound": (sound, []),
            "b_stray": (sound[:-2] + bytes(99) + END, ["stray_bytes"]),
            "c_no_end": (sound[:-2], ["no_end_marker"]),
            "d_end_in_the_middle": (sound[:len(sound) // 2] + END + sound[len(sound) // 2:], ["early_end", "bytes_after_end"]),
            "e_longer": (sound + bytes(10), ["bytes_after_end"]),
            "f_two_pictures": (sound + sound, ["more_pictures"]),
        }
        self.counts = {}
        (self.dir / "d").mkdir()
        for name, (content, warnings) in self.odd.items():
            (self.dir / "d" / f"{name}.jpg").write_bytes(content)
            for warning in warnings:
                self.counts[warning] = self.counts.get(warning, 0) + 1
        self.flags = ("--scan", "--json")

    def counted(self, record):
        found = {name.split(".")[1]: value(record, name) for name in record["metrics"] if name.startswith("picture_warnings.")}
        self.assertEqual(found, self.counts)

    def notes_the_first(self, stderr, samples):
        self.assertIn(message("pictures-with-warnings", n=samples), stderr)
        self.assertIn("'b_stray.jpg'", stderr)

    def test_training_decodes_them(self):
        done = self.run_cli("train", "alexnet", "--data", "d", "--batch", "6", "--steps", "1", "--prefetch", "0", "--threads", "1", "--shuffle", "none",
                            "--scan", "--json")
        record = self.record_of(done)
        self.assertEqual(value(record, "skipped_samples"), 0)
        self.counted(record)
        self.notes_the_first(done.stderr, 5)

    def test_reading_decodes_them(self):
        for more in ((), ("--on-error", "skip")):
            done = self.run_cli("read", "d", "--decode", "full", "--order", "sequential", "--repeat", "1",
                                "--min-time", "0", "--no-baseline", "--no-ceiling", "--threads", "1",
                                *more, *self.flags)
            record = self.record_of(done)
            self.assertEqual((record["verdict"], value(record, "errors")), ("ok", 0))
            self.counted(record)
            self.notes_the_first(done.stderr, 5)

    def test_describe_counts_them(self):
        described = self.record_of(self.run_cli("describe", "d", "--content", *self.flags))["content"]["pictures"]
        self.assertEqual((described["jpeg"], described["failed"], described["warned"]), (6, 0, 5))
        self.assertEqual(described["warnings"], self.counts)
        self.assertIn("'b_stray.jpg'", described["first_warned"])

    def test_pictures_that_end_before_their_last_pixel_fail_everywhere(self):
        (self.dir / "d" / "g_cut.jpg").write_bytes(self.odd["a_sound"][0][:-500])
        flags = ("read", "d", "--decode", "full", "--repeat", "1", "--min-time", "0", "--no-baseline", "--no-ceiling", "--threads", "1", *self.flags)
        self.run_cli(*flags, expect=1)
        self.assertEqual(value(self.record_of(self.run_cli(*flags, "--on-error", "skip")), "errors"), 1)
        described = self.record_of(self.run_cli("describe", "d", "--content", *self.flags))["content"]["pictures"]
        self.assertEqual((described["jpeg"], described["failed"], described["warned"]), (6, 1, 5))
        self.run_cli("train", "alexnet", "--data", "d", "--batch", "7", "--steps", "1", *self.flags, expect=1)

    def record_of(self, done):
        return json.loads(done.stdout.splitlines()[0])

    def test_the_list_of_bad_samples_names_those_that_cannot_be_used(self):
        sound = self.odd["a_sound"][0]
        for name, content in {"g_cut.jpg": sound[:len(sound) // 2], "h_gif.jpeg": b"GIF89a" + bytes(50), "i\n.jpg": b"", "j.tar": b"no tar"}.items():
            (self.dir / "d" / name).write_bytes(content)
        (self.dir / "d" / "empty_class").mkdir()
        (self.dir / "d" / "k.jpg").symlink_to("a_sound.jpg")
        (found,) = self.records("describe", "d", "--scan", "--list-bad", "bad.tsv")
        self.assertEqual(found["bad"], {"checked": 10, "samples": 3, "objects": 1, "unchecked": 0})
        self.assertEqual(found["extensions"], {".jpg": 9, ".jpeg": 1})
        self.assertEqual((found["scan"]["empty_folders"], found["scan"]["linked_objects"]), (1, 1))
        rows = [line.split("\t") for line in (self.dir / "bad.tsv").read_text().splitlines()]
        self.assertEqual([row[:2] for row in rows], [["j.tar", "0"], ["g_cut.jpg", "0"], ["h_gif.jpeg", "0"], ["i\\n.jpg", "0"]])
        self.assertTrue(all(row[2] for row in rows))

        (self.dir / "only").mkdir()
        (self.dir / "only" / "a.tar").write_bytes(b"no tar")
        self.run_cli("describe", "only", "--scan", "--list-bad", "bad.tsv", expect=1)
        self.assertEqual([line.split("\t")[0] for line in (self.dir / "bad.tsv").read_text().splitlines()], ["a.tar"])

        for file in ("d/a_sound.jpg", "d", "d/"):
            self.assertIn(file, self.run_cli("describe", "d", "--scan", "--list-bad", file, expect=2).stderr)
        self.assertEqual((self.dir / "d" / "a_sound.jpg").read_bytes(), sound)
        (self.dir / "script").write_text("\nimport os\n")
        (self.dir / "link").symlink_to("script")
        for file in ("script", "link", "/dev/null"):
            self.assertIn(file, self.run_cli("describe", "d", "--scan", "--list-bad", file, expect=2).stderr)
        self.assertEqual((self.dir / "link").read_text(), "\nimport os\n")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        (self.dir / "empty").touch()
        self.run_cli("describe", "d", "--scan", "--list-bad", "empty")
        self.assertEqual((self.dir / "empty").read_text().count("\n"), 4)


if __name__ == "__main__":
    main()
