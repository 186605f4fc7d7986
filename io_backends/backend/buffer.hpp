// Aligned memory into which reads write, for repeated use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "io_backends/core/system/scope.hpp"

namespace penstock {

inline constexpr size_t kBufferAlignment = 4096;  // enough for O_DIRECT on all known devices

// Size of a huge page on x86-64, and on aarch64 with pages of 4 KiB. A huge page is contiguous memory for the
// device. With small pages the kernel may split a direct read of 128 KiB into 32 pieces. Buffers of at least
// this size ask for huge pages.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// The size that a buffer for reads of `bytes` bytes should have. Large reads get whole huge pages, because
// bytes after the last whole huge page would be in small pages. This costs at most one more huge page.
constexpr size_t whole_huge_pages(size_t bytes) {
  constexpr size_t kLargeReadBytes = size_t{64} << 10;
  if (bytes < kLargeReadBytes || bytes > PTRDIFF_MAX - kHugePageBytes) return bytes;
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

// `bytes` rounded up to a multiple of kBufferAlignment. If 64 bits cannot hold the result, `bytes` is rounded
// down.
constexpr uint64_t whole_blocks(uint64_t bytes) {
  const uint64_t bytes_past_block = bytes % kBufferAlignment;
  if (bytes_past_block == 0 || bytes > UINT64_MAX - kBufferAlignment) return bytes - bytes_past_block;
  return bytes - bytes_past_block + kBufferAlignment;
}

// Owns capacity() bytes aligned to kBufferAlignment. If capacity() is at least kHugePageBytes, the memory is
// aligned to kHugePageBytes, and in huge pages if the system has them. The class itself never reads or writes
// the memory. Only one thread at a time may use it.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes) { grow(bytes); }

  // Makes the capacity at least `bytes`. If it has to grow, the content is undefined afterwards. If there is
  // no memory, try_grow() returns false, and grow() and the constructor throw std::bad_alloc.
  void grow(size_t bytes);
  [[nodiscard]] bool try_grow(size_t bytes);
  size_t capacity() const { return capacity_; }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::span<std::byte> first(size_t bytes) { return {memory_.get(), bytes}; }
  std::span<const std::byte> first(size_t bytes) const { return {memory_.get(), bytes}; }

 private:
  std::unique_ptr<std::byte[], FreeBy<std::free>> memory_;
  size_t capacity_ = 0;
};

}  // namespace penstock
