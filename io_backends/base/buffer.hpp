// Aligned memory that is used again and again: what reads land in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace penstock {

inline constexpr std::size_t kBufferAlignment = 4096;  // satisfies O_DIRECT on every device we know of

// The next multiple of kBufferAlignment; of what is more than 64 bits hold, the last.
constexpr std::uint64_t whole_blocks(std::uint64_t bytes) {
  const std::uint64_t ragged = bytes % kBufferAlignment;
  if (ragged == 0 || bytes > UINT64_MAX - kBufferAlignment) return bytes - ragged;
  return bytes - ragged + kBufferAlignment;
}

// Owns `capacity()` bytes aligned to kBufferAlignment; growing throws the content away. Pages are not touched
// until used. Throws std::bad_alloc when the machine has no memory left. One thread at a time.
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
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace penstock
