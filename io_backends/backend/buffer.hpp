// Aligned memory that is used again and again: what reads land in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "io_backends/core/system/scope.hpp"

namespace penstock {

inline constexpr std::size_t kBufferAlignment = 4096;  // satisfies O_DIRECT on every device we know of

// Memory of one huge page (x86-64, aarch64 with pages of 4 KiB) is in one piece before the device: of a
// direct read of 128 KiB into small pages it may get 32. Buffers of as much ask for them.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// What a thread's buffer for reads of `bytes` should hold: where it matters, whole huge pages, since what is
// left over behind the last whole one would be in small ones. Costs up to one of them more.
constexpr std::size_t in_one_piece(std::size_t bytes) {
  constexpr std::size_t kLargeRead = std::size_t{64} << 10;
  if (bytes < kLargeRead || bytes > PTRDIFF_MAX - kHugePage) return bytes;
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// The next multiple of kBufferAlignment; of what is more than 64 bits hold, the last.
constexpr std::uint64_t whole_blocks(std::uint64_t bytes) {
  const std::uint64_t ragged = bytes % kBufferAlignment;
  if (ragged == 0 || bytes > UINT64_MAX - kBufferAlignment) return bytes - ragged;
  return bytes - ragged + kBufferAlignment;
}

// Owns `capacity()` bytes aligned to kBufferAlignment, from kHugePage on to that and in huge pages where the
// system gives them to who asks; growing throws the content away. Pages are not touched until used. Throws
// std::bad_alloc when the machine has no memory left. One thread at a time.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) { grow(bytes); }

  // At least `bytes` of capacity; keeps what is there if it suffices. The content is undefined afterwards
  // when it grew.
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
