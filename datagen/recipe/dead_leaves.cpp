#include "datagen/recipe/dead_leaves.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "datagen/recipe/draws.hpp"
#include "datagen/recipe/leaf_run.hpp"

namespace penstock {
namespace {

// One leaf: an ellipse or a box, lit from one side, with its own grain.
struct Leaf {
  int x, y, radius;
  int cosine, sine;  // of its rotation, times 256
  int squeeze;       // width divided by height, times 256
  bool box;
  int border_raggedness;  // how ragged its border is
  Colour colour;
  int light_u, light_v;  // slope of the light over the leaf, from the centre to the border
  int texture;
  std::uint32_t grain_x, grain_y;
};

Leaf draw_leaf(Draws& draws, const LeafStyle& style, const NoiseField& patches, int radius) {
  Leaf leaf{};
  leaf.x = draws.between(0, static_cast<int>(kSceneryMask));
  leaf.y = draws.between(0, static_cast<int>(kSceneryMask));
  leaf.radius = radius;
  // A point of the unit circle, computed without sine and cosine: ((1 - t^2), 2t) / (1 + t^2). Boxes are
  // nearly upright.
  const double t = (draws.uniform() * 2.0 - 1.0) * (style.boxes ? 0.02 : 1.0);
  leaf.cosine = static_cast<int>(256.0 * (1.0 - t * t) / (1.0 + t * t));
  leaf.sine = static_cast<int>(512.0 * t / (1.0 + t * t));
  leaf.squeeze = draws.between(256, 640);
  leaf.box = style.boxes && !draws.percent(15);
  if (leaf.box && draws.percent(40)) std::swap(leaf.cosine, leaf.sine);
  leaf.border_raggedness = leaf.box ? 0 : draws.between(0, 3);
  const Colour base =
      style.colours[static_cast<std::size_t>(draws.between(0, static_cast<int>(style.colours.size()) - 1))];
  // Leaves near each other have similar light. This adds power at the largest scales, as in photographs.
  const int around =
      patches[scenery_at(static_cast<std::uint32_t>(leaf.x), static_cast<std::uint32_t>(leaf.y))] * 3 / 4;
  leaf.colour = {base.y / 2 + 60 + around + draws.between(-16, 16), base.cb + draws.between(-5, 5),
                 base.cr + draws.between(-5, 5)};
  leaf.light_u = draws.between(-28, 28);
  leaf.light_v = draws.between(-28, 28);
  // Most surfaces are nearly smooth; few are rough.
  const int roughness = draws.between(0, 100);
  leaf.texture = style.texture * roughness * roughness / 10000 + 4;
  leaf.grain_x = static_cast<std::uint32_t>(draws.between(0, static_cast<int>(kSceneryMask)));
  leaf.grain_y = static_cast<std::uint32_t>(draws.between(0, static_cast<int>(kSceneryMask)));
  return leaf;
}

void paint_leaf(const Leaf& leaf, const LeafNoise& noise, std::vector<std::uint8_t>& luma,
                std::vector<std::uint8_t>& colour_index, std::uint8_t index) {
  LeafRow row{};
  row.radius = static_cast<float>(leaf.radius);
  const float squeeze = static_cast<float>(leaf.squeeze) / 256.0F;
  row.u_step = static_cast<float>(leaf.cosine) / 256.0F;
  row.v_step = static_cast<float>(-leaf.sine) / 256.0F * squeeze;
  const float u_down = static_cast<float>(leaf.sine) / 256.0F;
  const float v_down = static_cast<float>(leaf.cosine) / 256.0F * squeeze;
  row.light_u = static_cast<float>(leaf.light_u) / row.radius;
  row.light_v = static_cast<float>(leaf.light_v) / row.radius;
  row.luma = static_cast<float>(leaf.colour.y);
  row.texture = static_cast<float>(leaf.texture) / 100.0F;
  row.raggedness = row.radius * row.radius * static_cast<float>(leaf.border_raggedness) / 512.0F;
  // The distance of a box's corner, or of the most ragged border.
  const float furthest =
      row.radius *
      std::sqrt(leaf.box ? 2.0F : 1.0F + 128.0F * static_cast<float>(leaf.border_raggedness) / 512.0F);
  // Computes the rows that may meet the leaf. There, u^2 + v^2 is (x + lean * dy)^2 * width + dy^2 * height.
  // No pixel inside the leaf exceeds `furthest` squared.
  const float width = row.u_step * row.u_step + row.v_step * row.v_step;
  const float lean = (row.u_step * u_down + row.v_step * v_down) / width;
  const float height = u_down * u_down + v_down * v_down - lean * lean * width;
  constexpr int kMaxReach = static_cast<int>(kScenerySide) / 2 - 1;
  const int rows = std::min(static_cast<int>(furthest / std::sqrt(height)) + 1, kMaxReach);
  for (int dy = -rows; dy <= rows; ++dy) {
    const auto y = static_cast<std::uint32_t>(leaf.y + dy);
    // The middle of the leaf in this row, and half its width plus one pixel.
    const auto down = static_cast<float>(dy);
    const float left = std::max(furthest * furthest - down * down * height, 0.0F);
    const int middle = static_cast<int>(-lean * down);
    const int half = static_cast<int>(std::sqrt(left / width)) + 2;
    int from = std::max(middle - half, -kMaxReach);
    const int to = std::min(middle + half, kMaxReach);
    while (from <= to) {
      const std::uint32_t x = static_cast<std::uint32_t>(leaf.x + from) & kSceneryMask;
      const std::uint32_t grain_x = (leaf.grain_x + x) & kSceneryMask;
      const int count = std::min(to - from + 1, static_cast<int>(kScenerySide - std::max(x, grain_x)));
      row.u = down * u_down + static_cast<float>(from) * row.u_step;
      row.v = down * v_down + static_cast<float>(from) * row.v_step;
      const LeafRun run{count, noise.grain.data() + scenery_at(grain_x, leaf.grain_y + y),
                        noise.patches.data() + scenery_at(x, y), luma.data() + scenery_at(x, y),
                        colour_index.data() + scenery_at(x, y)};
      paint_run(row, run, leaf.box, index);
      from += count;
    }
  }
}

}  // namespace

Canvas dead_leaves(RandomStream random, const LeafStyle& style, const LeafNoise& noise) {
  Draws draws(random);
  Canvas canvas;
  canvas.y.assign(kSceneryArea + kSceneryBlock, 128);
  std::vector<std::uint8_t> colour_index(kSceneryArea + kSceneryBlock, 0);
  std::array<Colour, 256> colours{};
  // The number of leaves falls with their radius as r^-3, so each octave of radii must paint the same area.
  // The next leaf is from the octave that has painted least. So large and small leaves cover each other.
  const std::int64_t wanted = static_cast<std::int64_t>(kSceneryArea) * style.layers_percent / 100;
  std::array<std::int64_t, kSceneryBits> painted{};
  unsigned octaves = 0;
  for (int radius = style.largest; radius >= style.smallest; radius /= 2) ++octaves;
  unsigned next = 0;
  for (std::int64_t total = 0; total < wanted; ++next) {
    std::size_t octave = 0;
    for (std::size_t i = 1; i < octaves; ++i)
      if (painted[i] < painted[octave]) octave = i;
    const int largest = style.largest >> octave;
    const int radius = std::max(draws.between(largest / 2, largest), 2);
    Leaf leaf = draw_leaf(draws, style, noise.patches, radius);
    // A pixel stores its colour as an index. 256 colours are enough for the eye.
    const std::uint8_t index = static_cast<std::uint8_t>(next % 256);
    if (next < 256)
      colours[index] = leaf.colour;
    else {
      leaf.colour.cb = colours[index].cb;
      leaf.colour.cr = colours[index].cr;
    }
    paint_leaf(leaf, noise, canvas.y, colour_index, index);
    painted[octave] += std::int64_t{2} * radius * radius;
    total += std::int64_t{2} * radius * radius;
  }
  canvas.y.resize(kSceneryArea);
  canvas.cb.resize(kSceneryArea / 4);
  canvas.cr.resize(kSceneryArea / 4);
  for (std::uint32_t y = 0; y < kScenerySide / 2; ++y)
    for (std::uint32_t x = 0; x < kScenerySide / 2; ++x) {
      const Colour& colour = colours[colour_index[scenery_at(2 * x, 2 * y)]];
      // Colour changes slightly with the light, as on real surfaces.
      const int tone = noise.patches[scenery_at(2 * x + 77, 2 * y + 301)] / 16;
      canvas.cb[std::size_t{y} * (kScenerySide / 2) + x] = to_byte(colour.cb - tone);
      canvas.cr[std::size_t{y} * (kScenerySide / 2) + x] = to_byte(colour.cr + tone);
    }
  return canvas;
}

}  // namespace penstock
