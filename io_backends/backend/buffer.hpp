// Aligned memory for reads, used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "io_backends/core/system/scope.hpp"

namespace penstock {

inline constexpr std::size_t kBufferAlignment = 4096;  // enough for O_DIRECT on all known devices

// Bytes of a huge page (x86-64, aarch64 with pages of 4 KiB). A huge page is contiguous in physical memory.
// Without it, a direct read of 128 KiB may reach the device as 32 pieces. Buffers of at least this size use
// huge pages.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// The size of a thread's buffer for reads of `bytes`. A large buffer is rounded up to whole huge pages,
// because the rest after the last whole one would be in small pages. This costs up to one huge page more.
constexpr std::size_t in_one_piece(std::size_t bytes) {
  constexpr std::size_t kLargeRead = std::size_t{64} << 10;
  if (bytes < kLargeRead || bytes > PTRDIFF_MAX - kHugePage) return bytes;
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// Rounds up to a multiple of kBufferAlignment; if that does not fit into 64 bits, rounds down.
constexpr std::uint64_t whole_blocks(std::uint64_t bytes) {
  const std::uint64_t ragged = bytes % kBufferAlignment;
  if (ragged == 0 || bytes > UINT64_MAX - kBufferAlignment) return bytes - ragged;
  return bytes - ragged + kBufferAlignment;
}

// Owns `capacity()` bytes aligned to kBufferAlignment. From kHugePage bytes on they are aligned to kHugePage
// and in huge pages, if the system grants them. Growing discards the content. Pages take no memory before
// their first use. Throws std::bad_alloc if no memory is left. One thread at a time.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) { grow(bytes); }

  // Makes the capacity at least `bytes`. Does nothing if it already is. If it grows, the content is
  // undefined.
  void grow(std::size_t bytes);
  std::size_t capacity() const { return capacity_; }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::span<std::byte> first(std::size_t bytes) { return {memory_.get(), bytes}; }
  std::span<const std::byte> first(std::size_t bytes) const { return {memory_.get(), bytes}; }

 private:
  std::unique_ptr<std::byte[], FreeBy<std::free>> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace penstock
