// Pictures and noise that wrap around at their edges, from which photographs are painted (scenery.hpp), and
// operations on them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {

inline constexpr uint32_t kSceneryBits = 10;
// The number of pixels on each side of canvases and noise fields. Coordinates wrap around at this number.
inline constexpr uint32_t kScenerySide = 1U << kSceneryBits;

inline constexpr uint32_t kSceneryMask = kScenerySide - 1;
inline constexpr size_t kSceneryArea = size_t{kScenerySide} * kScenerySide;
inline constexpr size_t kSceneryBlock = 16;  // number of pixels that are painted at once

// A picture that wraps around at its edges. Y has kScenerySide pixels on each side; Cb and Cr have half of
// that.
struct Canvas {
  std::vector<uint8_t> y;
  std::vector<uint8_t> cb;
  std::vector<uint8_t> cr;
};

// Signed noise that wraps around at its edges, with kScenerySide values on each side.
using NoiseField = std::vector<int8_t>;

inline size_t scenery_at(uint32_t x, uint32_t y) {
  return (size_t{y & kSceneryMask} << kSceneryBits) | (x & kSceneryMask);
}

inline uint8_t to_byte(int value) {
  return uint8_t(std::clamp(value, 0, 255));
}

// Makes noise with the same power in each octave of wavelengths, which is a 1/f^2 spectrum in two dimensions.
// Begins with white noise of `first_side` points on each side, and doubles the side repeatedly. As long as
// the side is at most `last_side`, adds white noise of the same strength after each doubling. The result has
// a standard deviation of about 40. It has kSceneryBlock more values than kSceneryArea, so that callers may
// read a whole block at the end.
NoiseField fractal_noise(RandomStream random, uint32_t first_side, uint32_t last_side);

// Removes the finest detail, which no lens resolves: filters with (1 2 1) / 4, horizontally and vertically.
void soften(Canvas& canvas);
// Blurs like a lens out of focus: replaces each pixel by the mean of 2 * reach + 1 pixels, horizontally and
// then vertically.
void blur(Canvas& canvas, uint32_t reach);

}  // namespace penstock
