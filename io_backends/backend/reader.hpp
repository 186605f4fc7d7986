// Reads one open object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

// An open object. Any thread.
class Reader {
 public:
  virtual ~Reader() = default;

  // The present size of the object in bytes.
  virtual Result<std::uint64_t> size() = 0;

  // Fills all of `out` from byte `offset`. `truncated` if the object ends before that.
  virtual Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) = 0;

  // Caps::zero_copy: returns the bytes in place. They are in memory and stay valid while the Reader lives. If
  // the object is shortened, the lost bytes read as zeros and the next call fails.
  virtual Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length);

  // Caps::collective: as read_at, but every rank of the job calls it together for the same object. A rank
  // that needs no bytes passes an empty span. All ranks then destroy the Reader together, too, in the same
  // order.
  virtual Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out);
};

// The error of a read of `length` bytes from `offset` that ends after the end of the object.
Error truncated_error(std::string_view name, std::uint64_t offset, std::uint64_t length);

}  // namespace penstock
