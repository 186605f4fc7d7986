// Tables and arithmetic for reflected 32-bit CRCs with any polynomial.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock {

// Entry [k][b] is the change of the CRC by a byte b that is followed by k more bytes.
using CrcTables = std::array<std::array<uint32_t, 256>, 8>;

// Makes the tables for a polynomial, which is given with its bits reversed.
constexpr CrcTables make_crc_tables(uint32_t polynomial) {
  CrcTables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? polynomial : 0U);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t k = 1; k < tables.size(); ++k)
      tables[k][i] = (tables[k - 1][i] >> 8U) ^ tables[0][tables[k - 1][i] & 0xffU];
  return tables;
}

// Continues a CRC over `bytes` and returns the new CRC. The caller inverts the CRC before the first bytes and
// after the last ones; this function does not. The first loop takes eight bytes at a time.
inline uint32_t crc_update(const CrcTables& tables, uint32_t crc, std::span<const std::byte> bytes) {
  while (bytes.size() >= 8) {
    std::array<uint8_t, 8> octets{};
    std::memcpy(octets.data(), bytes.data(), octets.size());
    for (size_t i = 0; i < 4; ++i) octets[i] ^= uint8_t(crc >> (8 * i));
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][octets[i]];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes)
    crc = (crc >> 8U) ^ tables[0][(crc ^ std::to_integer<uint32_t>(byte)) & 0xffU];
  return crc;
}

// The product of two polynomials modulo the polynomial of the CRC. Coefficients are reflected: bit 31 is x^0.
constexpr uint32_t crc_multiply(uint32_t polynomial, uint32_t a, uint32_t b) {
  uint32_t product = 0;
  // masks instead of branches, because a processor could not predict the branches
  for (int i = 0; i < 32; ++i, a <<= 1U) {
    product ^= b & (0U - (a >> 31U));
    b = (b >> 1U) ^ (polynomial & (0U - (b & 1U)));
  }
  return product;
}

// Entry [k][n] is x^(8 * n * 256^k) modulo the polynomial. Multiplying a CRC by it gives the CRC after n *
// 256^k more zero bytes.
using CrcPowers = std::array<std::array<uint32_t, 256>, 8>;
constexpr CrcPowers make_crc_powers(uint32_t polynomial) {
  CrcPowers powers{};
  uint32_t step = 1U << 23U;  // x^8
  for (auto& digit : powers) {
    uint32_t power = 1U << 31U;
    for (uint32_t& entry : digit) {
      entry = power;
      power = crc_multiply(polynomial, power, step);
    }
    step = power;
  }
  return powers;
}

// Returns x^(8 * bytes) modulo the polynomial. Multiplying a CRC by it gives the CRC after `bytes` more zero
// bytes. `multiply(a, b)` is crc_multiply() with the CRC's polynomial, or a faster function with the same
// result.
template <class Multiply>
uint32_t crc_power(const CrcPowers& powers, uint64_t bytes, Multiply multiply) {
  uint32_t power = powers[0][bytes & 0xffU];
  for (size_t k = 1; (bytes >>= 8U) != 0; ++k) power = multiply(power, powers[k][bytes & 0xffU]);
  return power;
}

// Computes the CRC of A followed by B from the CRCs of A and B, with a few table look-ups. All B must have
// one fixed length. Any thread may use it.
class CrcShift {
 public:
  // `power` is the result of crc_power() for the length of B.
  CrcShift(uint32_t polynomial, uint32_t power) {
    for (uint32_t byte = 0; byte < 4; ++byte)
      for (uint32_t value = 0; value < 256; ++value)
        shifted_[byte][value] = crc_multiply(polynomial, value << (8 * byte), power);
  }
  uint32_t combine(uint32_t a, uint32_t b) const {
    return shifted_[0][a & 0xffU] ^ shifted_[1][a >> 8U & 0xffU] ^ shifted_[2][a >> 16U & 0xffU] ^
           shifted_[3][a >> 24U] ^ b;
  }

 private:
  // Entry [k][v] is the part that byte k of A's CRC, with the value v, adds to the CRC of A followed by B.
  std::array<std::array<uint32_t, 256>, 4> shifted_{};
};

}  // namespace penstock
