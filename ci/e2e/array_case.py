"""What the tests of arrays share: small data sets, and interpreters that have NumPy or h5py."""

import functools
import json
import subprocess
import sys

import penstock_cli

SMALL = ("--samples", 23, "--seed", 7, "--set", "median=8KB", "--set", "classes=5")


@functools.lru_cache
def python_with(module):
    """An interpreter that has the module (the system's may have what this one lacks), or None."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
                return python
        except FileNotFoundError:
            pass
    return None


class ArrayTest(penstock_cli.CliTest):
    def generate(self, out, *args, recipe="imagenet", small=SMALL, **kwargs):
        return self.run_cli("generate", recipe, "--out", out, *small, *args, **kwargs)

    def python(self, module, code, *args):
        """What the code prints as JSON, run by an interpreter with the module; a skip where there is none."""
        python = python_with(module)
        if python is None:
            self.skipTest(f"no Python here has {module}")
        done = subprocess.run([python, "-c", f"import json, sys, {module}\n{code}", *map(str, args)], cwd=self.dir,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def plain_files(self):
        """Key -> bytes, of the same samples as plain files, in the order of the recipe."""
        self.generate("files")
        root = self.dir / "files"
        files = {str(path.relative_to(root).with_suffix("")): path.read_bytes() for path in root.rglob("*.JPEG")}
        return dict(sorted(files.items(), key=lambda item: int(item[0].split("_")[1])))
