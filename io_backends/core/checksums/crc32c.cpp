#include "io_backends/core/checksums/crc32c.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

#ifdef PENSTOCK_HAS_ISAL
#include <isa-l/crc.h>
#endif
#ifdef __x86_64__
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

namespace penstock {
namespace {

constexpr uint32_t kPolynomialC = 0x82f63b78U;  // 0x1EDC6F41 with its bits reversed

constexpr CrcTables kTablesC = make_crc_tables(kPolynomialC);
constexpr CrcPowers kPowersC = make_crc_powers(kPolynomialC);

uint32_t update_portable(uint32_t crc, std::span<const std::byte> bytes) {
  return crc_update(kTablesC, crc, bytes);
}

#if defined(__x86_64__)

// Multiplies a and b as polynomials modulo the polynomial of the CRC. `bits` is their 64-bit product,
// reflected: bit 63 is x^0. The upper half of `bits` is already reduced. The instruction crc32 multiplies the
// lower half by x^32 and reduces it.
__attribute__((target("sse4.2,pclmul"))) uint32_t multiply_clmul(uint32_t a, uint32_t b) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(int(a)), _mm_cvtsi32_si128(int(b)), 0);
  const uint64_t bits = uint64_t(_mm_cvtsi128_si64(product)) << 1U;
  return uint32_t(bits >> 32U) ^ _mm_crc32_u32(0, uint32_t(bits));
}

uint32_t multiply_crc32c(uint32_t a, uint32_t b) {
  static const bool supported =
      __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
  return supported ? multiply_clmul(a, b) : crc_multiply(kPolynomialC, a, b);
}

#else

uint32_t multiply_crc32c(uint32_t a, uint32_t b) {
  return crc_multiply(kPolynomialC, a, b);
}

#endif

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t update_sse42(uint32_t crc, std::span<const std::byte> bytes) {
  uint64_t wide_crc = crc;
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide_crc = _mm_crc32_u64(wide_crc, word);
    bytes = bytes.subspan(8);
  }
  crc = uint32_t(wide_crc);
  for (const std::byte byte : bytes) crc = _mm_crc32_u8(crc, std::to_integer<uint8_t>(byte));
  return crc;
}

// Uses the instruction crc32 for 8 bytes at a time, or tables on a processor without it.
uint32_t update_plain(uint32_t crc, std::span<const std::byte> bytes) {
  static const bool supported = __builtin_cpu_supports("sse4.2") != 0;
  return supported ? update_sse42(crc, bytes) : update_portable(crc, bytes);
}

#else

uint32_t update_plain(uint32_t crc, std::span<const std::byte> bytes) {
  return update_portable(crc, bytes);
}

#endif

#ifdef PENSTOCK_HAS_ISAL

uint32_t update(uint32_t crc, std::span<const std::byte> bytes) {
  // ISA-L takes 50 ns to start, so it is faster only for many bytes.
  constexpr size_t kIsalMinBytes = 96;
  if (bytes.size() < kIsalMinBytes) return update_plain(crc, bytes);
  while (!bytes.empty()) {
    const size_t count = std::min<size_t>(bytes.size(), INT_MAX);
    // ISA-L only reads, but its parameter is not const.
    void* data = const_cast<void*>(static_cast<const void*>(bytes.data()));  // NOLINT(*-const-cast)
    crc = crc32_iscsi(static_cast<unsigned char*>(data), int(count), crc);
    bytes = bytes.subspan(count);
  }
  return crc;
}

#else

uint32_t update(uint32_t crc, std::span<const std::byte> bytes) {
  return update_plain(crc, bytes);
}

#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  return ~update(~crc, bytes);
}

uint32_t crc32c_portable(std::span<const std::byte> bytes, uint32_t crc) {
  return ~update_portable(~crc, bytes);
}

uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t b_bytes) {
  return crc32c_shift(a, crc32c_power(b_bytes)) ^ b;
}

uint32_t crc32c_power(uint64_t bytes) {
  return crc_power(kPowersC, bytes, multiply_crc32c);
}

uint32_t crc32c_shift(uint32_t crc, uint32_t power) {
  return multiply_crc32c(crc, power);
}

CrcShift crc32c_fixed_shift(uint64_t b_bytes) {
  return {kPolynomialC, crc32c_power(b_bytes)};
}

const char* crc32c_method() {
#ifdef PENSTOCK_HAS_ISAL
  return "isa-l";
#elif defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2") != 0 ? "sse4.2" : "portable";
#else
  return "portable";
#endif
}

}  // namespace penstock
