// Around the calls of the stat family: `call` makes the call, and what it said is counted and remembered.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

struct Told {
  penstock_file_kind kind = PENSTOCK_REGULAR;
  std::int64_t size = -1;
};
inline Told told(unsigned mode, std::uint64_t size) noexcept {
  if (S_ISLNK(mode)) {
    return {};  // of what it leads to nothing was said
  }
  return {.kind = S_ISREG(mode)   ? PENSTOCK_REGULAR
                  : S_ISDIR(mode) ? PENSTOCK_DIRECTORY
                                  : PENSTOCK_OTHER_FILE,
          .size = static_cast<std::int64_t>(size)};
}

// `about` is struct stat, stat64 or statx, whose fields have other names.
inline std::uint64_t size_in(const struct stat& about) noexcept {
  return static_cast<std::uint64_t>(about.st_size);
}
inline unsigned mode_in(const struct stat& about) noexcept {
  return about.st_mode;
}
inline std::uint64_t size_in(const struct stat64& about) noexcept {
  return static_cast<std::uint64_t>(about.st_size);
}
inline unsigned mode_in(const struct stat64& about) noexcept {
  return about.st_mode;
}
inline std::uint64_t size_in(const struct statx& about) noexcept {
  return about.stx_size;
}
inline unsigned mode_in(const struct statx& about) noexcept {
  return about.stx_mode;
}

int stat_of_descriptor(int fd, const auto* about, auto call) noexcept {
  return timed(PENSTOCK_CALL_STAT, call, [=](ThreadLog& log, int result, Operation& operation) {
    operation.failed = failure_of(result);
    penstock_counters* counters = count(log, fd, operation);
    if (counters == nullptr || result != 0) [[unlikely]] {
      return;
    }
    if (S_ISREG(mode_in(*about))) [[likely]] {
      note_size(*counters, size_in(*about));
    } else if (!S_ISDIR(mode_in(*about)) && !S_ISLNK(mode_in(*about))) {
      note_other_file(log, fd);
    }
  });
}

int stat_of_name(int at, const char* path, const auto* about, auto call) noexcept {
  if (at != AT_FDCWD && path != nullptr && *path == 0) {  // AT_EMPTY_PATH
    return stat_of_descriptor(at, about, call);
  }
  return timed(PENSTOCK_CALL_STAT, call, [=](ThreadLog& log, int result, Operation& operation) {
    const int saved = errno;
    operation.failed = result < 0 ? saved : 0;
    const Told found = result == 0 ? told(mode_in(*about), size_in(*about)) : Told{};
    count_path(log, at, path, operation, found.kind, found.size);
    errno = saved;
  });
}

}  // namespace penstock::interpose
