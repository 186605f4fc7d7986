#include "miniapps/pipeline/augment.hpp"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr int kDraws = 10;
constexpr double kLeastArea = 0.08;
constexpr double kNarrowest = 3.0 / 4.0;
constexpr double kWidest = 4.0 / 3.0;

std::uint32_t rounded(double length) {
  return static_cast<std::uint32_t>(std::lround(length));
}

// The n-th number as one of 0 .. most.
std::uint32_t up_to(const RandomStream& random, std::uint64_t n, std::uint32_t most) {
  return static_cast<std::uint32_t>(random.below(n, std::uint64_t{most} + 1));
}

PicturePart middle(std::uint32_t width, std::uint32_t height) {
  const double aspect = static_cast<double>(width) / height;
  PicturePart part{0, 0, width, height};
  if (aspect < kNarrowest) part.height = std::clamp(rounded(width / kNarrowest), 1U, height);
  if (aspect > kWidest) part.width = std::clamp(rounded(height * kWidest), 1U, width);
  part.left = (width - part.width) / 2;
  part.top = (height - part.height) / 2;
  return part;
}

}  // namespace

PicturePart random_resized_crop(std::uint32_t width, std::uint32_t height, const RandomStream& random) {
  const double whole = static_cast<double>(width) * height;
  const double narrowest = portable_log(kNarrowest);
  const double widest = portable_log(kWidest);
  std::uint64_t n = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double area = whole * (kLeastArea + (1.0 - kLeastArea) * random.uniform(n++));
    const double aspect = portable_exp(narrowest + (widest - narrowest) * random.uniform(n++));
    const std::uint32_t part_width = rounded(std::sqrt(area * aspect));
    const std::uint32_t part_height = rounded(std::sqrt(area / aspect));
    if (part_width == 0 || part_height == 0 || part_width > width || part_height > height) continue;
    return {up_to(random, n, width - part_width), up_to(random, n + 1, height - part_height), part_width,
            part_height};
  }
  return middle(width, height);
}

}  // namespace penstock
