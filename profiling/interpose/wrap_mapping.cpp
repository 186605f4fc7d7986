// Files in memory. What is mapped is known; what of it is touched the kernel alone knows.
#include <sys/mman.h>

#include "profiling/interpose/rings.hpp"
#include "profiling/interpose/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are outside of any namespace, as what they stand in
                                      // for

namespace {

template <typename Call>
void* mapped(int fd, int flags, std::size_t bytes, off64_t offset, Call call) noexcept {
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

}  // namespace

PENSTOCK_WRAP(void*, mmap, (void* at, size_t bytes, int protection, int flags, int fd, off64_t offset)) {
  return mapped(fd, flags, bytes, offset,
                [&] { return real_mmap(at, bytes, protection, flags, fd, offset); });
}
PENSTOCK_WRAP(void*, mmap64, (void* at, size_t bytes, int protection, int flags, int fd, off64_t offset)) {
  return mapped(fd, flags, bytes, offset,
                [&] { return real_mmap64(at, bytes, protection, flags, fd, offset); });
}
PENSTOCK_WRAP(int, munmap, (void* at, size_t bytes)) {
  if (any_rings() && !log_suspended()) {
    ring_unmapped(at, bytes);
  }
  return real_munmap(at, bytes);
}
