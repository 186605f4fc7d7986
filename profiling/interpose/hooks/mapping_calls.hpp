// Around calls that map files: `call` makes the call, and what it did is counted.
#pragma once

#include <sys/mman.h>

#include "profiling/interpose/counting/rings.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

void* mapped(int fd, int flags, std::size_t bytes, off64_t offset, auto call) noexcept {
  // Allocators map memory of no file while a thread's first log is being made.
  ThreadLog* log = fd < 0 || (flags & MAP_ANONYMOUS) != 0 ? nullptr : thread_log();
  if (log == nullptr) {
    return call();
  }
  const std::uint64_t begin = ticks();
  void* at = call();
  const std::uint64_t end = ticks();
  const bool failed = at == MAP_FAILED;
  if (!failed && any_rings() && ring_mapped(fd, offset, at)) {
    return at;  // memory that is shared with the kernel: no file's
  }
  if (!failed) {
    log->totals->mapped += bytes;
  }
  count(*log, fd,
        {.call = PENSTOCK_CALL_MAP,
         .failed = failed ? errno : 0,
         .offset = offset,
         .length = static_cast<std::int64_t>(bytes),
         .begin = begin,
         .end = end});
  return at;
}

int unmapped(void* at, std::size_t bytes, auto call) noexcept {
  if (any_rings() && !log_suspended()) {
    ring_unmapped(at, bytes);
  }
  return call();
}

}  // namespace penstock::interpose
