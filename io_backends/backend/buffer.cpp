#include "io_backends/backend/buffer.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace penstock {

void Buffer::grow(size_t bytes) {
  if (!try_grow(bytes)) throw std::bad_alloc();
}

bool Buffer::try_grow(size_t bytes) {
  if (bytes <= capacity_) return true;
  if (bytes > PTRDIFF_MAX) return false;  // rounding up must not overflow to 0
  const size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  memory_.reset();
  capacity_ = 0;
  const bool use_huge_pages = rounded >= kHugePageBytes;
  void* memory = nullptr;
  if (::posix_memalign(&memory, use_huge_pages ? kHugePageBytes : kBufferAlignment, rounded) != 0)
    return false;
  memory_.reset(static_cast<std::byte*>(memory));
  // If there are no huge pages, the system provides small ones. So an error is ignored.
  if (use_huge_pages) static_cast<void>(::madvise(memory, rounded, MADV_HUGEPAGE));
  capacity_ = rounded;
  return true;
}

}  // namespace penstock
