#!/usr/bin/env python3
"""Programs that give up rights, change their root or their namespaces, or restrict their system calls, under the profiler: they behave as
without it, and what they do is either recorded or named as missing. And coverage where processes are killed or have other pids."""

import errno
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from penstock_cli import SANITIZED, main
from profile_case import ProgramsTest, has, needs

NOBODY = 65534
BYTES = 50_000
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int file = -1;
static int open_later(void) { return file >= 0 ? file : open("dropped", O_CREAT | O_WRONLY | O_TRUNC, 0644); }

// Kills the process at any system call but write, openat, close and exit.
static void restrict_calls(int by_syscall) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_write, 3, 0), BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_exit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_exit_group, 1, 0), BPF_STMT(BPF_RET, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(9);
  if (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(8);
}

static int change(const char* how) {
  if (!strcmp(how, "none")) return 0;
  if (!strcmp(how, "setuid")) return setuid(65534);
  if (!strcmp(how, "syscall-setuid")) return syscall(SYS_setuid, 65534);
  if (!strcmp(how, "setresuid")) return setresuid(65534, 65534, 65534);
  if (!strcmp(how, "groups")) return setgroups(0, NULL) || setgid(65534) || setreuid(65534, 65534);
  if (!strcmp(how, "chroot")) return chroot(".");
  if (!strcmp(how, "unshare")) return unshare(CLONE_NEWNS);
  file = open("dropped", O_CREAT | O_WRONLY | O_TRUNC, 0644);
  if (!strcmp(how, "strict")) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
  if (!strcmp(how, "filter")) restrict_calls(0);
  if (!strcmp(how, "syscall-filter")) restrict_calls(1);
  return 0;
}

static int work(int count) {
  static char bytes[50000];
  for (int i = 0; i < count; ++i) {
    const int out = open_later();
    for (size_t done = 0; done < sizeof bytes; done += 5000)
      if (write(out, bytes + done, 5000) != 5000) return 2;
  }
  return 0;
}

// change HOW [fork]: forks a child that changes its rights before its first call; with "fork" the process itself changes, and then forks.
int main(int argc, char** argv) {
  const int changes_first = argc > 2;
  if (changes_first && change(argv[1])) return 7;
  if (fork() == 0) {
    if (!changes_first && change(argv[1])) _exit(7);
    const int code = work(1);
    syscall(SYS_exit, code);
  }
  int status = 0;
  wait(&status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}
"""


class RightsTest(ProgramsTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o777)

    def compiled(self, text=PROGRAM, name="change"):
        if not has("cc"):
            self.skipTest("no C compiler here")
        source = self.folder / f"{name}.c"
        source.write_text(text)
        subprocess.run(["cc", "-w", "-o", self.folder / name, source], check=True)
        return self.folder / name

    def watched(self, *words, **kwargs):
        """The session's line of the report and the files; the program prints what it prints without the profiler."""
        session, files, _ = self.profiled(words, quiet=True, cwd=self.folder, **kwargs)
        return session, files

    def written(self, files, name="dropped"):
        return sum(row["bytes_written"] for path, row in files.items() if path.endswith(f"/{name}"))


@unittest.skipIf(os.geteuid() != 0, "only root may give up root's rights")
class GivenUp(RightsTest):
    def test_a_child_that_changes_before_its_first_call_is_recorded(self):
        program = self.compiled()
        for how in ("none", "setuid", "syscall-setuid", "setresuid", "groups", "chroot", "unshare", "strict", "filter", "syscall-filter"):
            with self.subTest(how=how):
                (self.folder / "dropped").unlink(missing_ok=True)
                session, files = self.watched(program, how)
                self.assertEqual((self.folder / "dropped").stat().st_size, BYTES)
                self.assertEqual((session["processes"], self.written(files), session["unwatched"]), (2, BYTES, []))
                self.assertEqual(session["dropped"], 0)
                share = session["coverage"]["wchar"]
                self.assertTrue(share["fraction"] in (None, 1) or session["coverage"]["unknown_processes"], share)

    def test_a_child_of_a_process_that_has_changed_is_named(self):
        program = self.compiled()
        for how in ("setuid", "chroot"):
            with self.subTest(how=how):
                (self.folder / "dropped").unlink(missing_ok=True)
                session, files = self.watched(program, how, "fork")
                named = [(one["program"], one["forked"]) for one in session["unwatched"]]
                self.assertEqual(self.written(files) + BYTES * len(named), BYTES)
                self.assertLessEqual(set(named), {(str(program), True)})

    def test_a_long_life_after_the_rights_are_gone(self):
        script = (f"import os\nfor i in range(3): os.stat('.')\nos.setuid({NOBODY})\n"
                  "for i in range(4000):\n    fd = os.open(f'out/f{i}', os.O_CREAT | os.O_WRONLY); os.write(fd, b'12345'); os.close(fd)\n")
        (self.folder / "out").mkdir()
        (self.folder / "out").chmod(0o777)
        session, files = self.watched(sys.executable, "-S", "-c", script)
        self.assertEqual(sum(row["bytes_written"] for path, row in files.items() if "/out/f" in path), 20_000)
        self.assertEqual((session["dropped"], session["coverage"]["unknown_processes"]), (0, 0))

    def runs_as_another(self, words, **kwargs):
        (self.folder / "in").write_bytes(b"x" * BYTES)
        (self.folder / "in").chmod(0o644)
        plain = subprocess.run(list(map(str, words)), capture_output=True, check=False, cwd=self.folder, **kwargs)
        if plain.returncode != 0 or not (self.folder / "out").exists():
            self.skipTest(f"it does not work here: {plain.stderr.decode(errors='replace')}")
        (self.folder / "out").unlink()
        session, files = self.watched(*words, **kwargs)
        self.assertEqual((self.folder / "out").stat().st_size, BYTES)
        if self.written(files, "out") != BYTES:
            self.assertTrue(session["unwatched"], "it is neither recorded nor named")
        return session

    @needs("runuser")
    def test_runuser(self):
        self.runs_as_another(["runuser", "-u", "nobody", "--", "sh", "-c", "cat in > out"])

    @needs("su")
    def test_su(self):
        self.runs_as_another(["su", "-s", "/bin/sh", "nobody", "-c", "cat in > out"])

    @needs("setpriv")
    def test_setpriv(self):
        session = self.runs_as_another(["setpriv", f"--reuid={NOBODY}", "cp", "in", "out"])
        self.assertEqual([pathlib.Path(one["program"]).name for one in session["unwatched"]], ["cp"])

    @needs("chroot")
    def test_chroot(self):
        root = self.folder / "root"
        for program in ("/bin/cp", "/bin/sh"):
            linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split()
            for path in [program, *(word for word in linked if word.startswith("/"))]:
                (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, root / path[1:])
        (root / "in").write_bytes(b"x" * BYTES)
        session, _ = self.watched("chroot", root, "/bin/sh", "-c", "/bin/cp /in /out; true")
        self.assertEqual((root / "out").stat().st_size, BYTES)
        self.assertTrue(session["unwatched"])


class Coverage(RightsTest):
    def counted(self, session, way="wchar"):
        coverage = session["coverage"]
        if coverage["unknown_processes"]:
            return None
        return coverage[way]["fraction"]

    def copies(self):
        (self.folder / "in").write_bytes(os.urandom(100_000))
        return "for i in 1 2 3 4 5 6 7 8 9 10; do cp in out; done"

    @needs("bash")
    def test_a_killed_shell_that_had_waited_for_its_children(self):
        for signal in ("KILL", "TERM"):
            with self.subTest(signal=signal):
                inner = f"{self.copies()}; kill -{signal} \\$\\$"
                session, _ = self.watched("bash", "-c", f'exec 2> /dev/null; bash -c "{inner}"; echo done')
                share = session["coverage"]["wchar"]
                self.assertGreaterEqual(share["seen"], 1_000_000)
                self.assertLess(share["kernel"] - share["seen"], 10_000, share)

    def test_a_forked_child_that_cannot_make_its_file_is_named(self):
        self.copies()
        for limit, reason in (("RLIMIT_FSIZE, (1000, 1000)", errno.EFBIG), ("RLIMIT_AS, (1 << 26, 1 << 26)", errno.ENOMEM)):
            if SANITIZED and "AS" in limit:
                continue  # the runtime of a sanitizer needs terabytes of addresses
            with self.subTest(limit=limit):
                script = (f"import os, resource\nif os.fork() == 0:\n    resource.setrlimit(resource.{limit})\n"
                          "    os.read(os.open('in', os.O_RDONLY), 1000); os._exit(0)\nos.wait()\n")
                session, _ = self.watched(sys.executable, "-S", "-c", script)
                [child] = session["unwatched"]
                self.assertEqual((session["processes"], child["forked"]), (1, True))
                self.assertIn(os.strerror(reason), child["reason"])

    def test_a_python_worker_that_aborts(self):
        self.copies()
        script = ("import os, subprocess\nif os.fork() == 0:\n    subprocess.run(['cp', 'in', 'out']); os.abort()\nos.wait()\n")
        session, _ = self.watched(sys.executable, "-S", "-c", script)
        self.assertIn(self.counted(session), (None, 1))

    @needs("unshare")
    def test_pid_namespaces(self):
        if subprocess.run(["unshare", "-pf", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no PID namespace can be made here")
        for options in (["-pf"], ["-pf", "--mount-proc"]):
            with self.subTest(options=options):
                session, files = self.watched("unshare", *options, "sh", "-c", f"{self.copies()}; true")
                self.assertEqual(self.written(files, "out"), 1_000_000)
                self.assertEqual(session["unwatched"], [])
                self.assertIn(self.counted(session), (None, 1))

    @needs("unshare")
    def test_namespaces_with_the_same_pids_are_not_merged(self):
        if subprocess.run(["unshare", "-pf", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no PID namespace can be made here")
        self.copies()
        one = "unshare -pf --mount-proc sh -c 'cp in out$0; true' {} &"
        session, files = self.watched("sh", "-c", "".join(one.format(i) for i in range(4)) + " wait")
        self.assertEqual(sum(row["bytes_written"] for path, row in files.items() if "/out" in path), 400_000)
        self.assertGreaterEqual(session["processes"], 1 + 4 * 2)

    def test_what_libc_writes_at_exit(self):
        program = self.compiled('#include <stdio.h>\nint main(void) { for (int i = 0; i < 300; i++) printf("line %d\\n", i); return 0; }\n', "lines")
        session, files = self.watched("sh", "-c", f"{program} > out; true")
        size = (self.folder / "out").stat().st_size
        self.assertEqual(self.written(files, "out"), size)
        self.assertEqual(session["coverage"]["wchar"], {"kernel": size, "seen": size, "fraction": 1})

    def test_a_buffer_that_a_child_inherits(self):
        for end in ("fclose(f)", "fflush(f), _exit(0)", "exit(0)", 'fprintf(f, "ab"), exit(0)'):
            with self.subTest(end=end):
                text = ("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <sys/wait.h>\n"
                        'int main(void) { FILE* f = fopen("d", "w"); fwrite("hello", 1, 6, f); int c = fork(); if (c == 0) { ' + end +
                        "; return 0; } wait(0); return 0; }\n")
                session, files = self.watched(self.compiled(text, "inherits"))
                size = (self.folder / "d").stat().st_size
                self.assertGreaterEqual(size, 12)
                self.assertEqual(self.written(files, "d"), size)
                self.assertIn(session["coverage"]["wchar"]["fraction"], (None, 1))


if __name__ == "__main__":
    main()
