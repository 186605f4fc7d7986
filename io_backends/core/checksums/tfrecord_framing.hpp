// The framing of records in TFRecord files and TensorBoard's event files. A record is its length (8 bytes),
// the masked CRC32C of the length (4), the payload, and the masked CRC32C of the payload (4). Numbers are
// little endian. Source: TensorFlow's guide, "TFRecords format details".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock {

inline constexpr size_t kTfRecordHeaderBytes = 12;
inline constexpr size_t kTfRecordFooterBytes = 4;

// Masks a CRC as TFRecord does: rotates it and adds a constant. Without the mask, the CRC of data that ends
// with its own CRC would always be the same number.
constexpr uint32_t tfrecord_masked(uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

// tfrecord_header() makes the header before a payload of `payload_bytes` bytes. tfrecord_footer() makes the
// footer after a payload with the given CRC32C.
std::array<std::byte, kTfRecordHeaderBytes> tfrecord_header(uint64_t payload_bytes);
std::array<std::byte, kTfRecordFooterBytes> tfrecord_footer(uint32_t payload_crc32c);

// Returns the length of the payload; no value if the checksum of the header is wrong.
std::optional<uint64_t> tfrecord_payload_bytes(std::span<const std::byte, kTfRecordHeaderBytes> header);

}  // namespace penstock
