// Handles text sixteen bytes at a time, inline: the wrapped calls that need this make no function call for
// it.
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

// Calls `piece` with the offset of each group of sixteen bytes. `length` is at least 16. The last group ends
// at `length`, so it may overlap the group before it.
template <typename Piece>
[[gnu::always_inline]] inline void in_sixteens(std::size_t length, Piece piece) noexcept {
  for (std::size_t i = 0; i + sizeof(Sixteen) < length; i += sizeof(Sixteen)) {
    piece(i);
  }
  piece(length - sizeof(Sixteen));
}

}  // namespace penstock::interpose
