// What the wrappers have in common: they take the time of the program's call and count it afterwards. They
// run in the program's thread, with no lock of this library held; real.hpp says what a wrapper may do. errno
// is left as the call left it. Without a log (nothing is recorded, or a vfork's child) the call is only made.
// Signals: a handler that interrupts the counting is counted after it (Update, counting.hpp).
#pragma once

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/hooks/real.hpp"
#include "profiling/interpose/writer/ticks.hpp"

namespace penstock::interpose {

// Why a call failed, if it did.
template <typename Result>
[[gnu::always_inline]] inline int failure_of(Result result) noexcept {
  if (result < 0) [[unlikely]] {
    return errno;
  }
  return 0;
}

// Where a call that uses the descriptor's position begins; -1 if the descriptor is not known.
inline Description* positioned(ThreadLog& log, int fd, std::int64_t& offset) noexcept {
  Description* description = known_description(log, fd);
  offset = description == nullptr ? -1 : description->position.load(std::memory_order_relaxed);
  return description;
}

// After a read from, or a write to, the descriptor's position (description, offset: from positioned()), or
// any other (description null). `bytes` < 0: it failed.
template <penstock_call kCall>
[[gnu::always_inline]] inline void count_transfer(ThreadLog& log, int fd, Description* description,
                                                  std::int64_t offset, std::int64_t bytes,
                                                  std::uint64_t begin, std::uint64_t end) noexcept {
  if (bytes < 0) [[unlikely]] {
    count_slowly(log, fd, {.call = kCall, .failed = errno, .offset = offset, .begin = begin, .end = end});
    return;
  }
  if constexpr (kCall == PENSTOCK_CALL_READ) {
    add_kernel_read(log, bytes);
  } else {
    add_kernel_written(log, bytes);
  }
  if (description != nullptr) {
    description->advance(bytes);
  }
  count_moved<kCall>(log, fd, PENSTOCK_POSIX, offset, bytes, begin, end);
}

// A call on a descriptor that moves nothing, and what it gave (-1: it failed). `size`: of the file, where it
// gave 0; -1: that says nothing of it.
template <typename Call>
auto counted(penstock_call kind, int fd, Call call, std::int64_t size = -1) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  const auto result = call();
  const std::uint64_t end = ticks();
  penstock_counters* counters =
      count(*log, fd, {.call = kind, .failed = failure_of(result), .begin = begin, .end = end});
  if (size >= 0 && result == 0 && counters != nullptr) {
    note_size(*counters, static_cast<std::uint64_t>(size));
  }
  return result;
}

// The same on a name. `failed` says of a result whether it is a failure.
template <typename Call>
auto counted_path(penstock_call kind, int at, const char* path, penstock_file_kind file_kind,
                  Call call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  const auto result = call();
  const std::uint64_t end = ticks();
  const int saved = errno;
  count_path(*log, at, path, {.call = kind, .failed = result < 0 ? saved : 0, .begin = begin, .end = end},
             file_kind);
  errno = saved;
  return result;
}

}  // namespace penstock::interpose
