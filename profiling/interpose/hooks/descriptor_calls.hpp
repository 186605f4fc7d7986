// The code around calls that make, copy, move and close descriptors. `call` makes the program's call; these
// functions count it and update the table of descriptors (descriptors.hpp). They run in wrappers, under the
// rules of wrap.hpp.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include "profiling/interpose/counting/rings.hpp"
#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

// A call that opens `path` from the directory `at`. `flags`: those of open(). It may search for new slots
// (rewrite_new_objects()).
int open_and_count(int at, const char* path, int flags, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OPEN, call, [=](ThreadLog& log, int fd, Operation& operation) {
    const int saved = errno;
    operation.failed = fd < 0 ? saved : 0;
    count_open(log, at, path, flags, fd, operation);
    if (session.may_have_loaded.load(std::memory_order_relaxed)) [[unlikely]] {
      rewrite_new_objects();
    }
    errno = saved;
  });
}

// A call that closes `fd`. The descriptor is forgotten before the call.
int close_and_count(int fd, auto call) noexcept {
  // A fork's child often closes descriptors before it executes another program. That alone must not begin a
  // session in the child.
  const bool quiet = session.state.load(std::memory_order_relaxed) != SessionState::running;
  ThreadLog* log = quiet ? nullptr : thread_log();
  if (log == nullptr) {
    if (!log_suspended()) {
      forget(fd);
    }
    return call();
  }
  if (any_rings()) [[unlikely]] {
    remove_ring(fd);
  }
  // Before the close: right after it another thread may open another file under this number.
  penstock_counters* counters = forget_counted(*log, fd);
  Operation operation{.call = PENSTOCK_CALL_CLOSE, .begin = ticks()};
  const int result = call();
  operation.end = ticks();
  operation.failed = failure_of(result);
  if (counters != nullptr) [[likely]] {
    count_in_counters(*log, *counters, operation);
  }
  return result;
}

// After dup() and similar calls: `to` refers to the same description as `from`. Not in a vfork's child, whose
// descriptors are not those of its parent. errno does not change.
inline int note_duplicate(int from, int to) noexcept {
  if (to >= 0 && !log_suspended()) {
    const int saved = errno;
    ThreadLog* log =
        session.state.load(std::memory_order_relaxed) == SessionState::running ? thread_log() : nullptr;
    if (log != nullptr) {
      known_description(*log, from);
    }
    if (from != to) {
      describe_duplicate(from, to);
      forget_stream(to);
    }
    errno = saved;
  }
  return to;
}

// After fcntl() with this result: notes a duplicate of `fd`, or its new O_APPEND flag.
inline int after_fcntl(int fd, int command, void* argument, int result) noexcept {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
    return note_duplicate(fd, result);
  }
  if (command == F_SETFL && result == 0) {
    if (Description* description = description_of(fd)) {
      description->appends = (reinterpret_cast<long>(argument) & O_APPEND) != 0;
    }
  }
  return result;
}

// After a call that made a descriptor of no file (a socket, for example): forgets what this number referred
// to before.
inline int note_without_file(int fd) noexcept {
  if (fd >= 0 && !log_suspended()) {
    forget(fd);
  }
  return fd;
}
// note_without_file() for the two descriptors that one call made, such as pipe(), if it succeeded.
inline int note_pair_without_files(int result, const int ends[2]) noexcept {
  if (result == 0) {
    note_without_file(ends[0]);
    note_without_file(ends[1]);
  }
  return result;
}

off64_t seek_and_count(int fd, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_SEEK, call, [=](ThreadLog& log, off64_t at, Operation& operation) {
    operation.failed = failure_of(at);
    count(log, fd, operation);
    if (Description* description = at < 0 ? nullptr : description_of(fd)) {
      description->position.store(at, std::memory_order_relaxed);
    }
  });
}

}  // namespace penstock::interpose
