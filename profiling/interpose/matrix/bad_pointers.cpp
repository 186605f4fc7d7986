// Makes calls with pointers to memory that the process does not have, each in a forked child, and prints what
// each one did: its result and errno, or the signal that ended it. The library must not change any line.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include <functional>

extern "C" {
int __open(const char* path, int flags, ...);
int __open64(const char* path, int flags, ...);
ssize_t __read(int fd, void* out, size_t bytes);
ssize_t __write(int fd, const void* data, size_t bytes);
ssize_t __pread64(int fd, void* out, size_t bytes, off64_t offset);
ssize_t __pwrite64(int fd, const void* data, size_t bytes, off64_t offset);
int __pipe(int ends[2]);
int __fcntl(int fd, int command, ...);
ssize_t __readlink_chk(const char* path, char* out, size_t bytes, size_t room);
ssize_t __readlinkat_chk(int at, const char* path, char* out, size_t bytes, size_t room);
}

namespace {

template <typename T>
T* bad(long offset = 0) {
  static char* const memory =
      static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return reinterpret_cast<T*>(offset < 0 ? -1L : reinterpret_cast<long>(memory) + offset);
}

void try_call(const char* name, const std::function<long()>& call) {
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    errno = 0;
    const long result = call();
    printf("%-28s %d %d\n", name, result < 0 ? -1 : result > 0 ? 1 : 0, result < 0 ? errno : 0);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) {
    printf("%-28s signal %d\n", name, WTERMSIG(status));
  }
}

long failed_if_null(const void* pointer) {
  return pointer == nullptr ? -1 : 1;
}

#define TRY(...) try_call(#__VA_ARGS__, [&]() -> long { return long(__VA_ARGS__); })

