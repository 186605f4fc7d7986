"""`cpack` makes a tarball that runs from anywhere, on a node that has nothing but the C library."""

import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import unittest

import penstock_cli

# What every Linux has: the C library's own.
BASE = re.compile(r"^(linux-vdso|ld-linux[-\w]*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|mvec))\.so")
# What they need besides is the site's MPI, and what was built with that.
OF_THE_SITE = ("libpenstock_mpi.so",)


def lacking():
    if penstock_cli.SANITIZED:
        return "a bundle of a sanitizer's build is for nobody"
    return None if shutil.which("cpack") else "cpack is not on the path"


class Bundle(penstock_cli.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.packed = pathlib.Path(penstock_cli.BUILD, "packages-of-test")
        shutil.rmtree(cls.packed, ignore_errors=True)
        cls.addClassCleanup(shutil.rmtree, cls.packed, ignore_errors=True)
        done = subprocess.run(["cpack", "-B", str(cls.packed)], cwd=penstock_cli.BUILD, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    def setUp(self):
        super().setUp()
        archive, = self.packed.glob("penstock-*.tar.gz")
        self.place = self.dir / "a place of its own"
        with tarfile.open(archive) as tar:
            tar.extractall(self.place)
        self.root, = self.place.iterdir()
        self.program = self.root / "bin" / "penstock"

    def call(self, *words, **kwargs):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, **kwargs)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def elves(self):
        found = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"]
        self.assertIn(self.program, found)
        return found

    def test_it_holds_what_a_node_needs_and_no_more(self):
        names = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}
        libraries = {name for name in names if name.startswith("lib")}
        for name in ("bin/penstock", "share/man/man1/penstock.1", "share/man/man1/penstock-read.1", "share/bash-completion/completions/penstock",
                     "share/zsh/site-functions/_penstock", "share/fish/vendor_completions.d/penstock.fish", "share/doc/penstock/README.md",
                     "share/doc/penstock/docs/reference/records.md"):
            self.assertIn(name, names)
        for module in ("libpenstock_profile.so", "penstock_hdf5_filters", *OF_THE_SITE):
            if pathlib.Path(penstock_cli.BUILD, module).exists():
                self.assertTrue(any(name.endswith("/" + module) for name in libraries), module)
        self.assertEqual([name for name in names if name.endswith((".a", ".hpp", ".cmake"))], [])

    def test_it_names_the_licence_of_each_library_and_of_itself(self):
        documents = self.root / "share" / "doc" / "penstock"
        carried = (documents / "THIRD_PARTY.md").read_text(encoding="utf-8")
        rows = {row[0]: row[1:] for row in (line.strip("| ").split(" | ") for line in carried.splitlines() if line.startswith("| "))}
        for library in self.root.rglob("lib/penstock/*"):
            package, version, licence, texts = rows.pop(library.name)
            self.assertNotIn("unknown", (package, version, licence, texts), library.name)
            for text in texts.split(", "):
                self.assertTrue((documents / text).is_file(), text)
        self.assertLessEqual({"library", "in the program"}, rows.keys())
        self.assertEqual([name for name in rows if name.startswith("lib") and name != "library"], [])
        self.assertIn((documents / "copyright").read_text(encoding="utf-8").strip(), carried)

    def test_every_library_but_the_base_is_its_own(self):
        for elf in self.elves():
            if elf.name in OF_THE_SITE:
                continue
            # As the program sees it: its RPATH counts for what it loads.
            output = self.call("ldd", elf if elf == self.program or "penstock_" in elf.name else self.program, env={"PATH": os.environ["PATH"]})
            for line in output.splitlines():
                name, _, rest = line.strip().partition(" => ")
                if BASE.match(pathlib.Path(name.split(" ")[0]).name):
                    continue
                self.assertTrue(rest.startswith(str(self.root)), f"{elf.name}: {line}")

    def run_story(self, program, run, folder):
        """Makes, reads, draws and profiles with nothing around."""
        self.assertIn("penstock ", run(program, "--version"))
        run(program, "generate", "imagenet", "--samples", "8", "--out", f"{folder}/data", "--results", f"{folder}/runs")
        run(program, "read", f"{folder}/data", "--threads", "1", "--min-time", "1ms", "--cache", "asis", "--results", f"{folder}/runs")
        run(program, "report", f"{folder}/runs", "-o", f"{folder}/report.html")
        if any(self.root.rglob("libpenstock_profile.so")):
            run(program, "profile", "run", "-o", f"{folder}/session", "--", program, "verify", f"{folder}/data")
            self.assertIn("manifest", run(program, "profile", "report", f"{folder}/session"))

    def test_it_runs_from_a_folder_with_spaces_without_any_environment(self):
        # LD_PRELOAD takes no blank, so what it loads has a second name.
        library = self.dir / "profile.so"
        for found in self.root.rglob("libpenstock_profile.so"):
            library.symlink_to(found)
        self.run_story(self.program, lambda *words: self.call("env", "-i", f"PENSTOCK_PROFILE_LIBRARY={library}", *words, cwd=self.dir), self.dir)
        self.assertIn("<html", (self.dir / "report.html").read_text(encoding="utf-8"))

    @unittest.skipUnless(os.geteuid() == 0, "chroot takes root")
    def test_it_runs_where_there_is_the_c_library_alone(self):
        node = self.dir / "node"
        for line in self.call("ldd", self.program).splitlines():
            path = re.search(r"(/\S+)", line.split(" => ")[-1])
            if path and BASE.match(pathlib.Path(line.strip().split(" ")[0]).name):
                wanted = line.strip().split(" ")[0]
                place = node / (wanted.lstrip("/") if wanted.startswith("/") else path.group(1).lstrip("/"))
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path.group(1), place)
        for name in ("proc", "dev", "tmp", "home"):
            (node / name).mkdir()
        shutil.copytree(self.root, node / "opt" / "penstock", symlinks=True)
        enter = f"mount --bind /dev '{node}/dev' && mount -t proc proc '{node}/proc' && exec chroot '{node}' \"$@\""
        if subprocess.run(["unshare", "-m", "sh", "-c", enter.replace("exec chroot", "exec true chroot"), "sh"], capture_output=True, check=False).returncode != 0:
            self.skipTest("nothing may be mounted here")
        self.run_story("/opt/penstock/bin/penstock", lambda *words: self.call("unshare", "-m", "sh", "-c", enter, "sh", *words, env={"PATH": os.environ["PATH"]}),
                       "/home")
        self.assertTrue((node / "home" / "report.html").exists())


if __name__ == "__main__":
    penstock_cli.main(lacking)
