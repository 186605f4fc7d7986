#!/usr/bin/env python3
"""Programs whose libraries replace what the profiler calls itself, programs that cannot be recorded, and calls after the last count: they run
as without the profiler, what is not recorded is named, and coverage is never more than all."""

import errno
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from penstock_cli import PENSTOCK, main
from profile_case import ProgramsTest, needs
from profile_serve_case import state

HEADERS = r"""
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static int put(const char* name, int count) {
  static char bytes[60000];
  const int out = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  const int done = write(out, bytes, count);
  close(out);
  return done == count ? 0 : 1;
}
static int ended(void) { int status = 0; wait(&status); return status; }
"""
# Found by RTLD_NEXT, the next function after this library is the profiler's, if this library is loaded first.
OWN_DLSYM = """
void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
  for (const char* version[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}, **at = version; !real && at != version + 3; ++at)
    real = dlvsym(RTLD_NEXT, "dlsym", *at);
  return real(handle, name);
}
"""
# As libfakechroot's: changes the names in place, which are in memory that may not be written.
OWN_ITERATE = """
static int (*visitor)(struct dl_phdr_info*, size_t, void*);
static int visit(struct dl_phdr_info* info, size_t bytes, void* context) {
  ((char*)info->dlpi_phdr)[0] = 0;
  return visitor(info, bytes, context);
}
int dl_iterate_phdr(int (*given)(struct dl_phdr_info*, size_t, void*), void* context) {
  int (*real)(void*, void*) = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  visitor = given;
  return real(visit, context);
}
"""
WORK = r"""
int main(void) {
  if (put("one", 5000)) return 1;
  FILE* file = fopen("two", "w");
  fputs("hello", file);
  fclose(file);
  if (fork() == 0) _exit(put("three", 300));
  if (ended()) return 2;
  if (fork() == 0) { execlp("cp", "cp", "one", "four", NULL); _exit(9); }
  return ended() ? 3 : 0;
}
"""
WRITTEN = {"one": 5000, "two": 5, "three": 300, "four": 5000}


@needs("cc")
class LostProgramsTest(ProgramsTest):
    def compiled(self, text, name, *flags):
        source = self.folder / f"{name}.c"
        source.write_text(HEADERS + text)
        subprocess.run(["cc", "-w", "-O1", "-o", self.folder / name, source, *flags, "-ldl", "-lrt", "-pthread"], check=True)
        return self.folder / name

    def watched(self, *words, **kwargs):
        session, files, _ = self.profiled(words, quiet=True, cwd=self.folder, timeout=100, **kwargs)
        written = {pathlib.Path(path).name: row["bytes_written"] for path, row in files.items() if row["bytes_written"]}
        for way in ("rchar", "wchar"):
            counts = session["coverage"][way]
            self.assertLessEqual(counts["seen"], counts["kernel"], counts)
        return session, written


class OtherFunctions(LostProgramsTest):
    """Preloaded libraries that replace functions of the loader, before and after the profiler in LD_PRELOAD."""

    def runs_the_same(self, library):
        program = self.compiled(WORK, "work")
        for words in ([program], ["sh", "-c", f'LD_PRELOAD="{library} $LD_PRELOAD" {program}'],
                      ["sh", "-c", f'LD_PRELOAD="$LD_PRELOAD {library}" {program}']):
            with self.subTest(words=words):
                environment = {"LD_PRELOAD": str(library)} if words == [program] else {}
                session, written = self.watched(*words, env=os.environ | environment)
                self.assertEqual({name: written.get(name) for name in WRITTEN}, WRITTEN)
                self.assertEqual((session["unwatched"], session["dropped"]), ([], 0))

    def test_another_dlsym(self):
        self.runs_the_same(self.compiled(OWN_DLSYM, "libdlsym.so", "-shared", "-fPIC"))

    def test_another_dl_iterate_phdr(self):
        self.runs_the_same(self.compiled(OWN_ITERATE, "libiterate.so", "-shared", "-fPIC"))


