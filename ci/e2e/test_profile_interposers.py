#!/usr/bin/env python3
"""Programs that have another library between us and libc: they run as without us, and each call counts once."""

import itertools
import json
import os
import shutil
import subprocess
import unittest

from penstock_cli import BUILD, PENSTOCK, SOURCE, main
from profile_case import LIBRARY, ProgramsTest, needs

PROGRAMS = BUILD / "profiling" / "interpose"
CALLS = PROGRAMS / "penstock_profile_calls"
LINKED = PROGRAMS / "penstock_profile_calls_linked"
MADE_OF_SYSCALL = PROGRAMS / "libpenstock_profile_made_of_syscall.so"
COUNTS = {"opens": 1, "closes": 2, "syncs": 1, "seeks": 1, "reads": 3, "writes": 6, "bytes_read": 300, "bytes_written": 600, "mmaps": 2, "mapped_bytes": 1200}
STREAMS = PROGRAMS / "penstock_profile_streams"
BAD_POINTERS = PROGRAMS / "penstock_profile_bad_pointers"
MADE_OF_CALLS = PROGRAMS / "libpenstock_profile_made_of_calls.so"
ALLOCATORS = ("libtcmalloc.so.4", "libtcmalloc_debug.so.4", "libtcmalloc_and_profiler.so.4", "libtcmalloc_minimal.so.4", "libjemalloc.so.2",
              "libmimalloc.so.2", "libmimalloc.so.2.0")
