#include "datagen/recipe/canvas.hpp"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

// Doubles the width and the height of a field that wraps around at its edges. Each old point is replaced by
// two new ones per direction. A new point is interpolated between the nearest old points: three quarters of
// the nearest, one quarter of the next.
std::vector<int32_t> double_size(const std::vector<int32_t>& small, uint32_t side) {
  const uint32_t mask = side - 1;
  std::vector<int32_t> widened(size_t{side} * 2 * side);
  for (uint32_t y = 0; y < side; ++y) {
    const int32_t* row = small.data() + size_t{y} * side;
    int32_t* out = widened.data() + size_t{y} * side * 2;
    for (uint32_t x = 0; x < side; ++x) {
      *out++ = row[(x - 1) & mask] + 3 * row[x];
      *out++ = 3 * row[x] + row[(x + 1) & mask];
    }
  }
  std::vector<int32_t> doubled(widened.size() * 2);
  const size_t stride = size_t{side} * 2;
  for (uint32_t y = 0; y < side; ++y) {
    const int32_t* above = widened.data() + ((y - 1) & mask) * stride;
    const int32_t* here = widened.data() + y * stride;
    const int32_t* below = widened.data() + ((y + 1) & mask) * stride;
    int32_t* upper = doubled.data() + size_t{y} * 2 * stride;
    int32_t* lower = upper + stride;
    for (size_t x = 0; x < stride; ++x) {
      upper[x] = (above[x] + 3 * here[x]) / 16;
      lower[x] = (3 * here[x] + below[x]) / 16;
    }
  }
  return doubled;
}

// Filters the plane with (1 2 1) / 4, horizontally and vertically. The plane wraps around at its edges.
void soften_plane(std::vector<uint8_t>& plane, uint32_t side) {
  const uint32_t mask = side - 1;
  std::vector<uint8_t> filtered(plane.size());
  for (uint32_t y = 0; y < side; ++y) {
    const uint8_t* const row = plane.data() + size_t{y} * side;
    uint8_t* const out = filtered.data() + size_t{y} * side;
    const auto mean_of = [](uint8_t before, uint8_t here, uint8_t after) {
      return uint8_t((before + 2 * here + after + 2) / 4);
    };
    out[0] = mean_of(row[mask], row[0], row[1]);
    for (uint32_t x = 1; x < mask; ++x) out[x] = mean_of(row[x - 1], row[x], row[x + 1]);
    out[mask] = mean_of(row[mask - 1], row[mask], row[0]);
  }
  for (uint32_t y = 0; y < side; ++y)
    for (uint32_t x = 0; x < side; ++x)
      plane[size_t{y} * side + x] =
          uint8_t((filtered[size_t{(y - 1) & mask} * side + x] + 2 * filtered[size_t{y} * side + x] +
                   filtered[size_t{(y + 1) & mask} * side + x] + 2) /
                  4);
}

// Replaces each pixel by the mean of 2 * reach + 1 pixels, first horizontally and then vertically. Uses a
// running sum: from one pixel to the next, one value is added to it and one subtracted.
void blur_plane(std::vector<uint8_t>& plane, uint32_t side, uint32_t reach) {
  const uint32_t mask = side - 1;
  const uint32_t width = 2 * reach + 1;
  const uint32_t reciprocal = (65536 + width / 2) / width;  // 1 / width, times 65536
  std::vector<uint8_t> line(side);
  for (uint32_t y = 0; y < side; ++y) {
    uint8_t* const row = plane.data() + size_t{y} * side;
    std::copy_n(row, side, line.begin());
    uint32_t sum = 0;
    for (uint32_t x = 0; x < width; ++x) sum += line[(x - reach) & mask];
    for (uint32_t x = 0; x < side; ++x) {
      row[x] = uint8_t(std::min((sum * reciprocal) >> 16U, 255U));
      sum += line[(x + reach + 1) & mask];
      sum -= line[(x - reach) & mask];
    }
  }
  // Blurs vertically, with one running sum for each column.
  const std::vector<uint8_t> unblurred = plane;
  const auto row_of = [&](uint32_t y) { return unblurred.data() + size_t{y & mask} * side; };
  std::vector<uint32_t> sums(side, 0);
  for (uint32_t y = 0; y < width; ++y)
    for (uint32_t x = 0; x < side; ++x) sums[x] += row_of(y - reach)[x];
  for (uint32_t y = 0; y < side; ++y) {
    uint8_t* const out = plane.data() + size_t{y} * side;
    const uint8_t* const entering = row_of(y + reach + 1);
    const uint8_t* const leaving = row_of(y - reach);
    for (uint32_t x = 0; x < side; ++x) {
      out[x] = uint8_t(std::min((sums[x] * reciprocal) >> 16U, 255U));
      sums[x] += entering[x];
      sums[x] -= leaving[x];
    }
  }
}

}  // namespace

NoiseField fractal_noise(RandomStream random, uint32_t first_side, uint32_t last_side) {
  std::vector<int32_t> field(size_t{first_side} * first_side);
  uint64_t next_draw = 0;
  uint32_t side = first_side;
  while (true) {
    if (side <= last_side)
      for (int32_t& value : field) value += int32_t(random.below(next_draw++, 8193)) - 4096;
    if (side == kScenerySide) break;
    field = double_size(field, side);
    side *= 2;
  }
  int64_t magnitude = 0;
  for (const int32_t value : field) magnitude += std::abs(value);
  const int64_t mean = std::max<int64_t>(1, magnitude / int64_t(kSceneryArea));
  NoiseField noise(kSceneryArea + kSceneryBlock);
  // Divides in `double`, because a processor runs several such divisions at once. For such small integers,
  // the truncated quotients are the same as with integer division.
  const auto divisor = double(mean);
  for (size_t i = 0; i < kSceneryArea; ++i) {
    const int value = int(double(field[i]) * 32.0 / divisor);
    noise[i] = int8_t(std::clamp(value, -127, 127));
  }
  return noise;
}

void soften(Canvas& canvas) {
  soften_plane(canvas.y, kScenerySide);
  soften_plane(canvas.cb, kScenerySide / 2);
  soften_plane(canvas.cr, kScenerySide / 2);
}

void blur(Canvas& canvas, uint32_t reach) {
  blur_plane(canvas.y, kScenerySide, reach);
  blur_plane(canvas.cb, kScenerySide / 2, reach / 2);
  blur_plane(canvas.cr, kScenerySide / 2, reach / 2);
}

}  // namespace penstock
