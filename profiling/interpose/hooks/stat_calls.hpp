// Functions that wrappers use for calls of the stat family and for chdir(). Those for stat get the program's
// call as `call`, make it, count it, and note the size and the kind of the file. The rules of wrap.hpp hold
// here.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

// Returns the file size in `status`, which is a struct stat, stat64 or statx. The fields of statx have other
// names than those of stat.
inline uint64_t size_in(const auto& status) noexcept {
  return uint64_t(status.st_size);
}
inline unsigned mode_in(const auto& status) noexcept {
  return status.st_mode;
}
inline uint64_t size_in(const struct statx& status) noexcept {
  return status.stx_size;
}
inline unsigned mode_in(const struct statx& status) noexcept {
  return status.stx_mode;
}

// Makes and counts a stat call on a descriptor. If the call returns 0, it has filled `status`.
int stat_of_descriptor(int fd, const auto* status, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_STAT, call, [=](ThreadLog& log, int result, Operation& operation) {
    operation.failed = failure_of(result);
    penstock_counters* counters = count(log, fd, operation);
    if (counters == nullptr || result != 0) [[unlikely]] {
      return;
    }
    if (S_ISREG(mode_in(*status))) [[likely]] {
      note_size(*counters, size_in(*status));
    } else if (!S_ISDIR(mode_in(*status)) && !S_ISLNK(mode_in(*status))) {
      note_not_regular(log, fd);
    }
  });
}

// Makes and counts a stat call on a name, which is relative to the directory `at`. If the call returns 0, it
// has filled `status`.
int stat_of_name(int at, const char* path, const auto* status, auto call) noexcept {
  if (at != AT_FDCWD && path != nullptr && *path == 0) {  // no name (AT_EMPTY_PATH): the call is on `at`
    return stat_of_descriptor(at, status, call);
  }
  return call_and_time(PENSTOCK_CALL_STAT, call, [=](ThreadLog& log, int result, Operation& operation) {
    const int saved_errno = errno;
    operation.failed = result < 0 ? saved_errno : 0;
    penstock_file_kind kind = PENSTOCK_REGULAR;
    int64_t size = -1;
    if (result == 0 && !S_ISLNK(mode_in(*status))) {  // a symbolic link says nothing about its target
      const unsigned mode = mode_in(*status);
      kind = S_ISREG(mode) ? PENSTOCK_REGULAR : S_ISDIR(mode) ? PENSTOCK_DIRECTORY : PENSTOCK_OTHER_FILE;
      size = int64_t(size_in(*status));
    }
    count_path(log, at, path, operation, kind, size);
    errno = saved_errno;
  });
}

// After chdir() or fchdir(), which returned `result`: reads the name of the working directory again.
inline int note_directory_change(int result) noexcept {
  if (result == 0 && !log_suspended()) {  // a vfork's child changes only its own directory
    note_working_directory();
  }
  return result;
}

}  // namespace penstock::interpose
