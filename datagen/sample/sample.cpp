#include "datagen/sample/sample.hpp"

#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

size_t element_bytes(Element element) {
  constexpr size_t kBytes[] = {1, 4, 8, 4, 8};
  return kBytes[size_t(element)];
}

std::string_view element_name(Element element) {
  constexpr std::string_view kNames[] = {"uint8", "int32", "int64", "float32", "float64"};
  return kNames[size_t(element)];
}

uint64_t field_bytes(const Field& field) {
  uint64_t bytes = element_bytes(field.element);
  for (const uint64_t side : field.shape) bytes *= side;
  return bytes;
}

uint32_t crc32c_of(const FieldBytes& field, uint32_t before) {
  // If the field has at least this number of bytes and knows their CRC32C, that CRC32C is combined with
  // `before`. For fewer bytes it is faster to compute the CRC32C from the bytes.
  constexpr uint64_t kMinCombinedBytes = 8192;
  if (field.crc32c && before == 0) return *field.crc32c;
  if (field.crc32c && field.bytes >= kMinCombinedBytes)
    return crc32c_combine(before, *field.crc32c, field.bytes);
  uint32_t crc = before;
  for (const std::span<const std::byte> piece : field.pieces) crc = crc32c(piece, crc);
  return crc;
}

uint32_t crc32_of(const FieldBytes& field) {
  if (field.crc32 != nullptr) return field.crc32->crc32();
  uint32_t crc = 0;
  for (const std::span<const std::byte> piece : field.pieces) crc = crc32(piece, crc);
  return crc;
}

std::vector<std::byte> joined(const FieldBytes& field) {
  std::vector<std::byte> bytes;
  bytes.reserve(size_t(field.bytes));
  for (const std::span<const std::byte> piece : field.pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

}  // namespace penstock
