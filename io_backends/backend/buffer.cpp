#include "io_backends/backend/buffer.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace penstock {

void Buffer::grow(std::size_t bytes) {
  if (bytes <= capacity_) return;
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();  // else rounding up could overflow to 0
  const std::size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  memory_.reset();
  capacity_ = 0;
  const bool huge = rounded >= kHugePage;
  void* memory = nullptr;
  if (::posix_memalign(&memory, huge ? kHugePage : kBufferAlignment, rounded) != 0) throw std::bad_alloc();
  memory_.reset(static_cast<std::byte*>(memory));
  // If the system has no huge pages left, it gives small ones. The buffer works with them, too.
  if (huge) static_cast<void>(::madvise(memory, rounded, MADV_HUGEPAGE));
  capacity_ = rounded;
}

}  // namespace penstock
