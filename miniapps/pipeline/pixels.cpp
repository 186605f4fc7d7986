#include "miniapps/pipeline/pixels.hpp"

#include <array>
#include <cstring>

namespace penstock {
namespace {

float value_at(const std::byte* values, size_t i) {
  float value = 0;
  std::memcpy(&value, values + i * sizeof value, sizeof value);
  return value;
}

// Interleaves N planes. With a constant number of planes the compiler turns the loop into vector
// instructions.
template <size_t N>
void interleave(std::span<const Plane> input, size_t pixels, float* out) {
  std::array<Plane, N> planes;
  for (size_t c = 0; c < N; ++c) planes[c] = input[c];
  for (size_t i = 0; i < pixels; ++i)
    for (size_t c = 0; c < N; ++c)
      out[i * N + c] = value_at(planes[c].values, i) * planes[c].scale + planes[c].shift;
}

void interleave_any(std::span<const Plane> planes, size_t pixels, float* out) {
  for (size_t c = 0; c < planes.size(); ++c)
    for (size_t i = 0; i < pixels; ++i)
      out[i * planes.size() + c] = value_at(planes[c].values, i) * planes[c].scale + planes[c].shift;
}

}  // namespace

void planes_to_pixels(std::span<const Plane> planes, size_t pixels, float* out) {
  switch (planes.size()) {
    case 3:
      return interleave<3>(planes, pixels, out);
    case 4:
      return interleave<4>(planes, pixels, out);
    default:
      return interleave_any(planes, pixels, out);
  }
}

}  // namespace penstock
