#!/usr/bin/env python3
"""`penstock profile run` of programs that start others which cannot load the library, of programs with clocks that stand still, of programs
with the thread sanitizer, and of programs that take results of libaio out of the ring themselves."""

import os
import pathlib
import shutil
import subprocess

from penstock_cli import PENSTOCK, main
from profile_case import ProgramsTest

SHOW = """#include <stdio.h>
#include <stdlib.h>
int main(void) { const char* p = getenv("LD_PRELOAD"); printf("%s\\n", p ? p : "none"); return 0; }
"""
EXECVEAT = """#define _GNU_SOURCE
#include <unistd.h>
#include <sys/syscall.h>
extern char** environ;
int main(int count, char** words) { (void)count; syscall(SYS_execveat, -100, words[1], words + 1, environ, 0); return 9; }
"""
FROZEN = """#include <time.h>
int clock_gettime(clockid_t c, struct timespec* t) { (void)c; t->tv_sec = 978307200; t->tv_nsec = 0; return 0; }
"""
THREADS = """#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void* work(void* number) {
  char name[64], data[4096] = {1};
  for (int i = 0; i < 20; ++i) {
    snprintf(name, sizeof name, "data-%ld-%d", (long)number, i);
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, sizeof data) != sizeof data || close(fd) != 0) return number;
  }
  return NULL;
}
int main(void) {
  for (int round = 0; round < 5; ++round) {
    pthread_t threads[4];
    for (long i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, (void*)(i + 1));
    for (int i = 0; i < 4; ++i) {
      void* failed = NULL;
      pthread_join(threads[i], &failed);
      if (failed) return 3;
    }
  }
  return 0;
}
"""
# Reads FILE in blocks of 4 KiB, two at a time, and takes the results out of the ring.
RING = """#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
struct ring { unsigned id, count, head, tail, magic, f1, f2, bytes; struct io_event events[]; };
int main(int count, char** words) {
  (void)count;
  static char data[2][4096];
  aio_context_t context = 0;
  int fd = open(words[1], O_RDONLY);
  if (fd < 0 || syscall(SYS_io_setup, 4, &context) != 0) return 77;
  struct ring* ring = (struct ring*)context;
  for (int round = 0; round < 500; ++round) {
    struct iocb blocks[2], *list[2] = {&blocks[0], &blocks[1]};
    memset(blocks, 0, sizeof blocks);
    for (int i = 0; i < 2; ++i) {
      blocks[i].aio_lio_opcode = IOCB_CMD_PREAD;
      blocks[i].aio_fildes = (unsigned)fd;
      blocks[i].aio_buf = (uint64_t)data[i];
      blocks[i].aio_nbytes = 4096;
      blocks[i].aio_offset = (2 * round + i) * 4096LL;
    }
    if (syscall(SYS_io_submit, context, 2, list) != 2) return 3;
    for (int got = 0; got < 2;) {
      unsigned head = ring->head;
      if (head == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) continue;
      if (ring->events[head].res < 0) return 4;
      __atomic_store_n(&ring->head, (head + 1) % ring->count, __ATOMIC_RELEASE);
      ++got;
    }
  }
  if (words[2]) syscall(SYS_io_destroy, context);
  return 0;
}
"""


