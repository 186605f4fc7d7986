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
  int cosine, sine;  // cosine and sine of the angle of rotation, times 256
  int aspect;        // width divided by height, times 256
  bool is_box;
  int border_raggedness;  // 0: smooth border, 3: most ragged
  Colour colour;
  int light_u, light_v;  // change of the light from the centre to the border
  int texture;
  uint32_t grain_x, grain_y;
};

Leaf draw_leaf(Draws& draws, const LeafStyle& style, const NoiseField& patches, int radius) {
  Leaf leaf{};
  leaf.x = draws.between(0, int(kSceneryMask));
  leaf.y = draws.between(0, int(kSceneryMask));
  leaf.radius = radius;
  // Draws a random direction as a point of the unit circle, without sine and cosine. The point is ((1 - t^2),
  // 2t) / (1 + t^2) for a random t. Boxes are nearly upright, so their t is small.
  const double t = (draws.uniform() * 2.0 - 1.0) * (style.has_rectangles ? 0.02 : 1.0);
  leaf.cosine = int(256.0 * (1.0 - t * t) / (1.0 + t * t));
  leaf.sine = int(512.0 * t / (1.0 + t * t));
  leaf.aspect = draws.between(256, 640);
  leaf.is_box = style.has_rectangles && !draws.percent(15);
  if (leaf.is_box && draws.percent(40)) std::swap(leaf.cosine, leaf.sine);
  leaf.border_raggedness = leaf.is_box ? 0 : draws.between(0, 3);
  const Colour base = style.colours[size_t(draws.between(0, int(style.colours.size()) - 1))];
  // Leaves that are near each other get similar light. This adds power at the largest scales, as in
  // photographs.
  const int shared_light = patches[scenery_at(uint32_t(leaf.x), uint32_t(leaf.y))] * 3 / 4;
  leaf.colour = {base.y / 2 + 60 + shared_light + draws.between(-16, 16), base.cb + draws.between(-5, 5),
                 base.cr + draws.between(-5, 5)};
  leaf.light_u = draws.between(-28, 28);
  leaf.light_v = draws.between(-28, 28);
  // Most surfaces are nearly smooth; few are rough.
  const int roughness = draws.between(0, 100);
  leaf.texture = style.texture_percent * roughness * roughness / 10000 + 4;
  leaf.grain_x = uint32_t(draws.between(0, int(kSceneryMask)));
  leaf.grain_y = uint32_t(draws.between(0, int(kSceneryMask)));
  return leaf;
}

void paint_leaf(const Leaf& leaf, const LeafNoise& noise, std::vector<uint8_t>& luma,
                std::vector<uint8_t>& colour_index, uint8_t index) {
  LeafRow row{};
  row.radius = float(leaf.radius);
  const float aspect = float(leaf.aspect) / 256.0F;
  row.u_step = float(leaf.cosine) / 256.0F;
  row.v_step = float(-leaf.sine) / 256.0F * aspect;
  const float u_down = float(leaf.sine) / 256.0F;
  const float v_down = float(leaf.cosine) / 256.0F * aspect;
  row.light_u = float(leaf.light_u) / row.radius;
  row.light_v = float(leaf.light_v) / row.radius;
  row.luma = float(leaf.colour.y);
  row.texture = float(leaf.texture) / 100.0F;
  row.raggedness = row.radius * row.radius * float(leaf.border_raggedness) / 512.0F;
  // The largest distance that a pixel of the leaf can have from the leaf's centre. It is that of a box's
  // corner, or that of the most ragged border.
  const float max_distance =
      row.radius * std::sqrt(leaf.is_box ? 2.0F : 1.0F + 128.0F * float(leaf.border_raggedness) / 512.0F);
  // Computes max_dy: how many rows above and below the centre can contain pixels of the leaf. A pixel of the
  // leaf has u^2 + v^2 of at most max_distance^2. In the row `dy`, u^2 + v^2 is (x + skew * dy)^2 * x_factor
  // + dy^2 * y_factor.
  const float x_factor = row.u_step * row.u_step + row.v_step * row.v_step;
  const float skew = (row.u_step * u_down + row.v_step * v_down) / x_factor;
  const float y_factor = u_down * u_down + v_down * v_down - skew * skew * x_factor;
  constexpr int kMaxReach = int(kScenerySide) / 2 - 1;
  const int max_dy = std::min(int(max_distance / std::sqrt(y_factor)) + 1, kMaxReach);
  for (int dy = -max_dy; dy <= max_dy; ++dy) {
    const auto y = uint32_t(leaf.y + dy);
    // Computes which pixels of this row can belong to the leaf. `middle` is the middle of the leaf in the
    // row. `half_width` is half of the leaf's width there, rounded up, plus one pixel.
    const auto dy_float = float(dy);
    const float rest_squared = std::max(max_distance * max_distance - dy_float * dy_float * y_factor, 0.0F);
    const int middle = int(-skew * dy_float);
    const int half_width = int(std::sqrt(rest_squared / x_factor)) + 2;
    int first_x = std::max(middle - half_width, -kMaxReach);
    const int last_x = std::min(middle + half_width, kMaxReach);
    while (first_x <= last_x) {
      const uint32_t x = uint32_t(leaf.x + first_x) & kSceneryMask;
      const uint32_t grain_x = (leaf.grain_x + x) & kSceneryMask;
      const int count = std::min(last_x - first_x + 1, int(kScenerySide - std::max(x, grain_x)));
      row.u = dy_float * u_down + float(first_x) * row.u_step;
      row.v = dy_float * v_down + float(first_x) * row.v_step;
      const LeafRun run{count, noise.grain.data() + scenery_at(grain_x, leaf.grain_y + y),
                        noise.patches.data() + scenery_at(x, y), luma.data() + scenery_at(x, y),
                        colour_index.data() + scenery_at(x, y)};
      paint_run(row, run, leaf.is_box, index);
      first_x += count;
    }
  }
}

}  // namespace

