#include "io_backends/base/system/touching.hpp"

namespace penstock {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;  // the smallest that there is, wherever this runs

// What was loaded, so that the loads stay.
void seen(unsigned sum) {
  asm volatile("" : : "r"(sum));
}

}  // namespace

void touch_pages(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  unsigned sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kPage) sum += std::to_integer<unsigned>(bytes[at]);
  seen(sum + std::to_integer<unsigned>(bytes.back()));
}

// Two pages at a time: what a core fetches ahead, it does for each by itself.
void touch_lines(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  unsigned sum = 0;
  const auto look = [&sum](const std::byte& byte) { sum += std::to_integer<unsigned>(byte); };
  std::size_t at = 0;
  for (; bytes.size() - at >= 2 * kPage; at += 2 * kPage)
    for (std::size_t line = at; line < at + kPage; line += kLine) {
      look(bytes[line]);
      look(bytes[line + kPage]);
    }
  for (; at < bytes.size(); at += kLine) look(bytes[at]);
  look(bytes.back());
  seen(sum);
}

}  // namespace penstock
