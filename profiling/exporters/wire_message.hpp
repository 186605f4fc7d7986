// A protobuf message, made field by field in the wire format (protobuf.dev, "Encoding"). Text must be UTF-8:
// readers refuse the whole message else.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

class WireMessage {
 public:
  // int32, int64, uint64, bool, enum.
  WireMessage& number(unsigned field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3U);
    varint(value);
    return *this;
  }
  WireMessage& real(unsigned field, double value) { return fixed(field, 1, value); }
  WireMessage& real(unsigned field, float value) { return fixed(field, 5, value); }
  // string, bytes, or a message.
  WireMessage& bytes(unsigned field, std::string_view value) {
    varint(std::uint64_t{field} << 3U | 2U);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  WireMessage& message(unsigned field, const WireMessage& value) { return bytes(field, value.bytes_); }
  WireMessage& packed(unsigned field, std::span<const double> values) {
    std::string all;
    for (const double value : values) append_fixed(all, value);
    return bytes(field, all);
  }

  const std::string& text() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  template <class Value>
  static void append_fixed(std::string& out, Value value) {  // low bytes first on every machine
    std::uint64_t bits = 0;
    if constexpr (sizeof value == 4) {
      std::uint32_t narrow = 0;
      std::memcpy(&narrow, &value, sizeof value);
      bits = narrow;
    } else {
      std::memcpy(&bits, &value, sizeof value);
    }
    for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(bits >> (8 * i));
  }
  template <class Value>
  WireMessage& fixed(unsigned field, unsigned type, Value value) {
    varint(std::uint64_t{field} << 3U | type);
    append_fixed(bytes_, value);
    return *this;
  }

  std::string bytes_;
};

}  // namespace penstock
