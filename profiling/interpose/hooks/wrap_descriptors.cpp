// Wrappers of calls that make, copy, move and close descriptors, and of fsync() and similar calls.
//
// Threads, locks, memory and signals: the rules of wrap.hpp. The code around the calls is in
// descriptor_calls.hpp.
// Forks: a child has its parent's table of descriptors. In a child that has counted nothing yet, close() is
// not counted (close_and_count()).
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiling/interpose/hooks/descriptor_calls.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

constexpr bool takes_mode(int flags) {
#ifdef O_TMPFILE
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
#else
  return (flags & O_CREAT) != 0;
#endif
}

}  // namespace

// NOLINTBEGIN(cert-dcl50-cpp): open() and its variants are variadic
#define PENSTOCK_MODE                                     \
  mode_t mode = 0;                                        \
  if (takes_mode(flags)) {                                \
    va_list values;                                       \
    va_start(values, flags);                              \
    mode = static_cast<mode_t>(va_arg(values, unsigned)); \
    va_end(values);                                       \
  }

#define PENSTOCK_OPEN(name)                                                                       \
  PENSTOCK_WRAP(int, name, (const char* path, int flags, ...)) {                                  \
    PENSTOCK_MODE                                                                                 \
    return open_and_count(AT_FDCWD, path, flags, [&] { return real_##name(path, flags, mode); }); \
  }
#define PENSTOCK_OPEN_AT(name)                                                                  \
  PENSTOCK_WRAP(int, name, (int at, const char* path, int flags, ...)) {                        \
    PENSTOCK_MODE                                                                               \
    return open_and_count(at, path, flags, [&] { return real_##name(at, path, flags, mode); }); \
  }
PENSTOCK_OPEN(open)
PENSTOCK_OPEN(open64)
PENSTOCK_OPEN(__open)
PENSTOCK_OPEN(__open64)
PENSTOCK_OPEN_AT(openat)
PENSTOCK_OPEN_AT(openat64)
// NOLINTEND(cert-dcl50-cpp)
PENSTOCK_WRAP_TWINS(int, __open_2, __open64_2, (const char* path, int flags),
                    open_and_count(AT_FDCWD, path, flags, [&] { return real(path, flags); }))
PENSTOCK_WRAP_TWINS(int, __openat_2, __openat64_2, (int at, const char* path, int flags),
                    open_and_count(at, path, flags, [&] { return real(at, path, flags); }))
PENSTOCK_WRAP_TWINS(int, creat, creat64, (const char* path, mode_t mode),
                    open_and_count(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,
                                   [&] { return real(path, mode); }))
// mkstemp() and its variants choose the name of the file. After the call, `path` has that name.
PENSTOCK_WRAP_TWINS(int, mkstemp, mkstemp64, (char* path),
                    open_and_count(AT_FDCWD, path, O_RDWR, [&] { return real(path); }))
PENSTOCK_WRAP_TWINS(int, mkostemp, mkostemp64, (char* path, int flags),
                    open_and_count(AT_FDCWD, path, O_RDWR | flags, [&] { return real(path, flags); }))
PENSTOCK_WRAP_TWINS(int, mkstemps, mkstemps64, (char* path, int suffix),
                    open_and_count(AT_FDCWD, path, O_RDWR, [&] { return real(path, suffix); }))
PENSTOCK_WRAP_TWINS(int, mkostemps, mkostemps64, (char* path, int suffix, int flags),
                    open_and_count(AT_FDCWD, path, O_RDWR | flags, [&] { return real(path, suffix, flags); }))
// A handle is no name. count_open() asks the new descriptor for the name if the path is in /dev/fd.
PENSTOCK_WRAP(int, open_by_handle_at, (int mount, void* handle, int flags)) {
  return open_and_count(AT_FDCWD, "/dev/fd/new", flags,
                        [&] { return real_open_by_handle_at(mount, handle, flags); });
}

PENSTOCK_WRAP_TWINS(int, close, __close, (int fd), close_and_count(fd, [&] { return real(fd); }))
PENSTOCK_WRAP(int, close_range, (unsigned first, unsigned last, int flags)) {
  if (!log_suspended() && (flags & 4) == 0) {  // with CLOSE_RANGE_CLOEXEC (4) nothing is closed yet
    forget_range(first, last);
  }
  return real_close_range(first, last, flags);
}
PENSTOCK_WRAP(void, closefrom, (int first)) {
  if (!log_suspended()) {
    forget_range(first < 0 ? 0U : unsigned(first), ~0U);
  }
  real_closefrom(first);
}

PENSTOCK_WRAP(int, dup, (int fd)) {
  return note_duplicate(fd, real_dup(fd));
}
PENSTOCK_WRAP_TWINS(int, dup2, __dup2, (int from, int to), note_duplicate(from, real(from, to)))
PENSTOCK_WRAP(int, dup3, (int from, int to, int flags)) {
  return note_duplicate(from, real_dup3(from, to, flags));
}

// NOLINTBEGIN(cert-dcl50-cpp): fcntl() is variadic
#define PENSTOCK_FCNTL(name)                                                       \
  PENSTOCK_WRAP(int, name, (int fd, int command, ...)) {                           \
    va_list values;                                                                \
    va_start(values, command);                                                     \
    void* argument = va_arg(values, void*);                                        \
    va_end(values);                                                                \
    return after_fcntl(fd, command, argument, real_##name(fd, command, argument)); \
  }
PENSTOCK_FCNTL(fcntl)
PENSTOCK_FCNTL(fcntl64)
PENSTOCK_FCNTL(__fcntl)
// NOLINTEND(cert-dcl50-cpp)

#define PENSTOCK_NO_FILE(name, parameters, arguments) \
  PENSTOCK_WRAP(int, name, parameters) {              \
    return note_without_file(real_##name arguments);  \
  }
PENSTOCK_NO_FILE(socket, (int domain, int type, int protocol), (domain, type, protocol))
PENSTOCK_NO_FILE(accept, (int fd, void* address, unsigned* length), (fd, address, length))
PENSTOCK_NO_FILE(accept4, (int fd, void* address, unsigned* length, int flags), (fd, address, length, flags))
PENSTOCK_NO_FILE(memfd_create, (const char* name, unsigned flags), (name, flags))
PENSTOCK_NO_FILE(epoll_create, (int size), (size))
PENSTOCK_NO_FILE(timerfd_create, (int clock, int flags), (clock, flags))
PENSTOCK_NO_FILE(eventfd, (unsigned count, int flags), (count, flags))
PENSTOCK_NO_FILE(epoll_create1, (int flags), (flags))
PENSTOCK_NO_FILE(inotify_init1, (int flags), (flags))
PENSTOCK_WRAP_TWINS(int, pipe, __pipe, (int ends[2]), note_pair_without_files(real(ends), ends))
PENSTOCK_WRAP(int, pipe2, (int ends[2], int flags)) {
  return note_pair_without_files(real_pipe2(ends, flags), ends);
}
PENSTOCK_WRAP(int, socketpair, (int domain, int type, int protocol, int ends[2])) {
  return note_pair_without_files(real_socketpair(domain, type, protocol, ends), ends);
}

PENSTOCK_WRAP_TWINS(off64_t, lseek, lseek64, (int fd, off64_t offset, int whence),
                    seek_and_count(fd, [&] { return real(fd, offset, whence); }))
PENSTOCK_WRAP(off64_t, __lseek, (int fd, off64_t offset, int whence)) {
  return seek_and_count(fd, [&] { return real___lseek(fd, offset, whence); });
}

PENSTOCK_WRAP_TWINS(int, fsync, fdatasync, (int fd),
                    call_and_count(PENSTOCK_CALL_SYNC, fd, [&] { return real(fd); }))
PENSTOCK_WRAP(int, syncfs, (int fd)) {
  return call_and_count(PENSTOCK_CALL_SYNC, fd, [&] { return real_syncfs(fd); });
}
PENSTOCK_WRAP(int, sync_file_range, (int fd, off64_t offset, off64_t bytes, unsigned flags)) {
  return call_and_count(PENSTOCK_CALL_SYNC, fd,
                        [&] { return real_sync_file_range(fd, offset, bytes, flags); });
}
PENSTOCK_WRAP_TWINS(int, ftruncate, ftruncate64, (int fd, off64_t bytes),
                    call_and_count(
                        PENSTOCK_CALL_OTHER, fd, [&] { return real(fd, bytes); }, bytes))
// Returns the least size that the file has after fallocate(): the end of the allocated range. Returns -1 if
// `mode` is not 0, because the call may then leave the size as it is. Also -1 if the range is too large,
// which the kernel refuses.
static int64_t size_after(int mode, off64_t offset, off64_t bytes) noexcept {
  int64_t end = -1;
  return mode != 0 || __builtin_add_overflow(offset, bytes, &end) ? -1 : end;
}
PENSTOCK_WRAP_TWINS(int, fallocate, fallocate64, (int fd, int mode, off64_t offset, off64_t bytes),
                    call_and_count(
                        PENSTOCK_CALL_OTHER, fd, [&] { return real(fd, mode, offset, bytes); },
                        size_after(mode, offset, bytes)))
// Makes and counts a call that returns 0 or the number of its error, and leaves errno as it is. After it, the
// file has at least `size` bytes. A `size` of -1 means: not known.
static int count_returned_error(int fd, int64_t size, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OTHER, call, [=](ThreadLog& log, int error, Operation& operation) {
    operation.failed = error;
    penstock_counters* counters = count(log, fd, operation);
    if (size >= 0 && error == 0 && counters != nullptr) {
      note_size(*counters, uint64_t(size));
    }
  });
}
PENSTOCK_WRAP_TWINS(int, posix_fallocate, posix_fallocate64, (int fd, off64_t offset, off64_t bytes),
                    count_returned_error(fd, size_after(0, offset, bytes),
                                         [&] { return real(fd, offset, bytes); }))
PENSTOCK_WRAP_TWINS(int, posix_fadvise, posix_fadvise64, (int fd, off64_t offset, off64_t bytes, int advice),
                    count_returned_error(fd, -1, [&] { return real(fd, offset, bytes, advice); }))
PENSTOCK_WRAP(ssize_t, readahead, (int fd, off64_t offset, size_t bytes)) {
  return call_and_count(PENSTOCK_CALL_OTHER, fd, [&] { return real_readahead(fd, offset, bytes); });
}