Canvas dead_leaves(RandomStream random, const LeafStyle& style, const LeafNoise& noise) {
  Draws draws(random);
  Canvas canvas;
  canvas.y.assign(kSceneryArea + kSceneryBlock, 128);
  std::vector<uint8_t> colour_index(kSceneryArea + kSceneryBlock, 0);
  std::array<Colour, 256> colours{};
  // The number of leaves with a radius r must fall as r^-3. Then the leaves of each octave of radii paint the
  // same area in total. So the next leaf is always from the octave that has painted the least area. This also
  // mixes large and small leaves, so that they cover each other.
  const int64_t wanted_area = int64_t(kSceneryArea) * style.layers_percent / 100;
  std::array<int64_t, kSceneryBits> painted_area{};
  unsigned octave_count = 0;
  for (int radius = style.max_radius; radius >= style.min_radius; radius /= 2) ++octave_count;
  unsigned leaf_number = 0;
  for (int64_t total = 0; total < wanted_area; ++leaf_number) {
    size_t octave = 0;
    for (size_t i = 1; i < octave_count; ++i)
      if (painted_area[i] < painted_area[octave]) octave = i;
    const int octave_radius = style.max_radius >> octave;
    const int radius = std::max(draws.between(octave_radius / 2, octave_radius), 2);
    Leaf leaf = draw_leaf(draws, style, noise.patches, radius);
    // The index of a pixel's colour has one byte. So only the first 256 leaves have Cb and Cr of their own,
    // and later leaves use these values again. A viewer does not notice this.
    const uint8_t index = uint8_t(leaf_number % 256);
    if (leaf_number < 256)
      colours[index] = leaf.colour;
    else {
      leaf.colour.cb = colours[index].cb;
      leaf.colour.cr = colours[index].cr;
    }
    paint_leaf(leaf, noise, canvas.y, colour_index, index);
    painted_area[octave] += int64_t{2} * radius * radius;
    total += int64_t{2} * radius * radius;
  }
  canvas.y.resize(kSceneryArea);
  canvas.cb.resize(kSceneryArea / 4);
  canvas.cr.resize(kSceneryArea / 4);
  for (uint32_t y = 0; y < kScenerySide / 2; ++y)
    for (uint32_t x = 0; x < kScenerySide / 2; ++x) {
      const Colour& colour = colours[colour_index[scenery_at(2 * x, 2 * y)]];
      // Colour changes slightly with the light, as on real surfaces.
      const int tone = noise.patches[scenery_at(2 * x + 77, 2 * y + 301)] / 16;
      canvas.cb[size_t{y} * (kScenerySide / 2) + x] = to_byte(colour.cb - tone);
      canvas.cr[size_t{y} * (kScenerySide / 2) + x] = to_byte(colour.cr + tone);
    }
  return canvas;
}

}  // namespace penstock
