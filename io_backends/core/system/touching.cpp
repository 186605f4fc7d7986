#include "io_backends/core/system/touching.hpp"

namespace penstock {
namespace {

// Pretends to use `sum`. Otherwise the compiler would remove the loads of the bytes that were added to it.
void use_value(unsigned sum) {
  asm volatile("" : : "r"(sum));
}

}  // namespace

void touch_pages(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for_each_page(bytes, [&sum](const std::byte& byte) { sum += std::to_integer<unsigned>(byte); });
  use_value(sum);
}

void touch_lines(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for_each_line(bytes, [&sum](const std::byte& byte) { sum += std::to_integer<unsigned>(byte); });
  use_value(sum);
}

}  // namespace penstock