class CountedOnce(LostProgramsTest):
    def test_lists_of_requests_whose_memory_is_used_again(self):
        """The requests are on a stack that is overwritten before the program ends, and their results are never asked for."""
        program = self.compiled(r"""
static void overwrite(void) { volatile char bytes[20000]; for (int i = 0; i < 20000; ++i) bytes[i] = 0x7f; }
static void start(int mode, const char* name) {
  static char bytes[1000];
  struct aiocb requests[3], *list[3];
  memset(requests, 0, sizeof requests);
  for (int i = 0; i < 3; ++i) {
    requests[i].aio_fildes = open(name, O_CREAT | O_WRONLY, 0644);
    requests[i].aio_buf = bytes;
    requests[i].aio_nbytes = 1000;
    requests[i].aio_offset = i * 1000;
    requests[i].aio_lio_opcode = LIO_WRITE;
    list[i] = requests + i;
  }
  lio_listio(mode, list, 3, NULL);
  for (int i = 0; i < 3 && mode == LIO_NOWAIT; ++i)
    for (const struct aiocb* one = requests + i; aio_suspend(&one, 1, NULL) != 0;) {}
}
int main(void) { start(LIO_WAIT, "waited"); start(LIO_NOWAIT, "suspended"); overwrite(); return 0; }
""", "lists")
        session, written = self.watched(program)
        self.assertEqual(written["waited"], 3000)
        self.assertIn(written.get("suspended", 0), (0, 1000, 2000, 3000))
        self.assertLessEqual(session["bytes_written"], 6000)

    def test_calls_of_the_last_handlers(self):
        """Handlers of exit() and quick_exit(), and destructors: some of them run after the profiler has read the kernel's numbers."""
        text = r"""
static void late(void) { put("late", 333); }
__attribute__((destructor)) static void last(void) { put("last", 222); }
int main(void) { at_quick_exit(late); atexit(late); put("main", 1); ENDING }
"""
        for name, ending, expected in (("exits", "return 0;", {"main": 1, "late": 333, "last": 222}),
                                       ("quick", "quick_exit(0);", {"main": 1, "late": 333})):
            with self.subTest(ending=ending):
                session, written = self.watched(self.compiled(text.replace("ENDING", ending), name))
                self.assertEqual(written, expected)
                self.assertEqual(session["coverage"]["wchar"]["seen"], sum(expected.values()))
                self.assertEqual(session["coverage"]["wchar"]["kernel"], sum(expected.values()))


class Named(LostProgramsTest):
    """A program that cannot make its file is named, however it was started."""

    def lost(self, text, name="lost", **kwargs):
        session, _ = self.watched(self.compiled(text, name), **kwargs)
        self.assertTrue(session["unwatched"], session)
        return [(pathlib.Path(row["program"]).name, row["forked"], row["reason"]) for row in session["unwatched"]]

    @unittest.skipIf(os.geteuid() != 0, "only root may give up root's rights")
    def test_vfork_that_gives_up_rights(self):
        (program, forked, _), = self.lost("int main(void) { if (vfork() == 0) { setuid(65534); execlp(\"true\", \"true\", NULL); _exit(9); } return ended() != 0; }")
        self.assertEqual((program, forked), ("true", False))

    def test_a_child_with_few_addresses(self):
        (program, forked, reason), = self.lost("""int main(void) {
  if (fork() == 0) { struct rlimit limit = {1 << 20, 1 << 20}; setrlimit(RLIMIT_AS, &limit); _exit(put("small", 6000)); }
  return ended() != 0; }""")
        self.assertEqual((program, forked), ("lost", True))
        self.assertIn(os.strerror(errno.ENOMEM), reason)

    def test_a_program_with_small_files(self):
        """The program that the child executes inherits the limit."""
        (_, forked, reason), = self.lost("""int main(void) {
  if (fork() == 0) { struct rlimit limit = {60000, 60000}; setrlimit(RLIMIT_FSIZE, &limit); execlp("true", "true", NULL); _exit(9); }
  return ended() != 0; }""")
        self.assertTrue(forked)
        self.assertIn(os.strerror(errno.EFBIG), reason)

    def test_a_session_that_is_moved(self):
        (_, forked, reason), = self.lost("""int main(void) {
  put("first", 10);
  rename("session", "elsewhere");
  if (fork() == 0) { execlp("true", "true", NULL); _exit(9); }
  const int status = ended();
  return rename("elsewhere", "session") || status; }""")
        self.assertTrue(forked)
        self.assertIn(os.strerror(errno.ENOENT), reason)

    def test_shells_of_libc_without_the_library(self):
        found = self.lost("""int main(void) {
  unsetenv("LD_PRELOAD");
  const int failed = system("true") || pclose(popen("true", "r"));
  return failed; }""")
        self.assertEqual([row[:2] for row in found], [("sh", False)] * 2)
        self.assertTrue(all("system()" in reason for _, _, reason in found), found)
        (program, forked, reason), = self.lost("""int main(void) {
  if (fork() == 0) { unsetenv("LD_PRELOAD"); _exit(system("true") != 0); }
  return ended() != 0; }""")
        self.assertEqual((program, forked, "system()" in reason), ("sh", False, True))

    def test_shells_of_libc_with_the_library_are_recorded(self):
        session, written = self.watched(self.compiled('int main(void) { return system("echo hello > said"); }', "shell"))
        self.assertEqual((session["unwatched"], written), ([], {"said": 6}))


