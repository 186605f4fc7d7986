#!/usr/bin/env python3
"""Two libraries of one process that have functions of the same names: each caller gets the function of its own library, as
without us, and the calls of both count."""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from penstock_cli import PENSTOCK, main
from profile_case import ProgramsTest, needs, python_with

# The two HDF5 libraries give each handle the same number, so that only the library tells whose file it is.
LIBRARY = """
static int opened;
long H5Fcreate(const char *path, unsigned flags, long creation, long access) { opened += NUMBER; return 7; }
int H5Fclose(long file) { opened -= NUMBER; return 0; }
int H5Dwrite(long set, long type, long in, long of, long transfer, const void *data) { return opened == NUMBER ? 0 : -1; }
long H5Dget_space(long set) { return 9; }
int H5Sclose(long space) { return 0; }
long H5Sget_select_npoints(long space) { return NUMBER * 100; }
unsigned long H5Tget_size(long type) { return 8; }
long H5Fget_name(long object, char *name, unsigned long room) { return 0; }
"""
CALLER = """
long H5Fcreate(const char *, unsigned, long, long);
int H5Fclose(long);
int H5Dwrite(long, long, long, long, long, const void *);
int use(const char *path) {
  long file = H5Fcreate(path, 0, 0, 0);
  int result = H5Dwrite(file, 1, 0, 0, 0, path);
  return result != 0 ? result : H5Fclose(file);
}
int last(const char *path) { return H5Fclose(7); }
"""
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **argv) {
  int flags = atoi(argv[1]) | RTLD_LOCAL;
  for (int i = 2; i < count; ++i) {
    int closes = argv[i][0] == '-';
    void *library = dlopen(argv[i] + closes, flags);
    int (*use)(const char *) = library == NULL ? NULL : (int (*)(const char *))dlsym(library, "use");
    char path[64];
    snprintf(path, sizeof(path), "%c.h5", strrchr(argv[i], '.')[-1]);
    if (use == NULL || use(path) != 0) { printf("%s fails: %s\\n", argv[i], library == NULL ? dlerror() : "wrong library"); return 1; }
    if (closes) { dlclose(library); }
  }
  return 0;
}
"""


@needs("cc")
class OwnLibraries(ProgramsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.libraries = pathlib.Path(tempfile.mkdtemp(prefix="penstock-two-libraries-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.libraries)
        cls.compile("main", PROGRAM, "-ldl")
        for number, name in enumerate("abcdef", 1):
            cls.compile(f"libh5{name}.so", LIBRARY.replace("NUMBER", str(number)), "-shared", "-fPIC")
            cls.compile(f"use{name}.so", CALLER, "-shared", "-fPIC", "-O2", "-L.", f"-lh5{name}", "-Wl,-rpath,$ORIGIN")
            # Functions and their callers in one library.
            cls.compile(f"own{name}.so", LIBRARY.replace("NUMBER", str(number)) + CALLER, "-shared", "-fPIC")

    @classmethod
    def compile(cls, name, text, *words):
        source = cls.libraries / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        subprocess.run(["cc", "-w", "-o", name, source, *words], cwd=cls.libraries, check=True)

    def run_both(self, *words, flags=os.RTLD_LAZY, watched="ab", **environment):
        for command in ([], [PENSTOCK, "profile", "run", "-o", "s", "--"]):
            subprocess.run(["rm", "-rf", "s"], cwd=self.libraries, check=True)
            done = subprocess.run([*command, "./main", str(flags), *words], cwd=self.libraries, env=os.environ | environment,
                                  capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        report = subprocess.run([PENSTOCK, "profile", "report", "--json", "--all", "s"], cwd=self.libraries, capture_output=True, text=True,
                                check=True).stdout
        layers = {pathlib.Path(row["path"]).stem: row["layers"]["hdf5"] for row in map(json.loads, report.splitlines())
                  if row["kind"] == "file" and row["path"].endswith(".h5")}
        for name in watched:
            uses = sum(word.endswith(f"{name}.so") for word in words)
            self.assertEqual([layers[name].get(key, 0) for key in ("opens", "writes", "bytes_written")],
                             [uses, uses, uses * 800 * ("abcdef".index(name) + 1)], name)
        return layers

    def test_each_caller_has_its_own(self):
        for kind, (first, second), flags in itertools.product(("use", "own"), ("ab", "ba"), (os.RTLD_LAZY, os.RTLD_NOW)):
            with self.subTest(kind=kind, first=first, flags=flags):
                self.run_both(f"./{kind}{first}.so", f"./{kind}{second}.so", f"./{kind}{first}.so", flags=flags)

    def test_closed_and_opened_again(self):
        self.run_both("-./usea.so", "-./useb.so", "-./useb.so", "-./usea.so", "./useb.so", "./usea.so")
        self.run_both("-./owna.so", "-./ownb.so", "-./ownb.so", "-./owna.so", "./ownb.so", "./owna.so")

    def test_opened_before_libc(self):
        self.run_both("./usea.so", "./useb.so", flags=os.RTLD_LAZY | os.RTLD_DEEPBIND)

    def test_more_libraries_than_there_are_wrappers(self):
        """They work as without us, and the first four are watched."""
        self.run_both(*(f"./use{name}.so" for name in "abcdef"), watched="abcd")

    def test_in_the_program_itself(self):
        self.run_both("./useb.so", watched="", LD_PRELOAD=str(self.libraries / "libh5b.so"))


WHEELS = """
import sys
def h5py_():
    with h5py.File("h5py.h5", "w") as file:
        file["v"] = list(range(1000))
    with h5py.File("h5py.h5") as file:
        return int(file["v"][:].sum())
def netCDF4_():
    with netCDF4.Dataset("netCDF4.h5", "w") as file:
        file.createDimension("x", 1000)
        file.createVariable("v", "f8", ("x",))[:] = 1
    with netCDF4.Dataset("netCDF4.h5") as file:
        return int(file["v"][:].sum())
def tables_():
    with tables.open_file("tables.h5", "w") as file:
        file.create_array("/", "v", list(range(1000)))
    with tables.open_file("tables.h5") as file:
        return int(sum(file.root.v[:]))
for name in sys.argv[1:]:
    globals()[name] = __import__(name)
print([globals()[name + "_"]() for name in sys.argv[1:]])
"""


class Wheels(ProgramsTest):
    """h5py, netCDF4 and PyTables of PyPI bring an HDF5 library each."""

    def test_each_pair_in_each_order(self):
        python = python_with("h5py, netCDF4, tables")
        if python is None:
            self.skipTest("no Python here has h5py, netCDF4 and tables (ci/interop installs them)")
        sums = {"h5py": 499500, "netCDF4": 1000, "tables": 499500}
        alone = {}  # the bytes of each: 8,000 of data, and those of attributes that the package writes
        for count in (1, 2, 3):
            for names in itertools.permutations(sums, count):
                with self.subTest(names=names):
                    _, files, output = self.profiled([python, "-c", WHEELS, *names], session="-".join(names), cwd=self.folder)
                    self.assertEqual(json.loads(output), [sums[name] for name in names])
                    for name in names:
                        hdf5 = files[str(self.folder / f"{name}.h5")]["layers"]["hdf5"]
                        moved = (hdf5["bytes_read"], hdf5["bytes_written"])
                        self.assertEqual((hdf5["opens"], moved), (2, alone.setdefault(name, moved)), name)
        self.assertEqual(alone["h5py"], (8000, 8000))
        for moved in alone.values():
            self.assertTrue(all(8000 <= count < 9000 for count in moved), alone)


if __name__ == "__main__":
    main()
