// Calls functions of libc, and syscall() itself, a known number of times. The program exits with 0 if each
// call returns what the kernel returns, errno included; otherwise with the number of the failed step.
//
//   penstock_profile_calls FILE   6 writes and 3 reads of 100 bytes, 2 maps of 600; then writes FILE.child in
//                                 a forked child that executes this program again
//
// Threads: one thread, so its child may do anything between fork() and execve().
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace {

int in_child(const char* path) {
  const int fd = openat(AT_FDCWD, path, O_CREAT | O_WRONLY, 0600);
  return write(fd, "0123456789", 10) == 10 ? 0 : 20;
}

int write_and_read(int fd) {
  char bytes[100];
  memset(bytes, 'x', sizeof(bytes));
  for (int i = 0; i < 5; ++i) {
    if (write(fd, bytes, sizeof(bytes)) != 100) {
      return 2;
    }
  }
  if (syscall(SYS_write, fd, bytes, sizeof(bytes)) != 100 || lseek(fd, 0, SEEK_SET) != 0) {
    return 3;
  }
  for (int i = 0; i < 3; ++i) {
    if ((i == 0 ? pread(fd, bytes, sizeof(bytes), 500) : read(fd, bytes, sizeof(bytes))) != 100) {
      return 4;
    }
  }
  const int duplicate = dup(fd);
  return fsync(fd) == 0 && duplicate >= 0 && close(duplicate) == 0 ? 0 : 15;
}

int map_and_unmap(int fd) {
  void* at = mmap(nullptr, 600, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED || *static_cast<char*>(at) != 'x' || munmap(at, 600) != 0) {
    return 5;
  }
  at = reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, 600, PROT_READ, MAP_PRIVATE, fd, 0));
  return at != MAP_FAILED && syscall(SYS_munmap, at, 600) == 0 ? 0 : 6;
}

int make_failing_calls() {
  char byte = 0;
  errno = 0;
  if (mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 999, 0) != MAP_FAILED || errno != EBADF) {
    return 7;
  }
  errno = 0;
  if (syscall(SYS_mmap, nullptr, 4096, PROT_READ, MAP_PRIVATE, 999, 0) != -1 || errno != EBADF) {
    return 8;
  }
  errno = 0;
  if (munmap(reinterpret_cast<void*>(1), 4096) != -1 || errno != EINVAL) {
    return 9;
  }
  errno = 0;
  if (read(999, &byte, 1) != -1 || errno != EBADF) {
    return 10;
  }
  errno = 0;
  char* no_arguments[] = {nullptr};
  return syscall(SYS_execve, "/nowhere/at/all", no_arguments, no_arguments) == -1 && errno == ENOENT ? 0 : 11;
}

// Forks; the child executes this program again, with another file.
int execute_in_child(char* program, const char* path) {
  std::string name = std::string(path) + ".child";
  char child[] = "child";
  char* arguments[] = {program, name.data(), child, nullptr};
  const pid_t pid = fork();
  if (pid == 0) {
    execve("/proc/self/exe", arguments, environ);
    _exit(12);
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 13;
}

}  // namespace

int main(int count, char** argv) {
  if (count == 3) {
    return in_child(argv[1]);
  }
  const int fd = openat(AT_FDCWD, argv[1], O_CREAT | O_RDWR | O_TRUNC, 0600);
  int failed_step = fd < 0 ? 1 : write_and_read(fd);
  failed_step = failed_step != 0 ? failed_step : map_and_unmap(fd);
  failed_step = failed_step != 0 ? failed_step : make_failing_calls();
  failed_step = failed_step != 0 || close(fd) == 0 ? failed_step : 14;
  return failed_step != 0 ? failed_step : execute_in_child(argv[0], argv[1]);
}