// NOLINTBEGIN(cppcoreguidelines-pro-type-vararg)
void try_names(int fd) {
  TRY(open(bad<char>(), O_RDONLY));
  TRY(open(bad<char>(-1), O_RDONLY));
  TRY(openat(fd, bad<char>(), O_RDONLY));
  TRY(open(nullptr, O_CREAT | O_WRONLY, 0600));
  TRY(creat(bad<char>(), 0600));
  TRY(syscall(SYS_openat, AT_FDCWD, bad<char>(), O_RDONLY));
  TRY(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", bad<open_how>(), sizeof(open_how)));
  TRY(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", bad<open_how>(-1), sizeof(open_how)));
  TRY(__open(bad<char>(), O_RDONLY));
  TRY(__open64(bad<char>(-1), O_RDONLY));
  TRY(open_by_handle_at(fd, bad<file_handle>(), O_RDONLY));
  TRY(syscall(SYS_open_by_handle_at, fd, bad<void>(), O_RDONLY));
  TRY(failed_if_null(fopen(bad<char>(), "r")));
  TRY(failed_if_null(opendir(bad<char>())));
  TRY(access(bad<char>(), R_OK));
  TRY(faccessat(AT_FDCWD, bad<char>(), R_OK, 0));
  TRY(unlink(bad<char>()));
  TRY(unlinkat(AT_FDCWD, bad<char>(), 0));
  TRY(remove(bad<char>()));
  TRY(rename(bad<char>(), "/nowhere/b"));
  TRY(rename("/nowhere/a", bad<char>()));
  TRY(renameat2(AT_FDCWD, bad<char>(), AT_FDCWD, bad<char>(), 0));
  TRY(link(bad<char>(), bad<char>()));
  TRY(linkat(AT_FDCWD, bad<char>(), AT_FDCWD, "/nowhere/b", 0));
  TRY(linkat(AT_FDCWD, "/etc/passwd", AT_FDCWD, bad<char>(), 0));
  TRY(symlink(bad<char>(), bad<char>()));
  TRY(symlinkat(bad<char>(), AT_FDCWD, "/nowhere/b"));
  TRY(symlinkat("a", AT_FDCWD, bad<char>()));
  TRY(syscall(SYS_symlinkat, bad<char>(), AT_FDCWD, bad<char>()));
  TRY(mkdir(bad<char>(), 0700));
  TRY(mkdirat(AT_FDCWD, bad<char>(), 0700));
  TRY(rmdir(bad<char>()));
  TRY(chdir(bad<char>()));
  TRY(chmod(bad<char>(), 0600));
  TRY(fchmodat(AT_FDCWD, bad<char>(), 0600, 0));
  TRY(truncate(bad<char>(), 0));
  TRY(readlink(bad<char>(), bad<char>(), 10));
  TRY(readlink("/proc/self/exe", bad<char>(), 10));
  TRY(__readlink_chk(bad<char>(), bad<char>(), 10, 10));
  TRY(__readlinkat_chk(AT_FDCWD, "/proc/self/exe", bad<char>(), 10, 10));
  TRY(failed_if_null(mkdtemp(bad<char>())));
  TRY(mkstemps64(bad<char>(), 0));
  TRY(mkostemps64(bad<char>(), 0, 0));
  TRY(utimensat(AT_FDCWD, bad<char>(), bad<timespec>(), 0));
  TRY(memfd_create(bad<char>(), 0));
  struct stat attributes;
  TRY(stat(bad<char>(), &attributes));
  TRY(stat("/", bad<struct stat>()));
  TRY(lstat(bad<char>(), bad<struct stat>()));
  TRY(fstat(fd, bad<struct stat>()));
  TRY(fstatat(AT_FDCWD, bad<char>(), &attributes, 0));
  TRY(statx(AT_FDCWD, bad<char>(), 0, STATX_ALL, bad<struct statx>()));
  TRY(statx(AT_FDCWD, "/", 0, STATX_ALL, bad<struct statx>()));
}

void try_transfers(int fd, int out) {
  TRY(read(fd, bad<char>(), 10));
  TRY(write(out, bad<char>(), 10));
  TRY(__read(fd, bad<char>(), 10));
  TRY(__write(out, bad<char>(), 10));
  TRY(__pread64(fd, bad<char>(), 10, 0));
  TRY(__pwrite64(out, bad<char>(), 10, 0));
  TRY(pread(fd, bad<char>(), 10, 0));
  TRY(pwrite(out, bad<char>(), 10, 0));
  TRY(readv(fd, bad<iovec>(), 1));
  TRY(writev(out, bad<iovec>(), 1));
  TRY(preadv(fd, bad<iovec>(), 1, 0));
  TRY(pwritev(out, bad<iovec>(), 1, 0));
  TRY(preadv2(fd, bad<iovec>(), 1, 0, 0));
  TRY(syscall(SYS_read, fd, bad<char>(), 10));
  TRY(syscall(SYS_writev, out, bad<iovec>(), 1));
  TRY(sendfile(out, fd, bad<off_t>(), 10));
  TRY(copy_file_range(fd, bad<off64_t>(), out, nullptr, 10, 0));
  TRY(copy_file_range(fd, nullptr, out, bad<off64_t>(), 10, 0));
  TRY(splice(fd, bad<off64_t>(), out, nullptr, 10, 0));
  TRY(syscall(SYS_sendfile, out, fd, bad<off_t>(), 10));
  TRY(syscall(SYS_copy_file_range, fd, bad<off64_t>(), out, bad<off64_t>(), 10, 0));
  TRY(syscall(SYS_getdents64, fd, bad<char>(), 100));
  TRY(getdents64(fd, bad<char>(), 100));
  TRY(getdirentries64(fd, bad<char>(), 100, bad<off64_t>()));
  TRY(wprintf(bad<wchar_t>()));
  TRY(wscanf(bad<wchar_t>()));
  TRY(fgetpos(stdin, bad<fpos_t>()));
  TRY(dprintf(out, bad<char>()));
  unsigned long context = 0;
  TRY(syscall(SYS_io_setup, 4, &context) == 0 ? syscall(SYS_io_submit, context, 1, bad<void>()) : -1);
  void* block = bad<void>();
  TRY(syscall(SYS_io_setup, 4, &context) == 0 ? syscall(SYS_io_submit, context, 1, &block) : -1);
  block = nullptr;
  TRY(syscall(SYS_io_setup, 4, &context) == 0 ? syscall(SYS_io_submit, context, 1, &block) : -1);
  TRY(syscall(SYS_io_setup, 4, &context) == 0
          ? syscall(SYS_io_getevents, context, 0, 1, bad<void>(), bad<void>())
          : -1);
  TRY(syscall(SYS_io_uring_setup, 4, bad<void>()));
  TRY(syscall(SYS_io_uring_register, fd, 2, bad<void>(), 1));
}

void try_processes(int fd) {
  char* arguments[] = {nullptr};
  TRY(execve(bad<char>(), arguments, arguments));
  TRY(execve("/nowhere/at/all", bad<char*>(), arguments));
  TRY(execve("/bin/true", bad<char*>(), arguments));
  TRY(execve("/bin/true", arguments, bad<char*>()));
  TRY(execveat(AT_FDCWD, bad<char>(), arguments, arguments, 0));
  TRY(execveat(AT_FDCWD, "/bin/true", arguments, bad<char*>(), 0));
  TRY(syscall(SYS_execve, bad<char>(), bad<char*>(), bad<char*>()));
  TRY(syscall(SYS_execve, "/bin/true", arguments, bad<char*>()));
  char* bad_values[] = {bad<char>(), nullptr};
  TRY(execve("/bin/true", bad_values, arguments));
  TRY(execve("/bin/true", arguments, bad_values));
  TRY(execvpe("/nowhere/at/all", arguments, bad<char*>()));
  TRY(syscall(SYS_clone3, bad<void>(), 64));
  TRY(syscall(SYS_clone3, bad<void>(-1), 64));
  TRY(waitpid(-1, bad<int>(), 0));
  TRY(wait4(-1, bad<int>(), 0, bad<rusage>()));
  TRY(fork() == 0 ? (_exit(0), 0) : wait4(-1, bad<int>(), 0, nullptr));
  TRY(fork() == 0 ? (_exit(0), 0) : wait4(-1, nullptr, 0, bad<rusage>()));
  TRY(fork() == 0 ? (_exit(0), 0) : waitid(P_ALL, 0, bad<siginfo_t>(), WEXITED));
  TRY(pipe(bad<int>()));
  TRY(__pipe(bad<int>()));
  TRY(__fcntl(fd, F_GETLK, bad<void>()));
  TRY(pipe2(bad<int>(), 0));
  TRY(syscall(SYS_pipe2, bad<int>(), 0));
  TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, bad<int>()));
  TRY(accept(fd, bad<sockaddr>(), bad<socklen_t>()));
  TRY(fcntl(fd, F_GETLK, bad<void>()));
  TRY(munmap(bad<char>(1), 4096));
  TRY(syscall(SYS_munmap, bad<char>(1), 4096));
}
// NOLINTEND(cppcoreguidelines-pro-type-vararg)

}  // namespace

int main() {
  bad<char>();
  const int fd = open("/etc/passwd", O_RDONLY);
  const int out = fileno(tmpfile());
  try_names(fd);
  try_transfers(fd, out);
  try_processes(fd);
  return 0;
}
