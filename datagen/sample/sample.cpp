#include "datagen/sample/sample.hpp"

#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

std::size_t element_bytes(Element element) {
  switch (element) {
    case Element::u8:
      return 1;
    case Element::i32:
    case Element::f32:
      return 4;
    case Element::i64:
    case Element::f64:
      break;
  }
  return 8;
}

std::string_view element_name(Element element) {
  switch (element) {
    case Element::u8:
      return "uint8";
    case Element::i32:
      return "int32";
    case Element::i64:
      return "int64";
    case Element::f32:
      return "float32";
    case Element::f64:
      break;
  }
  return "float64";
}

std::uint64_t field_bytes(const Field& field) {
  std::uint64_t bytes = element_bytes(field.element);
  for (const std::uint64_t side : field.shape) bytes *= side;
  return bytes;
}

std::uint32_t crc32c_of(const FieldBytes& field, std::uint32_t before) {
  constexpr std::uint64_t kCombinedFrom = 8192;  // shorter ones are read again sooner than they are combined
  if (field.crc32c && before == 0) return *field.crc32c;
  if (field.crc32c && field.bytes >= kCombinedFrom) return crc32c_combine(before, *field.crc32c, field.bytes);
  std::uint32_t crc = before;
  for (const std::span<const std::byte> piece : field.pieces) crc = crc32c(piece, crc);
  return crc;
}

std::uint32_t crc32_of(const FieldBytes& field) {
  if (field.crc32 != nullptr) return field.crc32->crc32();
  std::uint32_t crc = 0;
  for (const std::span<const std::byte> piece : field.pieces) crc = crc32(piece, crc);
  return crc;
}

std::vector<std::byte> joined(const FieldBytes& field) {
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(field.bytes));
  for (const std::span<const std::byte> piece : field.pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

}  // namespace penstock
