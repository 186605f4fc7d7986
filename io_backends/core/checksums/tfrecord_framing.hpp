// How TFRecord files (and TensorBoard's event files) frame their records: length (8 bytes), masked CRC32C of
// the length (4), payload, masked CRC32C of the payload (4), all little endian. From TensorFlow's guide,
// "TFRecords format details".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock {

inline constexpr std::size_t kTfRecordHeaderBytes = 12;
inline constexpr std::size_t kTfRecordFooterBytes = 4;

// CRCs are stored rotated and moved by a constant, so that the CRC of bytes that hold their own CRC is not
// always the same.
constexpr std::uint32_t tfrecord_masked(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

// What stands before a payload of that many bytes, and behind one of that CRC32C.
std::array<std::byte, kTfRecordHeaderBytes> tfrecord_header(std::uint64_t payload_bytes);
std::array<std::byte, kTfRecordFooterBytes> tfrecord_footer(std::uint32_t payload_crc32c);

// The payload's length; nothing if the header's checksum is wrong.
std::optional<std::uint64_t> tfrecord_payload_bytes(std::span<const std::byte, kTfRecordHeaderBytes> header);

}  // namespace penstock
