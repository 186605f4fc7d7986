// Functions that wrappers use for calls that map and unmap files. Each function gets the program's call as
// `call`, makes it and counts it. The rules of wrap.hpp hold here.
#pragma once

#include <sys/mman.h>

#include "profiling/interpose/counting/rings.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

// Makes and counts a call that maps a file, or the memory of a ring of io_uring.
void* map_and_count(int fd, int flags, size_t bytes, off64_t offset, auto call) noexcept {
  // A mapping of anonymous memory is not counted, so thread_log() is not called for it: thread_log() would
  // make the thread's first log, and an allocator may map memory while this log is being made.
  ThreadLog* log = fd < 0 || (flags & MAP_ANONYMOUS) != 0 ? nullptr : thread_log();
  if (log == nullptr) {
    return call();
  }
  const uint64_t begin = ticks();
  void* address = call();
  const uint64_t end = ticks();
  const bool failed = address == MAP_FAILED;
  if (!failed && has_rings() && note_ring_memory(fd, offset, address)) {
    return address;  // mapped memory of a ring of io_uring does not count as a file
  }
  if (!failed) {
    log->totals->mapped += bytes;
  }
  count(*log, fd,
        {.call = PENSTOCK_CALL_MAP,
         .failed = failed ? errno : 0,
         .offset = offset,
         .length = int64_t(bytes),
         .begin = begin,
         .end = end});
  return address;
}

// Makes a call that unmaps memory. If rings of io_uring are in that memory, they are removed before the call.
int unmap_and_end_rings(void* address, size_t bytes, auto call) noexcept {
  if (has_rings() && !log_suspended()) {
    remove_rings_in(address, bytes);
  }
  return call();
}

}  // namespace penstock::interpose
