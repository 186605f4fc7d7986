// What makes, copies, moves and closes descriptors.
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiling/interpose/rings.hpp"
#include "profiling/interpose/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are outside of any namespace, as what they stand in
                                      // for

namespace {

constexpr bool takes_mode(int flags) {
#ifdef O_TMPFILE
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
#else
  return (flags & O_CREAT) != 0;
#endif
}

template <typename Call>
int opened(int at, const char* path, int flags, Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  const int fd = call();
  const std::uint64_t end = ticks();
  const int saved = errno;
  count_open(*log, at, path, flags, fd,
             {.call = PENSTOCK_CALL_OPEN, .failed = fd < 0 ? saved : 0, .begin = begin, .end = end});
  errno = saved;
  return fd;
}

int close_with(Real<int(int)>& real, int fd) noexcept {
  // A fork's child that closes what it does not need, before it executes another program, needs no session
  // for that.
  const bool quiet = session.state.load(std::memory_order_relaxed) != SessionState::running;
  ThreadLog* log = quiet ? nullptr : thread_log();
  if (log == nullptr) {
    if (!log_suspended()) {
      forget(fd);
    }
    return real(fd);
  }
  if (any_rings()) [[unlikely]] {
    ring_ends(fd);
  }
  // Before it is closed: the next moment another thread may have another file under this number.
  penstock_counters* counters = described(fd) == nullptr ? nullptr : counters_now(*log, fd, PENSTOCK_POSIX);
  forget(fd);
  Operation operation{.call = PENSTOCK_CALL_CLOSE, .begin = ticks()};
  const int result = real(fd);
  operation.end = ticks();
  operation.failed = result < 0 ? errno : 0;
  if (counters != nullptr) {
    count_in(*log, *counters, operation);
  }
  return result;
}

int duplicated(int from, int to) noexcept {
  if (to >= 0 && !log_suspended()) {
    const int saved = errno;
    ThreadLog* log =
        session.state.load(std::memory_order_relaxed) == SessionState::running ? thread_log() : nullptr;
    if (log != nullptr) {
      known_description(*log, from);
    }
    if (from != to) {
      describe_duplicate(from, to);
    }
    errno = saved;
  }
  return to;
}

}  // namespace

// NOLINTBEGIN(cert-dcl50-cpp): these are variadic
#define PENSTOCK_MODE                                   \
  mode_t mode = 0;                                      \
  if (takes_mode(flags)) {                              \
    va_list more;                                       \
    va_start(more, flags);                              \
    mode = static_cast<mode_t>(va_arg(more, unsigned)); \
    va_end(more);                                       \
  }

