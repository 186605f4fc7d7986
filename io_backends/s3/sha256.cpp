#include "io_backends/s3/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace penstock::s3 {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<uint32_t, 64> kRoundConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* at) {
  uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) word = word << 8U | std::to_integer<uint32_t>(at[i]);
  return word;
}

}  // namespace

void Sha256::add_block(const std::byte* block) {
  std::array<uint32_t, 64> w;  // NOLINT(*-member-init): filled below
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3U);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10U);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> working_state{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += working_state[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  const size_t pending_bytes = total_bytes_ % kBlockBytes;
  total_bytes_ += bytes.size();
  if (pending_bytes > 0) {
    const size_t count = std::min(kBlockBytes - pending_bytes, bytes.size());
    std::copy_n(bytes.begin(), count, pending_.begin() + ptrdiff_t(pending_bytes));
    bytes = bytes.subspan(count);
    if (pending_bytes + count < kBlockBytes) return;
    add_block(pending_.data());
  }
  for (; bytes.size() >= kBlockBytes; bytes = bytes.subspan(kBlockBytes)) add_block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
}

Digest Sha256::finish() {
  const uint64_t bits = total_bytes_ * 8;
  size_t pending_bytes = total_bytes_ % kBlockBytes;
  pending_[pending_bytes++] = std::byte{0x80};
  if (pending_bytes > kBlockBytes - 8) {
    std::fill(pending_.begin() + ptrdiff_t(pending_bytes), pending_.end(), std::byte{0});
    add_block(pending_.data());
    pending_bytes = 0;
  }
  std::fill(pending_.begin() + ptrdiff_t(pending_bytes), pending_.end(), std::byte{0});
  for (size_t i = 0; i < 8; ++i)
    pending_[kBlockBytes - 1 - i] = static_cast<std::byte>(bits >> (8 * i) & 0xffU);
  add_block(pending_.data());
  Digest digest{};
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = uint8_t(state_[i / 4] >> (24 - 8 * (i % 4)) & 0xffU);
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

Digest hmac_sha256(std::span<const uint8_t> key, std::string_view text) {
  std::array<uint8_t, 64> padded_key{};
  if (key.size() > padded_key.size()) {
    const Digest key_digest = sha256(std::as_bytes(key));
    std::copy(key_digest.begin(), key_digest.end(), padded_key.begin());
  } else {
    std::copy(key.begin(), key.end(), padded_key.begin());
  }
  const auto hash_with_key = [&](uint8_t mask, std::span<const std::byte> bytes) {
    std::array<uint8_t, 64> block = padded_key;
    for (uint8_t& byte : block) byte = uint8_t(byte ^ mask);
    Sha256 hash;
    hash.add(std::as_bytes(std::span(block)));
    hash.add(bytes);
    return hash.finish();
  };
  const Digest inner = hash_with_key(0x36, std::as_bytes(std::span(text)));
  return hash_with_key(0x5c, std::as_bytes(std::span(inner)));
}

std::string hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace penstock::s3
