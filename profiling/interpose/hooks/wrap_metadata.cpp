// Calls on names and on what is known of files: the stat family (that of current libcs and of old ones),
// directories, and what renames, links and removes.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/hooks/stat_calls.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like what they replace

#define PENSTOCK_STAT_OF_NAME(name, kind)                                                 \
  PENSTOCK_WRAP(int, name, (const char* path, struct kind* about)) {                      \
    return stat_of_name(AT_FDCWD, path, about, [&] { return real_##name(path, about); }); \
  }
PENSTOCK_STAT_OF_NAME(stat, stat)
PENSTOCK_STAT_OF_NAME(stat64, stat64)
PENSTOCK_STAT_OF_NAME(lstat, stat)
PENSTOCK_STAT_OF_NAME(lstat64, stat64)
PENSTOCK_WRAP(int, fstat, (int fd, struct stat* about)) {
  return stat_of_descriptor(fd, about, [&] { return real_fstat(fd, about); });
}
PENSTOCK_WRAP(int, fstat64, (int fd, struct stat64* about)) {
  return stat_of_descriptor(fd, about, [&] { return real_fstat64(fd, about); });
}
PENSTOCK_WRAP(int, fstatat, (int at, const char* path, struct stat* about, int flags)) {
  return stat_of_name(at, path, about, [&] { return real_fstatat(at, path, about, flags); });
}
PENSTOCK_WRAP(int, fstatat64, (int at, const char* path, struct stat64* about, int flags)) {
  return stat_of_name(at, path, about, [&] { return real_fstatat64(at, path, about, flags); });
}
PENSTOCK_WRAP(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* about)) {
  return stat_of_name(at, path, about, [&] { return real_statx(at, path, flags, mask, about); });
}
// What programs that were linked with a libc before 2.33 call.
#define PENSTOCK_XSTAT_OF_NAME(name, kind)                                                         \
  PENSTOCK_WRAP(int, name, (int version, const char* path, struct kind* about)) {                  \
    return stat_of_name(AT_FDCWD, path, about, [&] { return real_##name(version, path, about); }); \
  }
PENSTOCK_XSTAT_OF_NAME(__xstat, stat)
PENSTOCK_XSTAT_OF_NAME(__xstat64, stat64)
PENSTOCK_XSTAT_OF_NAME(__lxstat, stat)
PENSTOCK_XSTAT_OF_NAME(__lxstat64, stat64)
PENSTOCK_WRAP(int, __fxstat, (int version, int fd, struct stat* about)) {
  return stat_of_descriptor(fd, about, [&] { return real___fxstat(version, fd, about); });
}
PENSTOCK_WRAP(int, __fxstat64, (int version, int fd, struct stat64* about)) {
  return stat_of_descriptor(fd, about, [&] { return real___fxstat64(version, fd, about); });
}
PENSTOCK_WRAP(int, __fxstatat, (int version, int at, const char* path, struct stat* about, int flags)) {
  return stat_of_name(at, path, about, [&] { return real___fxstatat(version, at, path, about, flags); });
}
PENSTOCK_WRAP(int, __fxstatat64, (int version, int at, const char* path, struct stat64* about, int flags)) {
  return stat_of_name(at, path, about, [&] { return real___fxstatat64(version, at, path, about, flags); });
}

PENSTOCK_WRAP(int, access, (const char* path, int mode)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_access(path, mode); });
}
PENSTOCK_WRAP(int, faccessat, (int at, const char* path, int mode, int flags)) {
  return counted_path(PENSTOCK_CALL_OTHER, at, path, PENSTOCK_REGULAR,
                      [&] { return real_faccessat(at, path, mode, flags); });
}
PENSTOCK_WRAP(int, unlink, (const char* path)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_unlink(path); });
}
PENSTOCK_WRAP(int, unlinkat, (int at, const char* path, int flags)) {
  return counted_path(PENSTOCK_CALL_OTHER, at, path, PENSTOCK_REGULAR,
                      [&] { return real_unlinkat(at, path, flags); });
}
PENSTOCK_WRAP(int, remove, (const char* path)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_remove(path); });
}
PENSTOCK_WRAP(int, rmdir, (const char* path)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_DIRECTORY,
                      [&] { return real_rmdir(path); });
}
PENSTOCK_WRAP(int, mkdir, (const char* path, mode_t mode)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_DIRECTORY,
                      [&] { return real_mkdir(path, mode); });
}
PENSTOCK_WRAP(int, mkdirat, (int at, const char* path, mode_t mode)) {
  return counted_path(PENSTOCK_CALL_OTHER, at, path, PENSTOCK_DIRECTORY,
                      [&] { return real_mkdirat(at, path, mode); });
}
PENSTOCK_WRAP(int, rename, (const char* from, const char* to)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, from, PENSTOCK_REGULAR,
                      [&] { return real_rename(from, to); });
}
PENSTOCK_WRAP(int, renameat, (int at, const char* from, int to_at, const char* to)) {
  return counted_path(PENSTOCK_CALL_OTHER, at, from, PENSTOCK_REGULAR,
                      [&] { return real_renameat(at, from, to_at, to); });
}
PENSTOCK_WRAP(int, renameat2, (int at, const char* from, int to_at, const char* to, unsigned flags)) {
  return counted_path(PENSTOCK_CALL_OTHER, at, from, PENSTOCK_REGULAR,
                      [&] { return real_renameat2(at, from, to_at, to, flags); });
}
PENSTOCK_WRAP(int, link, (const char* from, const char* to)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, from, PENSTOCK_REGULAR,
                      [&] { return real_link(from, to); });
}
PENSTOCK_WRAP(int, symlink, (const char* content, const char* path)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_symlink(content, path); });
}
PENSTOCK_WRAP(ssize_t, readlink, (const char* path, char* out, size_t bytes)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_readlink(path, out, bytes); });
}
PENSTOCK_WRAP(ssize_t, readlinkat, (int at, const char* path, char* out, size_t bytes)) {
  return counted_path(PENSTOCK_CALL_OTHER, at, path, PENSTOCK_REGULAR,
                      [&] { return real_readlinkat(at, path, out, bytes); });
}
PENSTOCK_WRAP(int, truncate, (const char* path, off64_t bytes)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_truncate(path, bytes); });
}
PENSTOCK_WRAP(int, truncate64, (const char* path, off64_t bytes)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_truncate64(path, bytes); });
}
PENSTOCK_WRAP(int, chmod, (const char* path, mode_t mode)) {
  return counted_path(PENSTOCK_CALL_OTHER, AT_FDCWD, path, PENSTOCK_REGULAR,
                      [&] { return real_chmod(path, mode); });
}
PENSTOCK_WRAP(int, utimensat, (int at, const char* path, const timespec times[2], int flags)) {
  return counted_path(PENSTOCK_CALL_OTHER, at, path, PENSTOCK_REGULAR,
                      [&] { return real_utimensat(at, path, times, flags); });
}

