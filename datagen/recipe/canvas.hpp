// Pictures and noise without borders, and what is done to them: plain arithmetic on arrays that one thread
// has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {

inline constexpr std::uint32_t kSceneryBits = 10;
inline constexpr std::uint32_t kScenerySide = 1U << kSceneryBits;  // canvases and fields wrap around at this

inline constexpr std::uint32_t kSceneryMask = kScenerySide - 1;
inline constexpr std::size_t kSceneryArea = std::size_t{kScenerySide} * kScenerySide;
inline constexpr std::size_t kSceneryBlock = 16;  // pixels that are painted at once

// A picture without borders: kScenerySide squared in Y, half of that on each side in Cb and Cr.
struct Canvas {
  std::vector<std::uint8_t> y;
  std::vector<std::uint8_t> cb;
  std::vector<std::uint8_t> cr;
};

// Signed noise without borders, kScenerySide squared.
using NoiseField = std::vector<std::int8_t>;

inline std::size_t scenery_at(std::uint32_t x, std::uint32_t y) {
  return (std::size_t{y & kSceneryMask} << kSceneryBits) | (x & kSceneryMask);
}

inline std::uint8_t to_byte(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

// White noise of the same strength joins at every doubling between the two sides, so that each octave of
// wavelengths holds the same power: 1/f^2 in two dimensions. Brought to a deviation of about 40. A block more
// than kSceneryArea may be read.
NoiseField fractal_noise(RandomStream random, std::uint32_t first_side, std::uint32_t last_side);

// Rounds off what no lens resolves: (1 2 1) / 4 each way.
void soften(Canvas& canvas);
// Mean over 2 * reach + 1 pixels each way: a lens out of focus.
void blur(Canvas& canvas, std::uint32_t reach);

}  // namespace penstock
