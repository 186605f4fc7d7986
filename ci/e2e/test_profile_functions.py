#!/usr/bin/env python3
"""Functions of libc, MPI and HDF5 that few programs call: each is counted as what it does, and once. Those whose file has a known name are
rows of the profiler's matrix (profile_matrix.py)."""

import json
import os
import subprocess

from penstock_cli import PENSTOCK, main
from profile_case import ProgramsTest, needs

# The names of these files are chosen by libc.
CHOSEN_NAMES = """#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char plain[] = "plain-XXXXXX.end", flags[] = "flags-XXXXXX.end", folder[] = "folder-XXXXXX";
  int first = mkstemps64(plain, 4), second = mkostemps64(flags, 4, O_APPEND);
  return write(first, "0123", 4) == 4 && write(second, "012345", 6) == 6 && mkdtemp(folder) == folder ? 0 : 1;
}
"""
MPI = """
#include <mpi.h>
#define CHECK(call) if ((call) != MPI_SUCCESS) return __LINE__
int main(int count, char** words) {
  MPI_File file;
  MPI_Offset bytes = 0;
  char data[1000] = "x";
  CHECK(MPI_Init(&count, &words));
  CHECK(MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  CHECK(MPI_File_preallocate(file, 4000));
  CHECK(MPI_File_seek_shared(file, 1000, MPI_SEEK_SET));
  CHECK(MPI_File_write_at(file, 0, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(MPI_File_read_at(file, 500, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
  CHECK(MPI_File_delete(words[1], MPI_INFO_NULL));
  return MPI_Finalize();
}
"""
# MPI 4 has a second form of each transfer, for more elements than an int can count.
MPI4_LIBRARY = """
int MPI_File_open(long ranks, const char* path, int mode, long info, int* file) { *file = 5; return 0; }
int MPI_File_close(int* file) { return 0; }
int MPI_File_preallocate(long file, long long bytes) { return 0; }
int MPI_File_delete(const char* path, long info) { return 0; }
int MPI_Type_size(long type, int* bytes) { *bytes = (int)type; return 0; }
int MPI_File_write_c(long file, const void* from, long long n, long type, void* status) { return 0; }
int MPI_File_read_at_all_c(long file, long at, void* to, long long n, long type, void* status) { return 0; }
int MPI_File_iwrite_at_c(long file, long at, const void* from, long long n, long type, void* request) { return 0; }
int MPI_File_read_all_begin_c(long file, void* to, long long n, long type) { return 0; }
"""
MPI4 = """
int MPI_File_open(long, const char*, int, long, int*);
int MPI_File_close(int*);
int MPI_File_preallocate(long, long long);
int MPI_File_delete(const char*, long);
int MPI_File_write_c(long, const void*, long long, long, void*);
int MPI_File_read_at_all_c(long, long, void*, long long, long, void*);
int MPI_File_iwrite_at_c(long, long, const void*, long long, long, void*);
int MPI_File_read_all_begin_c(long, void*, long long, long);
int main(int count, char** words) {
  int file = 0;
  long long many = 5000000000LL;
  return MPI_File_open(0, words[1], 0, 0, &file) | MPI_File_preallocate(file, many) | MPI_File_write_c(file, 0, many, 4, 0) | MPI_File_iwrite_at_c(file, 0, 0, many, 2, 0) |
         MPI_File_read_at_all_c(file, 0, 0, many, 8, 0) | MPI_File_read_all_begin_c(file, 0, many, 1) | MPI_File_close(&file) | MPI_File_delete(words[1], 0);
}
"""
HDF5 = """
#include <hdf5.h>
#define CHECK(call) if ((call) < 0) return __LINE__
int main(int count, char** words) {
  int numbers[100] = {0};
  double values[10] = {0};
  unsigned filters = 0;
  hsize_t points = 100, few = 10, begin = 0;
  hid_t file = H5Fcreate(words[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(1, &points, NULL), small = H5Screate_simple(1, &few, NULL), chunked = H5Pcreate(H5P_DATASET_CREATE);
  CHECK(H5Pset_chunk(chunked, 1, &points));
  hid_t set = H5Dcreate2(file, "set", H5T_NATIVE_INT, space, H5P_DEFAULT, chunked, H5P_DEFAULT);
  CHECK(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers));
  CHECK(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &begin, sizeof numbers, numbers));
  CHECK(H5Dread_chunk(set, H5P_DEFAULT, &begin, &filters, numbers));
  hid_t attribute = H5Acreate2(set, "attribute", H5T_NATIVE_DOUBLE, small, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Awrite(attribute, H5T_NATIVE_DOUBLE, values));
  CHECK(H5Aread(attribute, H5T_NATIVE_DOUBLE, values));
  CHECK(H5Aread(attribute, H5T_NATIVE_DOUBLE, values));
  CHECK(H5Aclose(attribute));
  /* The errors of a failed call stay until the program's next call. */
  CHECK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  if (H5Aread(attribute, H5T_NATIVE_DOUBLE, values) >= 0 || H5Eget_num(H5E_DEFAULT) != 1) return __LINE__;
  CHECK(H5Dclose(set));
  return H5Fclose(file) < 0;
}
"""


