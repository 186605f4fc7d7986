#include "io_backends/core/checksums/crc32.hpp"

#ifdef PENSTOCK_HAS_ISAL
#include <isa-l/crc.h>
#endif

namespace penstock {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320U;  // 0x04C11DB7 with its bits reversed
constexpr CrcTables kTables = make_crc_tables(kPolynomial);
constexpr CrcPowers kPowers = make_crc_powers(kPolynomial);

uint32_t multiply(uint32_t a, uint32_t b) {
  return crc_multiply(kPolynomial, a, b);
}

}  // namespace

uint32_t crc32_portable(std::span<const std::byte> bytes, uint32_t crc) {
  return ~crc_update(kTables, ~crc, bytes);
}

uint32_t crc32_combine(uint32_t a, uint32_t b, uint64_t b_bytes) {
  return multiply(a, crc_power(kPowers, b_bytes, multiply)) ^ b;
}

CrcShift crc32_fixed_shift(uint64_t b_bytes) {
  return {kPolynomial, crc_power(kPowers, b_bytes, multiply)};
}

#ifdef PENSTOCK_HAS_ISAL

uint32_t crc32(std::span<const std::byte> bytes, uint32_t crc) {
  // crc32_gzip_refl() itself inverts the CRC before and after its work, so it is not inverted here.
  return crc32_gzip_refl(crc,
                         reinterpret_cast<const unsigned char*>(bytes.data()),  // NOLINT(*-reinterpret-cast)
                         bytes.size());
}

const char* crc32_method() {
  return "isa-l";
}

#else

uint32_t crc32(std::span<const std::byte> bytes, uint32_t crc) {
  return crc32_portable(bytes, crc);
}

const char* crc32_method() {
  return "portable";
}

#endif

}  // namespace penstock
