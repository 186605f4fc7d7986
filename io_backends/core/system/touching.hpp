// Brings mapped bytes into memory or through the processor's caches, without copying them.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

inline constexpr size_t kTouchedLineBytes = 64;
inline constexpr size_t kTouchedPageBytes = 4096;  // the smallest page size of all supported machines

// Calls `visit` with one byte of each page that contains some of `bytes`, which may start anywhere in a page.
template <class Visit>
void for_each_page(std::span<const std::byte> bytes, Visit visit) {
  if (bytes.empty()) return;
  for (size_t at = 0; at < bytes.size(); at += kTouchedPageBytes) visit(bytes[at]);
  visit(bytes.back());
}

// Calls `visit` with one byte of each cache line. It goes through two pages at the same time, because a core
// prefetches for each page separately.
template <class Visit>
void for_each_line(std::span<const std::byte> bytes, Visit visit) {
  if (bytes.empty()) return;
  size_t at = 0;
  for (; bytes.size() - at >= 2 * kTouchedPageBytes; at += 2 * kTouchedPageBytes)
    for (size_t line = at; line < at + kTouchedPageBytes; line += kTouchedLineBytes) {
      visit(bytes[line]);
      visit(bytes[line + kTouchedPageBytes]);
    }
  for (; at < bytes.size(); at += kTouchedLineBytes) visit(bytes[at]);
  visit(bytes.back());
}

// Reads one byte of each page, so that all pages of a mapping are in memory. Most of their bytes stay out of
// the processor's caches, as after a device has written them to memory. Any thread may call this and
// touch_lines().
void touch_pages(std::span<const std::byte> bytes);

// Reads one byte of each cache line. So all lines pass through this processor, as when they are copied, but
// nothing is written.
void touch_lines(std::span<const std::byte> bytes);

}  // namespace penstock
