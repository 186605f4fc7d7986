// Handles text in groups of sixteen bytes. All functions are inline, because function calls would make
// wrapped calls slower.
#pragma once

#include <cstddef>
#include <cstring>

namespace penstock::interpose {

using SixteenBytes = unsigned char __attribute__((vector_size(16)));
inline SixteenBytes sixteen_at(const char* text) noexcept {
  SixteenBytes bytes;
  memcpy(&bytes, text, sizeof(bytes));
  return bytes;
}

// Calls `visit` with the offset of each group of sixteen bytes. `length` is at least 16. The last group ends
// at `length`, so it may overlap the group before it.
template <typename Visit>
[[gnu::always_inline]] inline void each_group(size_t length, Visit visit) noexcept {
  for (size_t i = 0; i + sizeof(SixteenBytes) < length; i += sizeof(SixteenBytes)) {
    visit(i);
  }
  visit(length - sizeof(SixteenBytes));
}

}  // namespace penstock::interpose
