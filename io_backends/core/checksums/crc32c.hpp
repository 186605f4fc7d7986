// CRC32C (Castagnoli, polynomial 0x1EDC6F41, reflected), used for samples in manifests and for TFRecord
// framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io_backends/core/checksums/crc_tables.hpp"

namespace penstock {

// Continues a CRC: `crc` is the CRC of the data before `bytes` (0 if there is none). Returns the CRC of that
// data followed by `bytes`. Any thread may call it.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

// The CRC of A followed by B, given crc32c(A), crc32c(B) and B's length in bytes.
uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t b_bytes);

// Makes an object that does the same as crc32c_combine(), for one fixed length of B (`b_bytes`), with a few
// table look-ups. Any thread may call it.
CrcShift crc32c_fixed_shift(uint64_t b_bytes);

// crc32c_combine() in two steps, for lengths that occur again and again. First compute power =
// crc32c_power(length of B in bytes) once for each length. Then crc32c(A followed by B) =
// crc32c_shift(crc32c(A), power) ^ crc32c(B).
uint32_t crc32c_power(uint64_t bytes);
uint32_t crc32c_shift(uint32_t crc, uint32_t power);

// Returns which implementation this machine and this build use: "isa-l", "sse4.2" or "portable".
const char* crc32c_method();

// Computes crc32c() by tables. It is the fastest implementation for a few bytes, and tests compare the others
// with it.
uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t crc = 0);

}  // namespace penstock
