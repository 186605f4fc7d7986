// Wrappers of calls that map files. All mapped bytes are counted, because only the kernel knows which of them
// the program touches.
// Threads, locks, memory and signals: the rules of wrap.hpp.
#include "profiling/interpose/hooks/mapping_calls.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

PENSTOCK_WRAP_TWINS(void*, mmap, mmap64,
                    (void* at, size_t bytes, int protection, int flags, int fd, off64_t offset),
                    map_and_count(fd, flags, bytes, offset,
                                  [&] { return real(at, bytes, protection, flags, fd, offset); }))
PENSTOCK_WRAP(int, munmap, (void* at, size_t bytes)) {
  return unmap_and_end_rings(at, bytes, [&] { return real_munmap(at, bytes); });
}