class FewProgramsCall(ProgramsTest):
    def build(self, name, text, *flags, compiler="cc"):
        (self.folder / f"{name}.c").write_text(text, encoding="utf-8")
        subprocess.run([compiler, "-w", "-o", name, f"{name}.c", *flags], cwd=self.folder, check=True)
        return self.folder / name

    def counts(self, files, path, layer, *names):
        return [files[str(path)]["layers"].get(layer, {}).get(name, 0) for name in names]

    @needs("cc")
    def test_files_whose_names_libc_chooses(self):
        _, files, _ = self.profiled([self.build("names", CHOSEN_NAMES)], cwd=self.folder)
        for name, moved in (("plain", 4), ("flags", 6)):
            (path,) = self.folder.glob(f"{name}-*.end")
            self.assertEqual(self.counts(files, path, "posix", "opens", "writes", "bytes_written"), [1, 1, moved])
        (path,) = self.folder.glob("folder-*")
        self.assertEqual(files[str(path)]["other"], 1)

    @needs("mpicc")
    def test_mpi(self):
        path = self.folder / "mpi.data"
        _, files, _ = self.profiled([self.build("mpi", MPI, compiler="mpicc"), path], env=os.environ | {"OMPI_MCA_btl": "self"}, timeout=60)
        self.assertEqual(self.counts(files, path, "mpiio", "opens", "seeks", "bytes_read", "bytes_written"), [1, 1, 1000, 1000])

    @needs("cc")
    def test_the_long_counts_of_mpi_4(self):
        self.build("libmpi4.so", MPI4_LIBRARY, "-shared", "-fPIC")
        program, path = self.build("mpi4", MPI4, "-L.", "-l:libmpi4.so", "-Wl,-rpath,$ORIGIN"), self.folder / "mpi4.data"
        _, files, _ = self.profiled([program, path])
        self.assertEqual(self.counts(files, path, "mpiio", "opens", "reads", "writes", "bytes_read", "bytes_written"),
                         [1, 2, 2, 9 * 5000000000, 6 * 5000000000])
        session, trace = self.folder / "traced", self.folder / "trace.json"
        subprocess.run([PENSTOCK, "profile", "run", "--trace", "-o", session, "--", program, path], capture_output=True, check=True)
        subprocess.run([PENSTOCK, "profile", "export", "--to", "chrome", session, "-o", trace], capture_output=True, check=True)
        calls = [event["name"] for event in json.loads(trace.read_text())["traceEvents"]
                 if event.get("cat") == "mpiio" and event["args"].get("file") == str(path)]
        self.assertEqual(calls, ["open", "other", "write", "write", "read", "read", "close", "other"])

    @needs("cc", "pkg-config")
    def test_hdf5(self):
        for package in ("hdf5-serial", "hdf5"):
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True, check=False)
            if flags.returncode == 0:
                break
        else:
            self.skipTest("no HDF5 to build with here")
        path = self.folder / "data.h5"
        _, files, _ = self.profiled([self.build("hdf5", HDF5, *flags.stdout.split()), path])
        self.assertEqual(self.counts(files, path, "hdf5", "opens", "reads", "writes", "bytes_read", "bytes_written"),
                         [1, 3, 3, 400 + 2 * 80, 2 * 400 + 80])


if __name__ == "__main__":
    main()
