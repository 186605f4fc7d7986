// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), which sign requests to object stores. The code is portable
// and uses no SHA instructions: it hashes a few hundred megabytes per second.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::s3 {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  Digest finish();  // returns the hash of all added bytes; no other call may follow

 private:
  static constexpr size_t kBlockBytes = 64;
  void add_block(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockBytes> pending_{};
  uint64_t total_bytes_ = 0;
};

Digest sha256(std::span<const std::byte> bytes);
Digest hmac_sha256(std::span<const uint8_t> key, std::string_view text);
std::string hex(const Digest& digest);  // hexadecimal digits in lower case

}  // namespace penstock::s3
