// Bytes that parsers look at a few at a time, wherever they lie: in an object, in memory, compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

// Bytes of an object.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

class ByteWindow {
 public:
  virtual ~ByteWindow() = default;

  // `length` bytes from `offset` on, valid until the next call. `truncated` where there are fewer.
  virtual Result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t length) = 0;

  // An error of that kind that names the object and the offset.
  virtual Error error(Errc code, std::uint64_t offset, std::string_view what) const = 0;
  Error corrupt(std::uint64_t offset, std::string_view what) const {
    return error(Errc::corrupt, offset, what);
  }

 protected:
  ByteWindow() = default;
  ByteWindow(const ByteWindow&) = default;
  ByteWindow(ByteWindow&&) = default;
  ByteWindow& operator=(const ByteWindow&) = default;
  ByteWindow& operator=(ByteWindow&&) = default;
};

}  // namespace penstock
