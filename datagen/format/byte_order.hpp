// Little-endian numbers in headers, whatever the machine's own order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

// The number in all of `bytes`, at most 8.
inline std::uint64_t from_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

// The number of `count` bytes at `offset`; the caller has seen that they are there.
inline std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t count) {
  return from_little_endian(bytes.subspan(offset, count));
}

// A header in the making.
class HeaderBytes {
 public:
  HeaderBytes& number(std::uint64_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  HeaderBytes& u8(std::uint64_t value) { return number(value, 1); }
  HeaderBytes& u16(std::uint64_t value) { return number(value, 2); }
  HeaderBytes& u32(std::uint64_t value) { return number(value, 4); }
  HeaderBytes& u64(std::uint64_t value) { return number(value, 8); }
  HeaderBytes& text(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  HeaderBytes& append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  HeaderBytes& zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }

  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> view() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace penstock
