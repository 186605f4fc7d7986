// A library that replaces functions of libc and implements each with syscall(), as tcmalloc does for mmap()
// and munmap().
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

extern "C" {

#define PENSTOCK_MADE(result, name, parameters) \
  result made_##name parameters __asm__(#name); \
  __attribute__((visibility("default"))) result made_##name parameters

PENSTOCK_MADE(void*, mmap, (void* at, size_t bytes, int protection, int flags, int fd, off_t offset)) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}
PENSTOCK_MADE(int, munmap, (void* at, size_t bytes)) {
  return int(syscall(SYS_munmap, at, bytes));
}
PENSTOCK_MADE(ssize_t, read, (int fd, void* to, size_t bytes)) {
  return syscall(SYS_read, fd, to, bytes);
}
PENSTOCK_MADE(ssize_t, write, (int fd, const void* from, size_t bytes)) {
  return syscall(SYS_write, fd, from, bytes);
}
PENSTOCK_MADE(int, close, (int fd)) {
  return int(syscall(SYS_close, fd));
}
PENSTOCK_MADE(int, openat, (int at, const char* path, int flags, ...)) {
  va_list more;
  va_start(more, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  return int(syscall(SYS_openat, at, path, flags, mode));
}
PENSTOCK_MADE(pid_t, fork, ()) {
  return static_cast<pid_t>(syscall(SYS_fork));
}
PENSTOCK_MADE(int, execve, (const char* path, char* const arguments[], char* const environment[])) {
  return int(syscall(SYS_execve, path, arguments, environment));
}
}
