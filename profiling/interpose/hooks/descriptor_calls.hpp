// The code around calls that make, copy, move and close descriptors. Each function gets the program's call as
// `call`. It makes the call, counts it and updates the table of descriptors (descriptors.hpp). These
// functions run in wrappers, under the rules of wrap.hpp.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include "profiling/interpose/counting/rings.hpp"
#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

// Makes and counts a call that opens `path`, which is relative to the directory `at`. `flags` are those of
// open(). After the call it may look for newly loaded libraries, to redirect their calls too
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

// Makes and counts a call that closes `fd`. The table of descriptors forgets `fd` before the call.
int close_and_count(int fd, auto call) noexcept {
  // A fork's child often closes descriptors before it executes another program. That alone must not begin a
  // session in the child, which thread_log() would do. So these calls are not counted.
  const bool is_not_recording = session.state.load(std::memory_order_relaxed) != SessionState::running;
  ThreadLog* log = is_not_recording ? nullptr : thread_log();
  if (log == nullptr) {
    if (!log_suspended()) {
      forget(fd);
    }
    return call();
  }
  if (has_rings()) [[unlikely]] {
    remove_ring(fd);
  }
  // The table forgets the descriptor before the close: right after the close, another thread may open another
  // file that gets the same number.
  penstock_counters* counters = forget_before_close(*log, fd);
  Operation operation{.call = PENSTOCK_CALL_CLOSE, .begin = ticks()};
  const int result = call();
  operation.end = ticks();
  operation.failed = failure_of(result);
  if (counters != nullptr) [[likely]] {
    count_in_counters(*log, *counters, operation);
  }
  return result;
}

// Notes that `to` now refers to the same open file as `from`. Called after dup() and similar calls. Does
// nothing in a vfork's child, whose descriptors are not those of its parent. errno does not change.
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

// Notes what fcntl() has changed: a duplicate of `fd`, or its new O_APPEND flag. Called after fcntl(), which
// returned `result`.
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

// Forgets what the number `fd` referred to before. Called after a call that made a descriptor without a file,
// such as a socket.
inline int note_without_file(int fd) noexcept {
  if (fd >= 0 && !log_suspended()) {
    forget(fd);
  }
  return fd;
}
// Like note_without_file(), for the two descriptors of a call such as pipe(), if the call succeeded.
inline int note_pair_without_files(int result, const int ends[2]) noexcept {
  if (result == 0) {
    note_without_file(ends[0]);
    note_without_file(ends[1]);
  }
  return result;
}

off64_t seek_and_count(int fd, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_SEEK, call, [=](ThreadLog& log, off64_t position, Operation& operation) {
    operation.failed = failure_of(position);
    count(log, fd, operation);
    if (Description* description = position < 0 ? nullptr : description_of(fd)) {
      description->position.store(position, std::memory_order_relaxed);
    }
  });
}

}  // namespace penstock::interpose
