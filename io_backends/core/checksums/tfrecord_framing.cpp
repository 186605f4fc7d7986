#include "io_backends/core/checksums/tfrecord_framing.hpp"

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

namespace {

template <class Number>
void put_little_endian(Number value, std::span<std::byte, sizeof(Number)> out) {
  for (std::byte& byte : out) {
    byte = static_cast<std::byte>(value & 0xffU);
    value = static_cast<Number>(value >> 8U);
  }
}

template <class Number>
Number little_endian(std::span<const std::byte, sizeof(Number)> bytes) {
  Number value = 0;
  for (size_t i = 0; i < sizeof(Number); ++i)
    value |= static_cast<Number>(std::to_integer<Number>(bytes[i]) << (8 * i));
  return value;
}

}  // namespace

std::array<std::byte, kTfRecordHeaderBytes> tfrecord_header(uint64_t payload_bytes) {
  std::array<std::byte, kTfRecordHeaderBytes> header{};
  const std::span<std::byte, kTfRecordHeaderBytes> bytes(header);
  put_little_endian(payload_bytes, bytes.first<8>());
  put_little_endian(tfrecord_masked(crc32c(bytes.first<8>())), bytes.last<4>());
  return header;
}

std::array<std::byte, kTfRecordFooterBytes> tfrecord_footer(uint32_t payload_crc32c) {
  std::array<std::byte, kTfRecordFooterBytes> footer{};
  put_little_endian(tfrecord_masked(payload_crc32c), std::span<std::byte, kTfRecordFooterBytes>(footer));
  return footer;
}

std::optional<uint64_t> tfrecord_payload_bytes(std::span<const std::byte, kTfRecordHeaderBytes> header) {
  if (little_endian<uint32_t>(header.last<4>()) != tfrecord_masked(crc32c(header.first<8>())))
    return std::nullopt;
  return little_endian<uint64_t>(header.first<8>());
}

}  // namespace penstock