PENSTOCK_WRAP(int, open, (const char* path, int flags, ...)) {
  PENSTOCK_MODE
  return opened(AT_FDCWD, path, flags, [&] { return real_open(path, flags, mode); });
}
PENSTOCK_WRAP(int, open64, (const char* path, int flags, ...)) {
  PENSTOCK_MODE
  return opened(AT_FDCWD, path, flags, [&] { return real_open64(path, flags, mode); });
}
PENSTOCK_WRAP(int, openat, (int at, const char* path, int flags, ...)) {
  PENSTOCK_MODE
  return opened(at, path, flags, [&] { return real_openat(at, path, flags, mode); });
}
PENSTOCK_WRAP(int, openat64, (int at, const char* path, int flags, ...)) {
  PENSTOCK_MODE
  return opened(at, path, flags, [&] { return real_openat64(at, path, flags, mode); });
}
// NOLINTEND(cert-dcl50-cpp)
PENSTOCK_WRAP(int, __open_2, (const char* path, int flags)) {
  return opened(AT_FDCWD, path, flags, [&] { return real___open_2(path, flags); });
}
PENSTOCK_WRAP(int, __open64_2, (const char* path, int flags)) {
  return opened(AT_FDCWD, path, flags, [&] { return real___open64_2(path, flags); });
}
PENSTOCK_WRAP(int, __openat_2, (int at, const char* path, int flags)) {
  return opened(at, path, flags, [&] { return real___openat_2(at, path, flags); });
}
PENSTOCK_WRAP(int, __openat64_2, (int at, const char* path, int flags)) {
  return opened(at, path, flags, [&] { return real___openat64_2(at, path, flags); });
}
PENSTOCK_WRAP(int, creat, (const char* path, mode_t mode)) {
  return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, [&] { return real_creat(path, mode); });
}
PENSTOCK_WRAP(int, creat64, (const char* path, mode_t mode)) {
  return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, [&] { return real_creat64(path, mode); });
}
// The name is made within: the template holds it afterwards.
PENSTOCK_WRAP(int, mkstemp, (char* path)) {
  return opened(AT_FDCWD, path, O_RDWR, [&] { return real_mkstemp(path); });
}
PENSTOCK_WRAP(int, mkstemp64, (char* path)) {
  return opened(AT_FDCWD, path, O_RDWR, [&] { return real_mkstemp64(path); });
}
PENSTOCK_WRAP(int, mkostemp, (char* path, int flags)) {
  return opened(AT_FDCWD, path, O_RDWR | flags, [&] { return real_mkostemp(path, flags); });
}
PENSTOCK_WRAP(int, mkostemp64, (char* path, int flags)) {
  return opened(AT_FDCWD, path, O_RDWR | flags, [&] { return real_mkostemp64(path, flags); });
}
PENSTOCK_WRAP(int, mkstemps, (char* path, int suffix)) {
  return opened(AT_FDCWD, path, O_RDWR, [&] { return real_mkstemps(path, suffix); });
}
PENSTOCK_WRAP(int, mkostemps, (char* path, int suffix, int flags)) {
  return opened(AT_FDCWD, path, O_RDWR | flags, [&] { return real_mkostemps(path, suffix, flags); });
}

PENSTOCK_WRAP(int, close, (int fd)) {
  return close_with(real_close, fd);
}
PENSTOCK_WRAP(int, close_range, (unsigned first, unsigned last, int flags)) {
  if (!log_suspended() && (flags & 4) == 0) {  // CLOSE_RANGE_CLOEXEC closes nothing yet
    forget_range(first, last);
  }
  return real_close_range(first, last, flags);
}
PENSTOCK_WRAP(void, closefrom, (int first)) {
  if (!log_suspended()) {
    forget_range(first < 0 ? 0U : static_cast<unsigned>(first), ~0U);
  }
  real_closefrom(first);
}

PENSTOCK_WRAP(int, dup, (int fd)) {
  return duplicated(fd, real_dup(fd));
}
PENSTOCK_WRAP(int, dup2, (int from, int to)) {
  return duplicated(from, real_dup2(from, to));
}
PENSTOCK_WRAP(int, dup3, (int from, int to, int flags)) {
  return duplicated(from, real_dup3(from, to, flags));
}

// NOLINTBEGIN(cert-dcl50-cpp): these are variadic
namespace {
int after_fcntl(int fd, int command, void* argument, int result) noexcept {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
    return duplicated(fd, result);
  }
  if (command == F_SETFL && result == 0) {
    if (Description* description = described(fd)) {
      description->appends = (reinterpret_cast<long>(argument) & O_APPEND) != 0;
    }
  }
  return result;
}
}  // namespace

PENSTOCK_WRAP(int, fcntl, (int fd, int command, ...)) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  return after_fcntl(fd, command, argument, real_fcntl(fd, command, argument));
}
PENSTOCK_WRAP(int, fcntl64, (int fd, int command, ...)) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  return after_fcntl(fd, command, argument, real_fcntl64(fd, command, argument));
}
// NOLINTEND(cert-dcl50-cpp)

