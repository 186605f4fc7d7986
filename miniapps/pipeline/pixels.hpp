// Planes to pixels: the axes channel, height, width become height, width, channel.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

// One channel: its numbers as floats of the machine, at any alignment, and what is done to them.
struct Plane {
  const std::byte* values = nullptr;
  float scale = 1;
  float shift = 0;
};

// out[i * planes.size() + c] = planes[c].values[i] * scale + shift, for `pixels` pixels; as many floats, and
// as many of each plane, are there. One thread.
void planes_to_pixels(std::span<const Plane> planes, std::size_t pixels, float* out);

}  // namespace penstock
