// Interleaves planes (one for each channel) into pixels: the axis order channel, height, width becomes
// height, width, channel.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

// One channel: its values, and the scale and shift to apply to them. The values are floats in the machine's
// byte order; they need not be aligned.
struct Plane {
  const std::byte* values = nullptr;
  float scale = 1;
  float shift = 0;
};

// Computes out[i * planes.size() + c] = planes[c].values[i] * scale + shift for all i below `pixels`. `out`
// must have pixels * planes.size() floats, and each plane `pixels` values. It starts no threads.
void planes_to_pixels(std::span<const Plane> planes, size_t pixels, float* out);

}  // namespace penstock
