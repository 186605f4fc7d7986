"""What the tests of `penstock train` share: a corpus of pictures to train on."""

import pathlib
import shutil
import subprocess
import tempfile

from penstock_cli import PENSTOCK, CliTest

SAMPLES = 40


def value(record, metric):
    return record["metrics"][metric]["value"]


class TrainTest(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([PENSTOCK, "generate", "imagenet", "--out", str(cls.made / "corpus"), "--samples", str(SAMPLES),
                        "--seed", "7", "--results", str(cls.made / "results")], check=True, capture_output=True)

    def corpus(self):
        """A copy of the corpus that this test may spoil, and its pictures by name."""
        folder = self.dir / "corpus"
        shutil.copytree(self.made / "corpus", folder)
        return folder, sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))

    def train(self, *args, data=None, seed="3", **kwargs):
        return self.records("train", "alexnet", "--data", data or self.made / "corpus", "--seed", seed, *args, **kwargs)

    def log(self, *args, name="samples.log", **kwargs):
        """The sample log of a run: (epoch, step, rank, index) a line."""
        self.train("--sample-log", self.dir / name, *args, **kwargs)
        return [tuple(map(int, line.split(" "))) for line in (self.dir / name).read_text().splitlines()]