class WaitsBeforeItsFirstCall(LostProgramsTest):
    def test_a_forked_child_that_has_no_file_yet(self):
        program = self.compiled("""int main(void) {
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, NULL);
  const int child = fork();
  if (child != 0) { char text[20]; const int bytes = sprintf(text, "%d", child); int fd = open("pid", O_CREAT | O_WRONLY, 0600); return write(fd, text, bytes) != bytes; }
  int got;
  sigwait(&usr1, &got);
  _exit(put("late", 777)); }""", "waits")

        def ask(*words):
            return subprocess.run([PENSTOCK, "profile", *words], cwd=self.folder, capture_output=True, text=True, check=True).stdout

        def session():
            return json.loads(ask("report", "session", "--json").splitlines()[0])

        with open(self.folder / "said", "w", encoding="utf-8") as said:
            subprocess.run([PENSTOCK, "profile", "run", "-o", "session", "--", program], cwd=self.folder, check=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=said)
        child = int((self.folder / "pid").read_text())
        self.addCleanup(subprocess.run, ["kill", "-KILL", str(child)], check=False, stderr=subprocess.DEVNULL)
        self.assertEqual((session()["processes"], session()["waiting_children"]), (1, 1))
        for text in ((self.folder / "said").read_text(), ask("status", "session"), ask("report", "session")):
            self.assertIn("1 forked child is running", text)
        os.kill(child, signal.SIGUSR1)
        while state(child) not in ("Z", ""):
            time.sleep(0.01)
        self.assertEqual((session()["processes"], session()["waiting_children"]), (2, 0))
        self.assertEqual((self.folder / "late").stat().st_size, 777)


class WaitsForASignal(LostProgramsTest):
    """Attach to a program that waits in pause() or sigsuspend(): it is not woken, and its signal mask stays."""

    def test_attach(self):
        if os.uname().machine != "x86_64":
            self.skipTest("attach is for x86-64")
        program = self.compiled(r"""
#include <signal.h>
static volatile int signals;
static void count(int number) { ++signals; }
int main(int argc, char** argv) {
  sigset_t none, blocked, now;
  sigemptyset(&none);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  signal(SIGUSR1, count);
  if (argc > 1) sigprocmask(SIG_BLOCK, &blocked, NULL);
  int waits = 0;
  write(1, "w", 1);
  for (; signals == 0; ++waits) argc > 1 ? sigsuspend(&none) : pause();
  sigprocmask(SIG_BLOCK, NULL, &now);
  printf("%d %d", waits, sigismember(&now, SIGUSR1));
  return put("woken", 700);
}
""", "waits")
        for words, expected in (([program], b"1 0"), ([program, "suspend"], b"1 1")):
            with self.subTest(words=words), subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE) as waiting:
                self.addCleanup(waiting.kill)
                session = self.folder / f"attached{len(words)}"
                self.assertEqual(waiting.stdout.read(1), b"w")
                call = pathlib.Path(f"/proc/{waiting.pid}/syscall")
                while call.read_text().split()[0] not in ("34", "130"):  # pause, rt_sigsuspend
                    time.sleep(0.01)
                done = subprocess.run([PENSTOCK, "profile", "attach", "-o", session, str(waiting.pid)], capture_output=True, text=True, check=False)
                waiting.send_signal(signal.SIGUSR1)
                self.assertEqual((done.returncode, waiting.wait(60), waiting.stdout.read()), (0, 0, expected), done.stderr)
                report = subprocess.run([PENSTOCK, "profile", "report", "--json", session], capture_output=True, text=True, check=True)
                self.assertEqual(json.loads(report.stdout.splitlines()[0])["bytes_written"], 700)


if __name__ == "__main__":
    main()
