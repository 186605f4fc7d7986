// Builds a protobuf message field by field in the wire format (protobuf.dev, "Encoding"). Text must be UTF-8;
// otherwise readers reject the whole message.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock {

class WireMessage {
 public:
  // Adds a field of the type int32, int64, uint64, bool or enum.
  WireMessage& number(unsigned field, uint64_t value) {
    append_varint(uint64_t{field} << 3U);
    append_varint(value);
    return *this;
  }
  // Adds a field of the type float or double.
  template <std::floating_point Real>
  WireMessage& real(unsigned field, Real value) {
    append_varint(uint64_t{field} << 3U | (sizeof value == 4 ? 5U : 1U));
    append_fixed(bytes_, value);
    return *this;
  }
  // Adds a field of the type string or bytes, or a message that is already encoded.
  WireMessage& bytes(unsigned field, std::string_view value) {
    append_varint(uint64_t{field} << 3U | 2U);
    append_varint(value.size());
    bytes_ += value;
    return *this;
  }
  WireMessage& message(unsigned field, const WireMessage& value) { return bytes(field, value.bytes_); }
  WireMessage& packed(unsigned field, std::span<const double> values) {
    std::string encoded;
    for (const double value : values) append_fixed(encoded, value);
    return bytes(field, encoded);
  }

  const std::string& text() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void append_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += char(value | 0x80U);
    bytes_ += char(value);
  }
  template <class Value>
  static void append_fixed(std::string& out, Value value) {  // little-endian on every machine
    using Bits = std::conditional_t<sizeof value == 4, uint32_t, uint64_t>;
    const uint64_t bits = std::bit_cast<Bits>(value);
    for (size_t i = 0; i < sizeof value; ++i) out += char(bits >> (8 * i));
  }

  std::string bytes_;
};

}  // namespace penstock
