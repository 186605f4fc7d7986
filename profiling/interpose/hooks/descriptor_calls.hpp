// Functions that wrappers use for calls that make, copy, move and close descriptors. Each function gets the
// program's call as `call`. It makes the call, counts it and updates the table of descriptors
// (descriptors.hpp). The rules of wrap.hpp hold here.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include "profiling/interpose/counting/rings.hpp"
#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

// Makes and counts a call that opens `path`, which is relative to the directory `at`. `flags` are those of
// open(). If libraries may have been loaded since the last search, the calls of these libraries are
// redirected after the open (rewrite_new_objects()).
int open_and_count(int at, const char* path, int flags, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OPEN, call, [=](ThreadLog& log, int fd, Operation& operation) {
    const int saved_errno = errno;
    operation.failed = fd < 0 ? saved_errno : 0;
    count_open(log, at, path, flags, fd, operation);
    if (session.may_have_new_objects.load(std::memory_order_relaxed)) [[unlikely]] {
      rewrite_new_objects();
    }
    errno = saved_errno;
  });
}

// Makes and counts a call that closes `fd`. The table of descriptors forgets `fd` before the call.
int close_and_count(int fd, auto call) noexcept {
  // Do not count the call if nothing is being recorded. A fork's child often closes descriptors before it
  // executes another program. thread_log() would begin a session in that child, and a close alone is no
  // reason for a session.
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

// Notes that `to` now refers to the same open file as `from`, after dup() or a similar call. Does nothing in
// a vfork's child: the table of descriptors is its parent's, whose descriptors have not changed. errno does
// not change.
inline int note_duplicate(int from, int to) noexcept {
  if (to >= 0 && !log_suspended()) {
    const int saved_errno = errno;
    ThreadLog* log =
        session.state.load(std::memory_order_relaxed) == SessionState::running ? thread_log() : nullptr;
    if (log != nullptr) {
      known_description(*log, from);
    }
    if (from != to) {
      describe_duplicate(from, to);
      forget_stream(to);
    }
    errno = saved_errno;
  }
  return to;
}

// Notes the effect of fcntl(), which returned `result`: a duplicate of `fd`, or a change of its flag
// O_APPEND.
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

// Notes that `fd` is a descriptor without a file, such as a socket: forgets what the number referred to
// before.
inline int note_without_file(int fd) noexcept {
  if (fd >= 0 && !log_suspended()) {
    forget(fd);
  }
  return fd;
}
// Does what note_without_file() does for the two descriptors of a call such as pipe(). Does nothing if that
// call failed.
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
