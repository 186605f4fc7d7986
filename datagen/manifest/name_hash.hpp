// A 64-bit hash of names. It is the same on every machine and never changes.
#pragma once

#include <cstdint>
#include <string_view>

#include "io_backends/core/random.hpp"

namespace penstock {

// Computes FNV-1a and mixes its result, so that every bit of the name affects every bit of the hash.
inline uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return mix64(hash);
}

}  // namespace penstock
