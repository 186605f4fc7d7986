// CRC-32 (IEEE 802.3, polynomial 0x04C11DB7, reflected), used by ZIP archives, PNG chunks and gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io_backends/core/checksums/crc_tables.hpp"

namespace penstock {

// Continues a CRC: `crc` is the CRC of the data before `bytes` (0 if there is none). Returns the CRC of that
// data followed by `bytes`. Any thread may call it.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t crc = 0);

// The CRC of A followed by B, given crc32(A), crc32(B) and B's length in bytes.
uint32_t crc32_combine(uint32_t a, uint32_t b, uint64_t b_bytes);

// Makes an object that does the same as crc32_combine(), for one fixed length of B (`b_bytes`), with a few
// table look-ups. Any thread may call it.
CrcShift crc32_fixed_shift(uint64_t b_bytes);

// Returns which implementation this build uses: "isa-l" or "portable".
const char* crc32_method();

// Computes crc32() by tables. Tests compare the other implementation with it.
uint32_t crc32_portable(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace penstock
