#include "io_backends/base/crc32c.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#ifdef PENSTOCK_HAS_ISAL
#include <isa-l/crc.h>
#elif defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace penstock {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78U;  // 0x1EDC6F41 with its bits reversed

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    tables[0][i] = crc;
  }
  for (std::uint32_t i = 0; i < 256; ++i)
    for (std::size_t k = 1; k < tables.size(); ++k)
      tables[k][i] = (tables[k - 1][i] >> 8U) ^ tables[0][tables[k - 1][i] & 0xffU];
  return tables;
}

constexpr Tables kTables = make_tables();

// Eight bytes a step: table k moves a byte over the k bytes that follow it.
std::uint32_t update_portable(std::uint32_t crc, std::span<const std::byte> bytes) {
  while (bytes.size() >= 8) {
    std::array<std::uint8_t, 8> octets{};
    std::memcpy(octets.data(), bytes.data(), octets.size());
    for (std::size_t i = 0; i < 4; ++i) octets[i] ^= static_cast<std::uint8_t>(crc >> (8 * i));
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][octets[i]];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes)
    crc = (crc >> 8U) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xffU];
  return crc;
}

#ifdef PENSTOCK_HAS_ISAL

std::uint32_t update(std::uint32_t crc, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min<std::size_t>(bytes.size(), INT_MAX);
    // ISA-L only reads, but its type does not say so.
    void* data = const_cast<void*>(static_cast<const void*>(bytes.data()));  // NOLINT(*-const-cast)
    crc = crc32_iscsi(static_cast<unsigned char*>(data), static_cast<int>(count), crc);
    bytes = bytes.subspan(count);
  }
  return crc;
}

#elif defined(__x86_64__)

__attribute__((target("sse4.2"))) std::uint32_t update_sse42(std::uint32_t crc,
                                                             std::span<const std::byte> bytes) {
  std::uint64_t wide = crc;
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = _mm_crc32_u64(wide, word);
    bytes = bytes.subspan(8);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : bytes) crc = _mm_crc32_u8(crc, std::to_integer<std::uint8_t>(byte));
  return crc;
}

bool has_sse42() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

std::uint32_t update(std::uint32_t crc, std::span<const std::byte> bytes) {
  return has_sse42() ? update_sse42(crc, bytes) : update_portable(crc, bytes);
}

#else

std::uint32_t update(std::uint32_t crc, std::span<const std::byte> bytes) {
  return update_portable(crc, bytes);
}

#endif

// Product of two polynomials modulo the CRC's, coefficients reflected: bit 31 is x^0.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1U << 31U; bit != 0; bit >>= 1U) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1U) ^ ((b & 1U) != 0 ? kPolynomial : 0U);
  }
  return product;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  return ~update(~crc, bytes);
}

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc) {
  return ~update_portable(~crc, bytes);
}

std::uint32_t crc32c_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_bytes) {
  std::uint32_t shift = 1U << 31U;   // becomes x^(8 b_bytes)
  std::uint32_t square = 1U << 23U;  // x^8
  for (; b_bytes != 0; b_bytes >>= 1U) {
    if ((b_bytes & 1U) != 0) shift = multiply(shift, square);
    square = multiply(square, square);
  }
  return multiply(a, shift) ^ b;
}

const char* crc32c_method() {
#ifdef PENSTOCK_HAS_ISAL
  return "isa-l";
#elif defined(__x86_64__)
  return has_sse42() ? "sse4.2" : "portable";
#else
  return "portable";
#endif
}

}  // namespace penstock
