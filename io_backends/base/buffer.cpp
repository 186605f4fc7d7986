#include "io_backends/base/buffer.hpp"

#include <cstdint>
#include <new>

namespace penstock {

void Buffer::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{kBufferAlignment});
}

void Buffer::grow(std::size_t bytes) {
  if (bytes <= capacity_) return;
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();  // rounding up may not come to nothing
  const std::size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  memory_.reset();
  capacity_ = 0;
  memory_.reset(static_cast<std::byte*>(::operator new (rounded, std::align_val_t{kBufferAlignment})));
  capacity_ = rounded;
}

}  // namespace penstock
