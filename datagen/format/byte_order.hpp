// Reads and writes little-endian numbers in headers, on machines of any byte order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

// The number that `bytes` (at most 8) represent in little endian.
inline uint64_t from_little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8U | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

// The number that the `count` bytes at `offset` of `bytes` represent in little endian. The caller must have
// checked that `bytes` is long enough.
inline uint64_t number_at(std::span<const std::byte> bytes, size_t offset, size_t count) {
  return from_little_endian(bytes.subspan(offset, count));
}

// Reads the fields of a header, one after another from its first byte on. A read past the end returns 0, or
// no bytes, and makes ok() false.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::span<const std::byte> bytes(uint64_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::span<const std::byte> read_bytes = rest_.first(size_t(count));
    rest_ = rest_.subspan(read_bytes.size());
    return read_bytes;
  }
  uint64_t number(size_t count) { return from_little_endian(bytes(count)); }
  uint64_t u8() { return number(1); }
  uint64_t u16() { return number(2); }
  uint64_t u32() { return number(4); }
  uint64_t u64() { return number(8); }
  std::string text(uint64_t count) {
    std::string text;
    for (const std::byte byte : bytes(count)) text += char(byte);
    return text;
  }
  HeaderReader& skip(uint64_t count) {
    bytes(count);
    return *this;
  }

  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// Builds a header field by field.
class HeaderBytes {
 public:
  HeaderBytes() { bytes_.reserve(128); }  // enough for most headers
  HeaderBytes& number(uint64_t value, size_t count) {
    std::array<std::byte, 8> bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
    return append(std::span(bytes).first(count));
  }
  HeaderBytes& u8(uint64_t value) { return number(value, 1); }
  HeaderBytes& u16(uint64_t value) { return number(value, 2); }
  HeaderBytes& u32(uint64_t value) { return number(value, 4); }
  HeaderBytes& u64(uint64_t value) { return number(value, 8); }
  HeaderBytes& text(std::string_view text) { return append(std::as_bytes(std::span(text))); }
  HeaderBytes& append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  HeaderBytes& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }

  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> view() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace penstock
