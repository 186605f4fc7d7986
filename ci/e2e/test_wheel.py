"""`ci/packaging/wheel` makes a wheel that a fresh virtual environment installs and runs, on a machine without compilers."""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import penstock_cli

PROJECT = penstock_cli.SOURCE / "ci" / "packaging"
LICENCE = (PROJECT / "licence.txt").read_text(encoding="utf-8").strip()


def lacking():
    if penstock_cli.SANITIZED:
        return "a wheel of a sanitizer's build is for nobody"
    return None if shutil.which("cpack") else "cpack is not on the path"


def call(*words, **kwargs):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, check=False, **kwargs)
    if done.returncode != 0:
        raise AssertionError(f"{words}\n{done.stdout}{done.stderr}")
    return done.stdout


class Wheel(penstock_cli.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        done = subprocess.run([PROJECT / "wheel", cls.folder / "dist"], capture_output=True, text=True, check=False,
                              env={**os.environ, "PENSTOCK_BUILD": str(penstock_cli.BUILD)})
        if done.returncode == 77:
            raise unittest.SkipTest(done.stderr)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.wheel, = (cls.folder / "dist").glob("*.whl")
        cls.venv = cls.folder / "venv"
        python = next((python for python in (sys.executable, "/usr/bin/python3") if subprocess.run([python, "-c", "import ensurepip"], check=False).returncode == 0))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        call(python, "-m", "venv", cls.venv)
        call(cls.venv / "bin" / "pip", "install", "-q", "--no-index", cls.wheel)
        # Nothing but the wheel is on the path: no compiler, no library of the building machine's environment.
        cls.environment = {"PATH": str(cls.venv / "bin"), "HOME": str(cls.folder)}
        cls.demo = call("penstock", "demo", "--quick", "--out", cls.folder / "demo", cwd=cls.folder, env=cls.environment)
        cls.wall_s = time.monotonic() - began
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cls.processor_s = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime

    def python(self, script, **kwargs):
        return call(self.venv / "bin" / "python", "-c", script, cwd=self.dir, **kwargs)

    def test_it_goes_from_nothing_to_a_report_in_a_minute(self):
        print(f"venv, pip install, demo --quick: {self.wall_s:.0f} s, {self.processor_s:.0f} processor seconds", file=sys.stderr)
        self.assertIn("<html", (self.folder / "demo" / "report.html").read_text(encoding="utf-8"))
        self.assertLess(self.processor_s, 60)  # other tests on this machine make the wall time longer, not this

    def test_its_tag_is_of_this_c_library_or_older_and_registries_refuse_it(self):
        tag = re.fullmatch(r"penstock_io-([^-]+)-py3-none-manylinux_(\d+)_(\d+)_\w+\.whl", self.wheel.name)
        self.assertTrue(tag, self.wheel.name)
        self.assertLessEqual((int(tag[2]), int(tag[3])), tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))))
        version = self.run_cli("--version").stdout.split()[1]
        self.assertEqual(tag[1], version)
        metadata = self.python("import importlib.metadata as m; print(m.version('penstock-io'), m.metadata('penstock-io')['License'], "
                               "m.metadata('penstock-io').get_all('Classifier'))")
        self.assertTrue(metadata.startswith(f"{version} {LICENCE.removeprefix('licence: ')} "), metadata)
        self.assertIn("Private :: Do Not Upload", metadata)

    def test_it_names_what_it_carries_and_what_it_lacks(self):
        bundle = next(self.venv.rglob("penstock_io/bundle"))
        carried = (bundle / "THIRD_PARTY.md").read_text(encoding="utf-8")
        self.assertIn(LICENCE, carried)
        for library in (bundle / "lib" / "penstock").iterdir():
            row = re.search(rf"(?m)^\| {re.escape(library.name)} \| (.*) \| (.*) \| (.*) \| (.*) \|$", carried)
            self.assertTrue(row, library.name)
            self.assertFalse(library.is_symlink())
            for text in row[4].split(", "):
                if text != "unknown":
                    self.assertTrue((bundle / text).stat().st_size, text)
        self.assertEqual(list(bundle.rglob("libpenstock_mpi.so")), [])
        self.assertRegex(call("penstock", "--version", env=self.environment), r"(?m)^  library +mpi +missing: .*wheel")
        launched = subprocess.run(["penstock", "read", "x"], capture_output=True, text=True, check=False,
                                  env={**self.environment, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"})
        self.assertEqual((launched.returncode, "wheel" in launched.stderr), (77, True), launched.stderr)
        self.assertTrue((self.venv / "share" / "man" / "man1" / "penstock-read.1").exists())

    def test_the_module_finds_its_own_program_and_profiler(self):
        script = ("import penstock_io as p, os\np.run(['generate', 'imagenet', '--samples', '8', '--out', 'data'])\n"
                  "with p.window('all', session='own'): open('data/.penstock/manifest', 'rb').read()\nprint(p.program())")
        self.assertTrue(self.python(script, env=self.environment).startswith(str(self.venv)))
        self.assertTrue(list((self.dir / "own").glob("*.session")))

    @unittest.skipUnless(shutil.which("pipx"), "pipx is not on the path")
    def test_pipx_runs_it(self):
        done = call("pipx", "run", "--spec", self.wheel, "penstock", "--version", env={**os.environ, "PIPX_HOME": str(self.dir / "pipx")})
        self.assertRegex(done, r"^penstock \d+\.\d+")

    def test_frames_and_five_lines_to_a_plot(self):
        pip = subprocess.run([self.venv / "bin" / "pip", "install", "-q", "pandas", "matplotlib"], capture_output=True, text=True, check=False)
        if pip.returncode != 0:
            self.skipTest(f"PyPI does not bring pandas and matplotlib: {pip.stderr[-300:]}")
        self.run_cli("generate", "imagenet", "--samples", 8, "--out", "data")
        printed = self.records("read", "data", "--threads", "1,2", "--repeat", 3, "--min-time", "10ms")
        blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "python" / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        plot, = (block for block in blocks if "savefig" in block)
        self.assertEqual(len(plot.splitlines()), 5)
        self.python(plot, env={"MPLBACKEND": "Agg", "HOME": str(self.dir)})
        self.assertEqual((self.dir / "bandwidth.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        frame = ("import penstock_io as p, json, sys\nf = p.records(sys.argv[1], as_frame=True, repeats=bool(int(sys.argv[2])))\n"
                 "print(f.to_json(orient='records'))")
        rows = lambda path, repeats: penstock_cli.json.loads(call(self.venv / "bin" / "python", "-c", frame, path, int(repeats), cwd=self.dir))
        reads = [row for row in rows("penstock-results", False) if row["command"] == "read"]
        self.assertEqual([(row["threads"], row["id"], row["verdict"]) for row in reads], [(r["parameters"]["threads"], r["id"], r["verdict"]) for r in printed])
        for row, record in zip(reads, printed):
            self.assertAlmostEqual(row["payload_bytes_per_s"] / record["metrics"]["payload_bytes_per_s"]["value"], 1)
        repeats = [row for row in rows("penstock-results", True) if row["command"] == "read"]
        self.assertEqual([(row["threads"], row["repeat"]) for row in repeats], [(threads, repeat) for threads in (1, 2) for repeat in range(3)])
        for row in repeats:
            metrics = printed[row["threads"] - 1]["metrics"]
            self.assertAlmostEqual(row["payload_bytes_per_s"] / metrics["payload_bytes_per_s"]["samples"][row["repeat"]], 1)
            self.assertEqual(row["errors"], metrics["errors"]["value"])
        kept = penstock_cli.SOURCE / "ci" / "e2e" / "kept_records"
        for file in kept.iterdir():
            self.assertEqual(len(rows(file, False)), len(penstock_cli.stored(file)), file)
        train = penstock_cli.stored(kept / "train.jsonl")[0]
        row = rows(kept / "train.jsonl", False)[0]
        self.assertEqual((row["steps"], row["parameters.steps"]), (train["metrics"]["steps"]["value"], train["parameters"]["steps"]))


if __name__ == "__main__":
    penstock_cli.main(lacking)
