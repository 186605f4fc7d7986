// CRC32C (Castagnoli, polynomial 0x1EDC6F41, reflected): of samples in manifests, and of TFRecord framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io_backends/core/checksums/crc_tables.hpp"

namespace penstock {

// The CRC of what `crc` stands for followed by `bytes`; start with 0. Any thread.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// The CRC of A followed by B, given crc32c(A), crc32c(B) and B's length in bytes.
std::uint32_t crc32c_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_bytes);

// crc32c_combine() for one length of B, in a few table look-ups. Any thread.
CrcShift crc32c_fixed_shift(std::uint64_t b_bytes);

// crc32c_combine() where lengths are many but come again: crc32c(A followed by B) is crc32c_shift(crc32c(A),
// power) ^ crc32c(B), with power = crc32c_power(bytes of B) kept instead of the length.
std::uint32_t crc32c_power(std::uint64_t bytes);
std::uint32_t crc32c_shift(std::uint32_t crc, std::uint32_t power);

// What this machine and build compute it with: "isa-l", "sse4.2" or "portable".
const char* crc32c_method();

// The table version: faster than the others for a few bytes, and what tests hold them against.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace penstock
