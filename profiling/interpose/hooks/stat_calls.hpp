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

template <typename About, typename Call>
int stat_of_descriptor(int fd, const About* about, Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  const int result = call();
  const std::uint64_t end = ticks();
  penstock_counters* counters =
      count(*log, fd, {.call = PENSTOCK_CALL_STAT, .failed = failure_of(result), .begin = begin, .end = end});
  if (counters != nullptr && result == 0) [[likely]] {
    if (S_ISREG(mode_in(*about))) [[likely]] {
      note_size(*counters, size_in(*about));
    } else if (!S_ISDIR(mode_in(*about)) && !S_ISLNK(mode_in(*about))) {
      note_other_file(*log, fd);
    }
  }
  return result;
}

template <typename About, typename Call>
int stat_of_name(int at, const char* path, const About* about, Call call) noexcept {
  if (at != AT_FDCWD && path != nullptr && *path == 0) {  // AT_EMPTY_PATH
    return stat_of_descriptor(at, about, call);
  }
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  const int result = call();
  const std::uint64_t end = ticks();
  const int saved = errno;
  const Told found = result == 0 ? told(mode_in(*about), size_in(*about)) : Told{};
  count_path(*log, at, path,
             {.call = PENSTOCK_CALL_STAT, .failed = result < 0 ? saved : 0, .begin = begin, .end = end},
             found.kind, found.size);
  errno = saved;
  return result;
}

}  // namespace penstock::interpose