class Foreign(ProgramsTest):
    def build(self, name, text, *flags, compiler="cc"):
        source = self.folder / f"{name}.c"
        source.write_text(text)
        words = [compiler, "-o", self.folder / name, source, *flags]
        if shutil.which(compiler) is None or subprocess.run(words, capture_output=True, check=False).returncode != 0:
            return None
        return self.folder / name

    def test_programs_that_cannot_load_the_library(self):
        at = self.build("at", EXECVEAT)
        others = {"static": self.build("static", SHOW, "-static"), "32": self.build("bits32", SHOW, "-m32"),
                  "musl": self.build("musl", SHOW, compiler="musl-gcc")}
        others = {name: path for name, path in others.items() if path is not None}
        if not others:
            self.skipTest("no compiler for such programs here")
        for name, path in [*others.items()]:
            script = self.folder / f"script-{name}"
            script.write_text(f"#!{path}\n")
            script.chmod(0o755)
            others[f"script-{name}"] = script
        for name, path in others.items():
            python = "import subprocess; subprocess.run(['{}'], check=True)"
            for words in (["sh", "-c", f"{path}; true"], ["sh", "-c", f"PATH={self.folder}; {path.name}; true"], [at, path],
                          ["python3", "-c", python.format(path)]):
                with self.subTest(name, words=words):
                    summary, _, out = self.profiled(words, quiet=True, cwd=self.folder)
                    # A static program does not look at LD_PRELOAD, but what it executes may.
                    self.assertEqual(out == b"none\n", "static" not in name)
                    self.assertEqual([pathlib.Path(one["program"]).name for one in summary["unwatched"]], [path.name])
                    reason = {"static": "static program", "32": "32-bit", "musl": "C library"}[name.removeprefix("script-")]
                    self.assertIn(reason, summary["unwatched"][0]["reason"])

    def test_a_program_with_little_memory(self):
        for limit in ("-d 300", "-v 4500"):
            with self.subTest(limit):
                words = ["sh", "-c", f"ulimit {limit}; cp /etc/hostname {self.folder}/copied"]
                if subprocess.run(words, check=False, capture_output=True).returncode != 0:
                    continue  # the program cannot run with so little
                summary, _, _ = self.profiled(words, quiet=True)
                [program] = summary["unwatched"]
                self.assertEqual(pathlib.Path(program["program"]).name, "cp")
                self.assertIn("memory", program["reason"])

    def test_a_program_that_gains_rights(self):
        if os.geteuid() != 0 or os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("no program can gain rights here")
        gains = self.folder / "gains"
        shutil.copy(shutil.which("true"), gains)
        os.chown(gains, 65534, -1)
        gains.chmod(0o4755)
        for words in (["sh", "-c", f"{gains}; true"], ["python3", "-c", f"import os; os.waitpid(os.posix_spawn('{gains}', ['gains'], os.environ), 0)"]):
            with self.subTest(words):
                summary, _, _ = self.profiled(words, quiet=True)
                [program] = summary["unwatched"]
                self.assertEqual(program["program"], str(gains))
                self.assertIn("gains rights", program["reason"])

    def test_a_program_for_another_processor(self):
        program = self.folder / "other"
        head = bytearray(pathlib.Path(shutil.which("true")).read_bytes())
        head[18:20] = (183 if head[18] != 183 else 62).to_bytes(2, "little")
        program.write_bytes(head)
        program.chmod(0o755)
        done = subprocess.run([PENSTOCK, "profile", "run", "-o", self.folder / "s", "--", program], capture_output=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_clock_that_stands_still(self):
        library = self.build("frozen.so", FROZEN, "-shared", "-fPIC")
        data = self.folder / "data"
        data.write_bytes(os.urandom(1 << 20))
        for clock in ("tsc", "monotonic"):
            with self.subTest(clock):
                _, files, out = self.profiled(["dd", f"if={data}", "bs=4k"],
                                              env=os.environ | {"LD_PRELOAD": str(library), "PENSTOCK_PROFILE_CLOCK": clock})
                self.assertEqual(out, data.read_bytes())
                self.assertEqual(files[str(data)]["bytes_read"], 1 << 20)
                self.assertGreater(files[str(data)]["read_time_s"], 0)

    def test_thread_sanitizer(self):
        program = self.build("threads", THREADS, "-g", "-fsanitize=thread", "-pthread")
        if program is None or subprocess.run([program], cwd=self.folder, capture_output=True, check=False).returncode != 0:
            self.skipTest("no thread sanitizer here")
        _, files, _ = self.profiled([program], quiet=True, cwd=self.folder)
        self.assertEqual(sum(row["bytes_written"] for path, row in files.items() if "/data-" in path), 5 * 4 * 20 * 4096)

    def test_results_that_the_program_takes_out_of_the_ring(self):
        program = self.build("ring", RING)
        data = self.folder / "data"
        data.write_bytes(bytes(999 * 4096 + 100))
        if subprocess.run([program, data], check=False).returncode == 77:
            self.skipTest("no asynchronous I/O of the kernel here")
        for words in ([], ["destroy"]):
            with self.subTest(words=words):
                _, files, _ = self.profiled([program, data, *words])
                self.assertEqual((files[str(data)]["bytes_read"], files[str(data)]["reads"]), (999 * 4096 + 100, 1000))


if __name__ == "__main__":
    main()
