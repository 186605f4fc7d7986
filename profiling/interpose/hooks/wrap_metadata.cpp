// Wrappers of metadata calls: the stat family, directories, and calls that rename, link and remove. The stat
// functions of old versions of libc (__xstat() and similar) are included. Threads, locks, memory and signals:
// the rules of wrap.hpp.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiling/interpose/hooks/stat_calls.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

// The wrappers of calls that use struct stat and, if `bits` is 64, struct stat64. Programs that were linked
// with a glibc before 2.33 call functions whose names begin with "__".
#define PENSTOCK_STATS(bits)                                                                               \
  PENSTOCK_WRAP(int, stat##bits, (const char* path, struct stat##bits* about)) {                           \
    return stat_of_name(AT_FDCWD, path, about, [&] { return real_stat##bits(path, about); });              \
  }                                                                                                        \
  PENSTOCK_WRAP(int, lstat##bits, (const char* path, struct stat##bits* about)) {                          \
    return stat_of_name(AT_FDCWD, path, about, [&] { return real_lstat##bits(path, about); });             \
  }                                                                                                        \
  PENSTOCK_WRAP(int, fstat##bits, (int fd, struct stat##bits* about)) {                                    \
    return stat_of_descriptor(fd, about, [&] { return real_fstat##bits(fd, about); });                     \
  }                                                                                                        \
  PENSTOCK_WRAP(int, fstatat##bits, (int at, const char* path, struct stat##bits* about, int flags)) {     \
    return stat_of_name(at, path, about, [&] { return real_fstatat##bits(at, path, about, flags); });      \
  }                                                                                                        \
  PENSTOCK_WRAP(int, __xstat##bits, (int version, const char* path, struct stat##bits* about)) {           \
    return stat_of_name(AT_FDCWD, path, about, [&] { return real___xstat##bits(version, path, about); });  \
  }                                                                                                        \
  PENSTOCK_WRAP(int, __lxstat##bits, (int version, const char* path, struct stat##bits* about)) {          \
    return stat_of_name(AT_FDCWD, path, about, [&] { return real___lxstat##bits(version, path, about); }); \
  }                                                                                                        \
  PENSTOCK_WRAP(int, __fxstat##bits, (int version, int fd, struct stat##bits* about)) {                    \
    return stat_of_descriptor(fd, about, [&] { return real___fxstat##bits(version, fd, about); });         \
  }                                                                                                        \
  PENSTOCK_WRAP(int, __fxstatat##bits,                                                                     \
                (int version, int at, const char* path, struct stat##bits* about, int flags)) {            \
    return stat_of_name(at, path, about,                                                                   \
                        [&] { return real___fxstatat##bits(version, at, path, about, flags); });           \
  }
PENSTOCK_STATS()
PENSTOCK_STATS(64)
PENSTOCK_WRAP(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* about)) {
  return stat_of_name(at, path, about, [&] { return real_statx(at, path, flags, mask, about); });
}

// Wraps a call on one name: `path`. A relative `path` begins at the directory `at`.
#define PENSTOCK_ON_NAME(result, name, file_kind, at, path, parameters, arguments)             \
  PENSTOCK_WRAP(result, name, parameters) {                                                    \
    return call_on_path_and_count(at, path, file_kind, [&] { return real_##name arguments; }); \
  }
PENSTOCK_ON_NAME(int, access, PENSTOCK_REGULAR, AT_FDCWD, path, (const char* path, int mode), (path, mode))
PENSTOCK_ON_NAME(int, faccessat, PENSTOCK_REGULAR, at, path, (int at, const char* path, int mode, int flags),
                 (at, path, mode, flags))
PENSTOCK_ON_NAME(int, unlink, PENSTOCK_REGULAR, AT_FDCWD, path, (const char* path), (path))
PENSTOCK_ON_NAME(int, unlinkat, PENSTOCK_REGULAR, at, path, (int at, const char* path, int flags),
                 (at, path, flags))
PENSTOCK_ON_NAME(int, remove, PENSTOCK_REGULAR, AT_FDCWD, path, (const char* path), (path))
PENSTOCK_ON_NAME(int, rmdir, PENSTOCK_DIRECTORY, AT_FDCWD, path, (const char* path), (path))
PENSTOCK_ON_NAME(int, mkdir, PENSTOCK_DIRECTORY, AT_FDCWD, path, (const char* path, mode_t mode),
                 (path, mode))
PENSTOCK_ON_NAME(int, mkdirat, PENSTOCK_DIRECTORY, at, path, (int at, const char* path, mode_t mode),
                 (at, path, mode))
PENSTOCK_ON_NAME(int, rename, PENSTOCK_REGULAR, AT_FDCWD, from, (const char* from, const char* to),
                 (from, to))
PENSTOCK_ON_NAME(int, renameat, PENSTOCK_REGULAR, at, from,
                 (int at, const char* from, int to_at, const char* to), (at, from, to_at, to))
PENSTOCK_ON_NAME(int, renameat2, PENSTOCK_REGULAR, at, from,
                 (int at, const char* from, int to_at, const char* to, unsigned flags),
                 (at, from, to_at, to, flags))
PENSTOCK_ON_NAME(int, link, PENSTOCK_REGULAR, AT_FDCWD, from, (const char* from, const char* to), (from, to))
PENSTOCK_ON_NAME(int, linkat, PENSTOCK_REGULAR, at, from,
                 (int at, const char* from, int to_at, const char* to, int flags),
                 (at, from, to_at, to, flags))
PENSTOCK_ON_NAME(int, symlink, PENSTOCK_REGULAR, AT_FDCWD, path, (const char* content, const char* path),
                 (content, path))
PENSTOCK_ON_NAME(int, symlinkat, PENSTOCK_REGULAR, at, path, (const char* content, int at, const char* path),
                 (content, at, path))
PENSTOCK_ON_NAME(ssize_t, readlink, PENSTOCK_REGULAR, AT_FDCWD, path,
                 (const char* path, char* out, size_t bytes), (path, out, bytes))
PENSTOCK_ON_NAME(ssize_t, readlinkat, PENSTOCK_REGULAR, at, path,
                 (int at, const char* path, char* out, size_t bytes), (at, path, out, bytes))
PENSTOCK_ON_NAME(ssize_t, __readlink_chk, PENSTOCK_REGULAR, AT_FDCWD, path,
                 (const char* path, char* out, size_t bytes, size_t room), (path, out, bytes, room))
PENSTOCK_ON_NAME(ssize_t, __readlinkat_chk, PENSTOCK_REGULAR, at, path,
                 (int at, const char* path, char* out, size_t bytes, size_t room),
                 (at, path, out, bytes, room))
PENSTOCK_ON_NAME(int, truncate, PENSTOCK_REGULAR, AT_FDCWD, path, (const char* path, off64_t bytes),
                 (path, bytes))
PENSTOCK_ON_NAME(int, truncate64, PENSTOCK_REGULAR, AT_FDCWD, path, (const char* path, off64_t bytes),
                 (path, bytes))
PENSTOCK_ON_NAME(int, chmod, PENSTOCK_REGULAR, AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))
PENSTOCK_ON_NAME(int, fchmodat, PENSTOCK_REGULAR, at, path,
                 (int at, const char* path, mode_t mode, int flags), (at, path, mode, flags))
PENSTOCK_ON_NAME(int, utimensat, PENSTOCK_REGULAR, at, path,
                 (int at, const char* path, const timespec times[2], int flags), (at, path, times, flags))
// mkdtemp() chooses the name of the directory. After the call, `path` has that name.
PENSTOCK_WRAP(char*, mkdtemp, (char* path)) {
  const int result = call_on_path_and_count(AT_FDCWD, path, PENSTOCK_DIRECTORY,
                                            [&] { return real_mkdtemp(path) == nullptr ? -1 : 0; });
  return result < 0 ? nullptr : path;
}

// opendir() counts as an open, and readdir() and similar calls as a metadata operation on the directory. No
// bytes are counted, because the entries of a directory are not bytes of a file.
PENSTOCK_WRAP(DIR*, opendir, (const char* path)) {
  return call_and_time(
      PENSTOCK_CALL_OPEN, [&] { return real_opendir(path); },
      [&](ThreadLog& log, DIR* folder, Operation& operation) {
        const int saved_errno = errno;
        operation.failed = folder == nullptr ? saved_errno : 0;
        count_open(log, AT_FDCWD, path, O_DIRECTORY, folder == nullptr ? -1 : dirfd(folder), operation);
        errno = saved_errno;
      });
}
namespace {
auto next_entry(DIR* from, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OTHER, call, [&](ThreadLog& log, auto, const Operation& operation) {
    count(log, dirfd(from), operation);
  });
}
}  // namespace
PENSTOCK_WRAP(dirent*, readdir, (DIR * from)) {
  return next_entry(from, [&] { return real_readdir(from); });
}
PENSTOCK_WRAP(dirent64*, readdir64, (DIR * from)) {
  return next_entry(from, [&] { return real_readdir64(from); });
}
PENSTOCK_WRAP_TWINS(int, readdir_r, readdir64_r, (DIR * from, void* entry, void** result),
                    next_entry(from, [&] { return real(from, entry, result); }))
PENSTOCK_WRAP(ssize_t, getdents64, (int fd, void* out, size_t bytes)) {
  return call_and_count(PENSTOCK_CALL_OTHER, fd, [&] { return real_getdents64(fd, out, bytes); });
}
PENSTOCK_WRAP_TWINS(ssize_t, getdirentries, getdirentries64,
                    (int fd, char* out, size_t bytes, off64_t* position),
                    call_and_count(PENSTOCK_CALL_OTHER, fd, [&] { return real(fd, out, bytes, position); }))
PENSTOCK_WRAP(int, closedir, (DIR * folder)) {
  ThreadLog* log = thread_log();
  const int fd = dirfd(folder);
  penstock_counters* counters = log == nullptr || description_of(fd) == nullptr
                                    ? nullptr
                                    : current_counters(*log, fd, PENSTOCK_POSIX, PENSTOCK_CALL_CLOSE);
  if (!log_suspended()) {
    forget(fd);
  }
  Operation operation{.call = PENSTOCK_CALL_CLOSE, .begin = log == nullptr ? 0 : ticks()};
  const int result = real_closedir(folder);
  if (counters != nullptr) {
    operation.end = ticks();
    count_in_counters(*log, *counters, operation);
  }
  return result;
}

PENSTOCK_WRAP(int, chdir, (const char* path)) {
  return note_directory_change(real_chdir(path));
}
PENSTOCK_WRAP(int, fchdir, (int fd)) {
  return note_directory_change(real_fchdir(fd));
}
