// A 64-bit hash of names, the same everywhere and for good.
#pragma once

#include <cstdint>
#include <string_view>

#include "io_backends/core/random.hpp"

namespace penstock {

// FNV-1a, mixed: every bit of the name reaches every bit of the hash.
inline std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return mix64(hash);
}

}  // namespace penstock
