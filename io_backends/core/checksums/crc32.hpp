// CRC-32 (IEEE 802.3, polynomial 0x04C11DB7, reflected), used by ZIP archives, PNG chunks and gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io_backends/core/checksums/crc_tables.hpp"

namespace penstock {

// The CRC of some data followed by `bytes`, where `crc` is the CRC of that data (0 at the start). Any thread.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// The CRC of A followed by B, given crc32(A), crc32(B) and B's length in bytes.
std::uint32_t crc32_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_bytes);

// crc32_combine() prepared for one length of B: a few table look-ups. Any thread.
CrcShift crc32_fixed_shift(std::uint64_t b_bytes);

// The implementation in this build: "isa-l" or "portable".
const char* crc32_method();

// The implementation by tables, with which tests compare the other one.
std::uint32_t crc32_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace penstock