# Writes a line to a file of its own for each call, by other functions that are watched, as tracing libraries do.
LOGGER = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static __thread int inside;
static FILE* lines;
static void note(const char* name) {
  if (inside++ == 0) {
    struct stat about;
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", getenv("LOGGER_FILE"), getpid());
    if (lines == NULL) lines = fopen(path, "a");
    if (lines == NULL || fprintf(lines, "%s\\n", name) < 0 || fflush(lines) != 0 || stat(path, &about) != 0) abort();
    int fd = open(path, O_RDONLY);
    char byte;
    if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0 || read(fd, &byte, 1) != 1 || close(fd) != 0) abort();
  }
  --inside;
}
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define LOGGED(result, name, parameters, arguments) result name parameters { note(#name); return NEXT(name) arguments; }
LOGGED(ssize_t, read, (int fd, void* out, size_t n), (fd, out, n))
LOGGED(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n))
LOGGED(ssize_t, pread, (int fd, void* out, size_t n, off_t at), (fd, out, n, at))
LOGGED(int, close, (int fd), (fd))
LOGGED(off_t, lseek, (int fd, off_t at, int how), (fd, at, how))
LOGGED(int, fsync, (int fd), (fd))
LOGGED(int, dup, (int fd), (fd))
LOGGED(FILE*, fopen, (const char* path, const char* mode), (path, mode))
LOGGED(int, fclose, (FILE* file), (file))
LOGGED(char*, fgets, (char* out, int room, FILE* file), (out, room, file))
LOGGED(size_t, fwrite, (const void* from, size_t size, size_t n, FILE* file), (from, size, n, file))
int openat(int at, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  note("openat");
  return NEXT(openat)(at, path, flags, mode);
}
"""
OF_CHILD = {"opens": 1, "reads": 0, "writes": 1, "bytes_written": 10, "mmaps": 0}


@unittest.skipIf(not CALLS.exists(), "this build has no such programs")
class MadeOfSyscall(ProgramsTest):
    """Functions that are made of syscall() come back to us: what they ask for goes to the kernel, and counts once."""

    def counts_once(self, program, **environment):
        data = self.folder / "data"
        alone = subprocess.run([program, data], env=os.environ | environment, check=False, timeout=60)
        self.assertEqual(alone.returncode, 0)
        session, files, _ = self.profiled([program, data], env=os.environ | environment, timeout=60)
        row, child = files[str(data)], files[f"{data}.child"]
        self.assertEqual({name: row[name] for name in COUNTS}, COUNTS)
        self.assertEqual({name: child[name] for name in OF_CHILD}, OF_CHILD)
        self.assertEqual((session["processes"], session["dropped"], session["problems"]), (2, 0, []))
        self.assertEqual((session["bytes_read"], session["bytes_written"]), (300, 610))

    def test_with_libc_alone(self):
        self.counts_once(CALLS)

    def test_preloaded(self):
        self.counts_once(CALLS, LD_PRELOAD=str(MADE_OF_SYSCALL))

    def test_linked(self):
        self.counts_once(LINKED)

    def test_allocators_of_others(self):
        """tcmalloc has an mmap() that is made of syscall(), and its own counts nothing that the program did not do."""
        for name in ALLOCATORS:
            with self.subTest(library=name):
                tried = subprocess.run(["true"], env=os.environ | {"LD_PRELOAD": name}, capture_output=True, check=False)
                if tried.stderr:  # the loader's warning
                    self.skipTest(f"no {name} here")
                self.counts_once(CALLS, LD_PRELOAD=name)
                if not shutil.which("c++"):
                    continue
                linked = self.folder / f"linked-{name}"
                subprocess.run(["c++", "-std=c++20", "-o", linked, SOURCE / "profiling" / "interpose" / "matrix" / "call_functions.cpp",
                                "-Wl,--no-as-needed", f"-l:{name}"], check=True)
                self.counts_once(linked)


@unittest.skipIf(not STREAMS.exists(), "this build has no such programs")
class MadeOfOtherCalls(ProgramsTest):
    """What a function of another library calls to do its work is part of that call: only the outer call counts."""

    def rows(self, **environment):
        data = self.folder / "data"
        session, files, _ = self.profiled([STREAMS, data], env=os.environ | environment, timeout=60)
        self.assertEqual((session["dropped"], session["problems"]), (0, []))
        self.assertEqual(session["coverage"]["rchar"]["seen"], session["coverage"]["rchar"]["kernel"])
        self.assertEqual(session["coverage"]["wchar"]["seen"], session["coverage"]["wchar"]["kernel"])
        return {name: value for name, value in files[str(data)].items() if isinstance(value, int) and not name.endswith("_ns")}

    def test_the_same_counts_with_the_library(self):
        alone = self.rows()
        self.assertEqual({name: alone[name] for name in ("opens", "closes", "seeks", "writes", "bytes_written", "bytes_read")},
                         {"opens": 4, "closes": 4, "seeks": 0, "writes": 100, "bytes_written": 1000, "bytes_read": 2500})
        self.assertEqual(self.rows(LD_PRELOAD=str(MADE_OF_CALLS)), alone)


@unittest.skipIf(not STREAMS.exists(), "this build has no such programs")
class InBothOrders(ProgramsTest):
    """Another library that calls watched functions inside its own may come before us or after us: nothing hangs, and no byte is lost."""

    def counts(self, program, first, data, **environment):
        """The report's row of the file. `first` is preloaded before the profiler, the environment's LD_PRELOAD after it."""
        if first is None:
            session, files, _ = self.profiled([program, data], env=os.environ | environment, timeout=60)
        else:
            folder = self.folder / "first"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            preload = {"LD_PRELOAD": f"{first} {LIBRARY}", "PENSTOCK_PROFILE_SESSION": str(folder)}
            done = subprocess.run([program, data], env=os.environ | environment | preload, capture_output=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            report = subprocess.run([PENSTOCK, "profile", "report", "--json", "--all", folder], capture_output=True, text=True, check=True)
            session, *files = map(json.loads, report.stdout.splitlines())
            files = {row["path"]: row for row in files if row["kind"] == "file"}
        self.assertEqual((session["dropped"], session["problems"]), (0, []))
        return {name: files[str(data)][name] for name in ("opens", "closes", "bytes_read", "bytes_written")}

    @needs("cc")
    def test_the_same_bytes(self):
        source, logger = self.folder / "logger.c", self.folder / "liblogger.so"
        source.write_text(LOGGER, encoding="utf-8")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", logger, source, "-ldl"], check=True)
        for program, library in itertools.product((CALLS, STREAMS), (logger, MADE_OF_SYSCALL, MADE_OF_CALLS)):
            data, log = self.folder / "data", self.folder / "log"
            alone = self.counts(program, None, data)
            for order in ("after us", "before us"):
                with self.subTest(program=program.name, library=library.name, order=order):
                    environment = {"LOGGER_FILE": str(log)} | ({"LD_PRELOAD": str(library)} if order == "after us" else {})
                    self.assertEqual(self.counts(program, library if order == "before us" else None, data, **environment), alone)
                    logs = [path for path in self.folder.glob("log.*") if path.stat().st_size]
                    self.assertEqual(bool(logs), library == logger)
                    for path in logs:
                        path.unlink()


@unittest.skipIf(not BAD_POINTERS.exists(), "this build has no such programs")
class BadPointers(ProgramsTest):
    def test_each_call_fails_as_without_us(self):
        alone = subprocess.run([BAD_POINTERS], capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
        _, _, output = self.profiled([BAD_POINTERS], timeout=120)
        self.assertGreater(len(alone), 110)
        self.assertEqual(output.decode().splitlines(), alone)


if __name__ == "__main__":
    main()
