"""What tests of generate share: a small data set, and the list of files that must never remain."""

import pathlib

import penstock_cli

FULL = ("--set", "encode=full")  # at a pace at which it can be stopped in the middle
SMALL = ("--seed", "7", "--set", "median=12KB", "--set", "classes=20", *FULL)


class GenerateTest(penstock_cli.CliTest):
    def generate(self, out, samples, *args, **kwargs):
        return self.run_cli("generate", "imagenet", "--out", out, "--samples", samples, *SMALL, *args, **kwargs)

    def assert_no_corpus(self, folder):
        self.assertFalse(pathlib.Path(folder, ".penstock", "manifest").exists(), "half a data set is no corpus")

    def assert_whole_objects(self, folder, reference):
        """Everything that has the name of a sample has all its bytes."""
        for path in pathlib.Path(folder).rglob("*.JPEG"):
            self.assertEqual(path.read_bytes(), pathlib.Path(reference, path.relative_to(folder)).read_bytes(), path)
