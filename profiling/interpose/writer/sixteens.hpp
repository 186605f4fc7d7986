// Text, sixteen bytes at a time: what is done between two system calls calls no function for it.
#pragma once

#include <cstddef>
#include <cstring>

namespace penstock::interpose {

using Sixteen = unsigned char __attribute__((vector_size(16)));
inline Sixteen sixteen_at(const char* text) noexcept {
  Sixteen bytes;
  memcpy(&bytes, text, sizeof(bytes));
  return bytes;
}

// Calls `piece` with where each sixteen of `length` (at least sixteen) bytes begin; the last ones may be some
// of those before.
template <typename Piece>
[[gnu::always_inline]] inline void in_sixteens(std::size_t length, Piece piece) noexcept {
  for (std::size_t i = 0; i + sizeof(Sixteen) < length; i += sizeof(Sixteen)) {
    piece(i);
  }
  piece(length - sizeof(Sixteen));
}

}  // namespace penstock::interpose