// What opens none of a file's: whatever had the number before is gone.
namespace {
int fresh(int fd) noexcept {
  if (fd >= 0 && !log_suspended()) {
    forget(fd);
  }
  return fd;
}
}  // namespace
PENSTOCK_WRAP(int, socket, (int domain, int type, int protocol)) {
  return fresh(real_socket(domain, type, protocol));
}
PENSTOCK_WRAP(int, accept, (int fd, void* address, unsigned* length)) {
  return fresh(real_accept(fd, address, length));
}
PENSTOCK_WRAP(int, accept4, (int fd, void* address, unsigned* length, int flags)) {
  return fresh(real_accept4(fd, address, length, flags));
}
PENSTOCK_WRAP(int, pipe, (int ends[2])) {
  const int result = real_pipe(ends);
  if (result == 0) {
    fresh(ends[0]);
    fresh(ends[1]);
  }
  return result;
}
PENSTOCK_WRAP(int, pipe2, (int ends[2], int flags)) {
  const int result = real_pipe2(ends, flags);
  if (result == 0) {
    fresh(ends[0]);
    fresh(ends[1]);
  }
  return result;
}
PENSTOCK_WRAP(int, memfd_create, (const char* name, unsigned flags)) {
  return fresh(real_memfd_create(name, flags));
}
PENSTOCK_WRAP(int, eventfd, (unsigned count, int flags)) {
  return fresh(real_eventfd(count, flags));
}

namespace {
template <typename Call>
off64_t sought(int fd, Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  const off64_t at = call();
  const std::uint64_t end = ticks();
  count(*log, fd, {.call = PENSTOCK_CALL_SEEK, .failed = at < 0 ? errno : 0, .begin = begin, .end = end});
  if (Description* description = at < 0 ? nullptr : described(fd)) {
    description->position.store(at, std::memory_order_relaxed);
  }
  return at;
}
}  // namespace
PENSTOCK_WRAP(off64_t, lseek, (int fd, off64_t offset, int whence)) {
  return sought(fd, [&] { return real_lseek(fd, offset, whence); });
}
PENSTOCK_WRAP(off64_t, lseek64, (int fd, off64_t offset, int whence)) {
  return sought(fd, [&] { return real_lseek64(fd, offset, whence); });
}

PENSTOCK_WRAP(int, fsync, (int fd)) {
  return counted(PENSTOCK_CALL_SYNC, fd, [&] { return real_fsync(fd); });
}
PENSTOCK_WRAP(int, fdatasync, (int fd)) {
  return counted(PENSTOCK_CALL_SYNC, fd, [&] { return real_fdatasync(fd); });
}
PENSTOCK_WRAP(int, syncfs, (int fd)) {
  return counted(PENSTOCK_CALL_SYNC, fd, [&] { return real_syncfs(fd); });
}
PENSTOCK_WRAP(int, sync_file_range, (int fd, off64_t offset, off64_t bytes, unsigned flags)) {
  return counted(PENSTOCK_CALL_SYNC, fd, [&] { return real_sync_file_range(fd, offset, bytes, flags); });
}
PENSTOCK_WRAP(int, ftruncate, (int fd, off64_t bytes)) {
  return counted(PENSTOCK_CALL_OTHER, fd, [&] { return real_ftruncate(fd, bytes); });
}
PENSTOCK_WRAP(int, ftruncate64, (int fd, off64_t bytes)) {
  return counted(PENSTOCK_CALL_OTHER, fd, [&] { return real_ftruncate64(fd, bytes); });
}
PENSTOCK_WRAP(int, fallocate, (int fd, int mode, off64_t offset, off64_t bytes)) {
  return counted(PENSTOCK_CALL_OTHER, fd, [&] { return real_fallocate(fd, mode, offset, bytes); });
}
PENSTOCK_WRAP(int, fallocate64, (int fd, int mode, off64_t offset, off64_t bytes)) {
  return counted(PENSTOCK_CALL_OTHER, fd, [&] { return real_fallocate64(fd, mode, offset, bytes); });
}
PENSTOCK_WRAP(int, posix_fadvise, (int fd, off64_t offset, off64_t bytes, int advice)) {
  return counted(PENSTOCK_CALL_OTHER, fd, [&] { return real_posix_fadvise(fd, offset, bytes, advice); });
}
PENSTOCK_WRAP(int, posix_fadvise64, (int fd, off64_t offset, off64_t bytes, int advice)) {
  return counted(PENSTOCK_CALL_OTHER, fd, [&] { return real_posix_fadvise64(fd, offset, bytes, advice); });
}