// Directories: opening is an open, reading an entry is counted on what was opened. The entries themselves
// come without bytes of a file.
PENSTOCK_WRAP(DIR*, opendir, (const char* path)) {
  return timed(
      PENSTOCK_CALL_OPEN, [&] { return real_opendir(path); },
      [&](ThreadLog& log, DIR* opened, Operation& operation) {
        const int saved = errno;
        operation.failed = opened == nullptr ? saved : 0;
        count_open(log, AT_FDCWD, path, O_DIRECTORY, opened == nullptr ? -1 : dirfd(opened), operation);
        errno = saved;
      });
}
namespace {
auto next_entry(DIR* from, auto& real) noexcept {
  return timed(
      PENSTOCK_CALL_OTHER, [&] { return real(from); },
      [&](ThreadLog& log, auto, const Operation& operation) { count(log, dirfd(from), operation); });
}
}  // namespace
PENSTOCK_WRAP(dirent*, readdir, (DIR * from)) {
  return next_entry(from, real_readdir);
}
PENSTOCK_WRAP(dirent64*, readdir64, (DIR * from)) {
  return next_entry(from, real_readdir64);
}
PENSTOCK_WRAP(int, closedir, (DIR * opened)) {
  ThreadLog* log = thread_log();
  const int fd = dirfd(opened);
  penstock_counters* counters = log == nullptr || described(fd) == nullptr
                                    ? nullptr
                                    : counters_now(*log, fd, PENSTOCK_POSIX, PENSTOCK_CALL_CLOSE);
  if (!log_suspended()) {
    forget(fd);
  }
  Operation operation{.call = PENSTOCK_CALL_CLOSE, .begin = log == nullptr ? 0 : ticks()};
  const int result = real_closedir(opened);
  if (counters != nullptr) {
    operation.end = ticks();
    count_in(*log, *counters, operation);
  }
  return result;
}

PENSTOCK_WRAP(int, chdir, (const char* path)) {
  const int result = real_chdir(path);
  if (result == 0 && !log_suspended()) {  // a vfork's child has a directory of its own
    note_working_directory();
  }
  return result;
}
PENSTOCK_WRAP(int, fchdir, (int fd)) {
  const int result = real_fchdir(fd);
  if (result == 0 && !log_suspended()) {  // a vfork's child has a directory of its own
    note_working_directory();
  }
  return result;
}
