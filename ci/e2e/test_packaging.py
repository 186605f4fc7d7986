"""The recipes of ci/packaging agree with the sources: Spack's package, the container files, and what CMake can leave out."""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import types
import unittest

import penstock_cli

PACKAGING = penstock_cli.SOURCE / "ci" / "packaging"
LICENCE = (PACKAGING / "licence.txt").read_text(encoding="utf-8").strip().removeprefix("licence: ")


def read(*names):
    return PACKAGING.joinpath(*names).read_text(encoding="utf-8")


class Spec:
    """A concrete spec with some variants off."""

    def __init__(self, off):
        self.off = off

    def satisfies(self, condition):
        return condition.removeprefix("~") in self.off if condition.startswith("~") else condition.removeprefix("+") not in self.off


def spack_package():
    """The class of Spack's package, and the calls of Spack's directives in it: name -> list of (arguments, keywords)."""
    calls = {}
    record = lambda name: lambda *arguments, **keywords: calls.setdefault(name, []).append((arguments, keywords))
    package = types.ModuleType("spack.package")
    for name in ("version", "variant", "depends_on", "conflicts"):
        setattr(package, name, record(name))
    package.run_after = package.on_package_attributes = lambda *arguments, **keywords: lambda function: function
    cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    cmake.CMakePackage = type("CMakePackage", (), {"define": staticmethod(lambda name, value: (name, value))})
    modules = {"spack": types.ModuleType("spack"), "spack.package": package, "spack_repo.builtin.build_systems.cmake": cmake}
    for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        modules[name] = types.ModuleType(name)
    sys.modules.update(modules)
    try:
        spec = importlib.util.spec_from_file_location("penstock_spack_package", PACKAGING / "spack" / "package.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name in modules:
            sys.modules.pop(name)
    return module.Penstock, calls


class Spack(unittest.TestCase):
    def setUp(self):
        self.package, self.calls = spack_package()
        self.variants = [arguments[0] for arguments, _ in self.calls["variant"]]

    def test_each_variant_brings_libraries_and_leaves_them_out(self):
        self.assertEqual(self.variants, list(self.package.libraries))
        conditions = {keywords["when"] for _, keywords in self.calls["depends_on"] if "when" in keywords}
        self.assertEqual(conditions, {f"+{name}" for name in self.variants})
        concrete = lambda off: types.SimpleNamespace(spec=Spec(off), libraries=self.package.libraries, define=self.package.define)
        arguments = lambda *off: dict(self.package.cmake_args(concrete(off)))
        self.assertEqual(arguments()["PENSTOCK_WITHOUT"], [])
        self.assertEqual(arguments("s3", "mpi")["PENSTOCK_WITHOUT"], ["mpi", "libcurl", "pugixml"])
        known = set(re.findall(r"penstock_optional\(([\w-]+) ", "".join(path.read_text(encoding="utf-8") for path in (
            penstock_cli.SOURCE / "ci" / "cmake").glob("*.cmake"))))
        self.assertLessEqual(set(arguments(*self.variants)["PENSTOCK_WITHOUT"]), known)
        lists = (penstock_cli.SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
        self.assertRegex(lists, r"option\(PENSTOCK_TESTS ")

    def test_it_depends_on_what_ci_bootstrap_names(self):
        table = (penstock_cli.SOURCE / "ci" / "bootstrap").read_text(encoding="utf-8")
        wanted = {row.split("|")[4].strip() for row in re.findall(r"(?m)^build .*\|.*$", table)}
        wanted -= {"gcc", "gmake", "npm", "benchmark"}  # compilers and make come with Spack; the others are for developers and charts
        renamed = {"pkgconf": "pkgconfig", "zlib": "zlib-api", "openmpi": "mpi"}  # what Spack calls the virtual packages
        named = {re.split("[@ ]", arguments[0])[0] for arguments, _ in self.calls["depends_on"]} - {"c", "cxx"}
        self.assertEqual(named, {renamed.get(name, name) for name in wanted})

    def test_it_names_no_licence(self):
        self.assertIn(LICENCE, read("spack", "package.py"))
        self.assertNotIn("license(", read("spack", "package.py"))


class Containers(unittest.TestCase):
    def test_both_recipes_copy_all_sources_and_build_by_the_same_script(self):
        tracked = subprocess.run(["git", "-C", penstock_cli.SOURCE, "ls-files"], capture_output=True, text=True, check=False).stdout.splitlines()
        if not tracked:
            self.skipTest("the sources are no git checkout")
        top = {name.split("/")[0] for name in tracked if not name.startswith(".")}
        lines = read("Containerfile").splitlines()
        copies = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
        self.assertEqual({name for names in copies for name in names}, top)
        files = re.search(r"(?ms)^%files\n(.*?)^%post", read("penstock.def"))[1]
        self.assertEqual({line.split()[0] for line in files.splitlines() if line.strip()}, top)
        self.assertEqual({line.split()[1] for line in files.splitlines() if line.strip()}, {"/src/"})
        for text in (read("Containerfile"), read("penstock.def")):
            self.assertIn("ci/packaging/in_container /opt/penstock", text)
            self.assertIn(LICENCE, text)

    def test_each_line_is_an_instruction_and_the_second_stage_takes_the_program_alone(self):
        text = read("Containerfile").replace("\\\n", " ")
        words = [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]
        self.assertLessEqual(set(words), {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "LABEL", "ENV", "ENTRYPOINT"})
        self.assertEqual(words.count("FROM"), 2)
        last = text[text.rindex("\nFROM"):]
        self.assertEqual(re.findall(r"(?m)^COPY (.*)$", last), ["--from=build /opt/penstock /opt/penstock"])
        sections = re.findall(r"(?m)^%(\w+)", read("penstock.def"))
        self.assertEqual(sections, ["files", "post", "files", "environment", "runscript", "labels"])
        for name in ("in_container", "test_in_chroot", "wheel"):
            shell = "sh" if read(name).startswith("#!/bin/sh") else "bash"
            subprocess.run([shell, "-n", PACKAGING / name], check=True)


@unittest.skipIf(penstock_cli.SANITIZED, "once is enough")
@unittest.skipUnless(shutil.which("cmake"), "cmake is not on the path")
class Without(penstock_cli.CliTest):
    def configure(self, without, expect=0):
        done = subprocess.run(["cmake", "-S", penstock_cli.SOURCE, "-B", self.dir, f"-DPENSTOCK_WITHOUT={without}", "-DPENSTOCK_TESTS=OFF"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def test_cmake_leaves_out_what_it_is_told_to(self):
        self.configure("mpi;hdf5;liburing;libcurl;pugixml;onednn")
        built = pathlib.Path(self.dir, "build_info.cpp").read_text(encoding="utf-8")
        for name in ("mpi", "hdf5", "liburing", "libcurl", "pugixml", "onednn"):
            self.assertIn(f'{{"{name}", 0 != 0,', built)
        self.assertIn('{"fmt", 1 != 0,', built)
        self.assertIn("'hdf'", self.configure("mpi;hdf", expect=1))


if __name__ == "__main__":
    penstock_cli.main()
