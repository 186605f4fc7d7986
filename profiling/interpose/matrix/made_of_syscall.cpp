// A library that replaces functions of libc and implements each with syscall(), as tcmalloc does for mmap()
// and munmap().
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

extern "C" {

#define PENSTOCK_REPLACE(result, name, parameters)  \
  result replaced_##name parameters __asm__(#name); \
  __attribute__((visibility("default"))) result replaced_##name parameters

PENSTOCK_REPLACE(void*, mmap, (void* at, size_t bytes, int protection, int flags, int fd, off_t offset)) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}
PENSTOCK_REPLACE(int, munmap, (void* at, size_t bytes)) {
  return int(syscall(SYS_munmap, at, bytes));
}
PENSTOCK_REPLACE(ssize_t, read, (int fd, void* to, size_t bytes)) {
  return syscall(SYS_read, fd, to, bytes);
}
PENSTOCK_REPLACE(ssize_t, write, (int fd, const void* from, size_t bytes)) {
  return syscall(SYS_write, fd, from, bytes);
}
PENSTOCK_REPLACE(ssize_t, pread, (int fd, void* to, size_t bytes, off_t offset)) {
  return syscall(SYS_pread64, fd, to, bytes, offset);
}
PENSTOCK_REPLACE(off_t, lseek, (int fd, off_t offset, int whence)) {
  return syscall(SYS_lseek, fd, offset, whence);
}
PENSTOCK_REPLACE(int, fsync, (int fd)) {
  return int(syscall(SYS_fsync, fd));
}
PENSTOCK_REPLACE(int, dup, (int fd)) {
  return int(syscall(SYS_dup, fd));
}
PENSTOCK_REPLACE(int, close, (int fd)) {
  return int(syscall(SYS_close, fd));
}
PENSTOCK_REPLACE(int, openat, (int at, const char* path, int flags, ...)) {
  va_list more;
  va_start(more, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  return int(syscall(SYS_openat, at, path, flags, mode));
}
PENSTOCK_REPLACE(pid_t, fork, ()) {
  return static_cast<pid_t>(syscall(SYS_fork));
}
PENSTOCK_REPLACE(int, execve, (const char* path, char* const arguments[], char* const environment[])) {
  return int(syscall(SYS_execve, path, arguments, environment));
}
}
