// Bytes that are used where they lie, brought there.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

inline constexpr std::size_t kTouchedLine = 64;
inline constexpr std::size_t kTouchedPage = 4096;  // the smallest that there is, wherever this runs

// Calls `look` with a byte of each page that the bytes are in, wherever in a page they begin.
template <class Look>
void each_page(std::span<const std::byte> bytes, Look look) {
  if (bytes.empty()) return;
  for (std::size_t at = 0; at < bytes.size(); at += kTouchedPage) look(bytes[at]);
  look(bytes.back());
}

// The same of each cache line; two pages at a time, as what a core fetches ahead, it does for each by itself.
template <class Look>
void each_line(std::span<const std::byte> bytes, Look look) {
  if (bytes.empty()) return;
  std::size_t at = 0;
  for (; bytes.size() - at >= 2 * kTouchedPage; at += 2 * kTouchedPage)
    for (std::size_t line = at; line < at + kTouchedPage; line += kTouchedLine) {
      look(bytes[line]);
      look(bytes[line + kTouchedPage]);
    }
  for (; at < bytes.size(); at += kTouchedLine) look(bytes[at]);
  look(bytes.back());
}

// Looks at one byte of each page: what a mapping has not got yet is in memory then, as a device leaves it
// that writes there by itself. Any thread, both.
void touch_pages(std::span<const std::byte> bytes);

// Looks at one byte of each cache line: all of them have gone through this processor, as with a copy, and
// nothing was written.
void touch_lines(std::span<const std::byte> bytes);

}  // namespace penstock
