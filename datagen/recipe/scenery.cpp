#include "datagen/recipe/scenery.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <span>

#include "datagen/parallel.hpp"

namespace penstock {
namespace {

constexpr std::uint32_t kMask = kScenerySide - 1;
constexpr std::size_t kArea = std::size_t{kScenerySide} * kScenerySide;

std::size_t at(std::uint32_t x, std::uint32_t y) {
  return (std::size_t{y & kMask} << kSceneryBits) | (x & kMask);
}

std::uint8_t to_byte(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

// Twice as large on the torus, each new point between its neighbours at a quarter and three quarters.
std::vector<std::int32_t> twice(const std::vector<std::int32_t>& small, std::uint32_t side) {
  const std::uint32_t mask = side - 1;
  std::vector<std::int32_t> wide(std::size_t{side} * 2 * side);
  for (std::uint32_t y = 0; y < side; ++y) {
    const std::int32_t* row = small.data() + std::size_t{y} * side;
    std::int32_t* out = wide.data() + std::size_t{y} * side * 2;
    for (std::uint32_t x = 0; x < side; ++x) {
      *out++ = row[(x - 1) & mask] + 3 * row[x];
      *out++ = 3 * row[x] + row[(x + 1) & mask];
    }
  }
  std::vector<std::int32_t> large(wide.size() * 2);
  const std::size_t stride = std::size_t{side} * 2;
  for (std::uint32_t y = 0; y < side; ++y) {
    const std::int32_t* above = wide.data() + ((y - 1) & mask) * stride;
    const std::int32_t* here = wide.data() + y * stride;
    const std::int32_t* below = wide.data() + ((y + 1) & mask) * stride;
    std::int32_t* upper = large.data() + std::size_t{y} * 2 * stride;
    std::int32_t* lower = upper + stride;
    for (std::size_t x = 0; x < stride; ++x) {
      upper[x] = (above[x] + 3 * here[x]) / 16;
      lower[x] = (3 * here[x] + below[x]) / 16;
    }
  }
  return large;
}

// White noise of the same strength joins at every doubling between the two sides, so that each octave of
// wavelengths holds the same power: 1/f^2 in two dimensions. Brought to a deviation of about 40.
NoiseField fractal(RandomStream random, std::uint32_t first_side, std::uint32_t last_side) {
  std::vector<std::int32_t> field(std::size_t{first_side} * first_side);
  std::uint64_t draw = 0;
  std::uint32_t side = first_side;
  while (true) {
    if (side <= last_side)
      for (std::int32_t& value : field) value += static_cast<std::int32_t>(random.below(draw++, 8193)) - 4096;
    if (side == kScenerySide) break;
    field = twice(field, side);
    side *= 2;
  }
  std::int64_t magnitude = 0;
  for (const std::int32_t value : field) magnitude += std::abs(value);
  const std::int64_t mean = std::max<std::int64_t>(1, magnitude / static_cast<std::int64_t>(kArea));
  NoiseField noise(kArea);
  for (std::size_t i = 0; i < kArea; ++i)
    noise[i] =
        static_cast<std::int8_t>(std::clamp<std::int64_t>(std::int64_t{field[i]} * 32 / mean, -127, 127));
  return noise;
}

struct Colour {
  int y;
  int cb;
  int cr;
};

// What the world is made of, in YCbCr: colours of real surfaces are far less saturated than those of screens.
constexpr std::array kFoliage{Colour{58, 116, 118},  Colour{82, 108, 118}, Colour{112, 104, 122},
                              Colour{44, 122, 124},  Colour{90, 112, 132}, Colour{140, 108, 128},
                              Colour{168, 110, 126}, Colour{36, 126, 128}, Colour{196, 118, 142}};
constexpr std::array kTown{Colour{150, 128, 128}, Colour{104, 126, 130}, Colour{196, 126, 129},
                           Colour{92, 114, 152},  Colour{62, 130, 127},  Colour{128, 118, 138},
                           Colour{222, 124, 130}, Colour{76, 140, 120},  Colour{172, 138, 120},
                           Colour{40, 130, 127}};
constexpr std::array kThings{Colour{176, 114, 146}, Colour{120, 108, 156}, Colour{210, 118, 134},
                             Colour{70, 118, 148},  Colour{146, 104, 138}, Colour{96, 138, 122},
                             Colour{226, 126, 128}, Colour{34, 128, 130},  Colour{88, 110, 176},
                             Colour{160, 86, 148},  Colour{110, 148, 112}};
constexpr std::array kStones{Colour{120, 124, 132}, Colour{88, 122, 134},  Colour{150, 120, 134},
                             Colour{64, 124, 132},  Colour{176, 118, 136}, Colour{104, 130, 126},
                             Colour{48, 126, 130},  Colour{136, 112, 140}};

struct Style {
  std::span<const Colour> colours;
  int smallest;  // radius in pixels
  int largest;
  bool boxes;          // upright rectangles rather than blobs
  int texture;         // strongest grain, percent
  int layers_percent;  // how often the leaves could cover the canvas
};

// One leaf: an ellipse or a box, lit from one side, with a grain of its own.
struct Leaf {
  int x, y, radius;
  int cosine, sine;  // of its rotation, times 256
  int squeeze;       // width over height, times 256
  bool box;
  int wobble;  // how ragged its border is
  Colour colour;
  int light_u, light_v;  // slope of the light over the leaf, from middle to border
  int texture;
  std::uint32_t grain_x, grain_y;
};

Leaf draw_leaf(Draws& draws, const Style& style, const NoiseField& patches, int radius) {
  Leaf leaf{};
  leaf.x = draws.between(0, static_cast<int>(kMask));
  leaf.y = draws.between(0, static_cast<int>(kMask));
  leaf.radius = radius;
  // A point of the unit circle without sine and cosine: ((1 - t^2), 2t) / (1 + t^2). Boxes stand nearly
  // upright.
  const double t = (draws.uniform() * 2.0 - 1.0) * (style.boxes ? 0.02 : 1.0);
  leaf.cosine = static_cast<int>(256.0 * (1.0 - t * t) / (1.0 + t * t));
  leaf.sine = static_cast<int>(512.0 * t / (1.0 + t * t));
  leaf.squeeze = draws.between(256, 640);
  leaf.box = style.boxes && !draws.percent(15);
  if (leaf.box && draws.percent(40)) std::swap(leaf.cosine, leaf.sine);
  leaf.wobble = leaf.box ? 0 : draws.between(0, 3);
  const Colour base =
      style.colours[static_cast<std::size_t>(draws.between(0, static_cast<int>(style.colours.size()) - 1))];
  // Neighbours stand in the same light: this puts power where the eye has it, into the largest scales.
  const int around =
      patches[at(static_cast<std::uint32_t>(leaf.x), static_cast<std::uint32_t>(leaf.y))] * 3 / 4;
  leaf.colour = {base.y / 2 + 60 + around + draws.between(-16, 16), base.cb + draws.between(-5, 5),
                 base.cr + draws.between(-5, 5)};
  leaf.light_u = draws.between(-28, 28);
  leaf.light_v = draws.between(-28, 28);
  // Most surfaces are nearly smooth, few are rough.
  const int roughness = draws.between(0, 100);
  leaf.texture = style.texture * roughness * roughness / 10000 + 4;
  leaf.grain_x = static_cast<std::uint32_t>(draws.between(0, static_cast<int>(kMask)));
  leaf.grain_y = static_cast<std::uint32_t>(draws.between(0, static_cast<int>(kMask)));
  return leaf;
}

struct Stock {
  const NoiseField& grain;
  const NoiseField& patches;
};

// Narrows [from, to] to where |slope * x + offset| <= limit may hold: a point or two too much, none too few.
void narrow(int slope, int offset, int limit, int& from, int& to) {
  if (slope == 0) return;
  const int one = (-limit - offset) / slope;
  const int other = (limit - offset) / slope;
  from = std::max(from, std::min(one, other) - 1);
  to = std::min(to, std::max(one, other) + 1);
}

void paint_leaf(const Leaf& leaf, const Stock& stock, std::vector<std::uint8_t>& luma,
                std::vector<std::uint8_t>& colour_index, std::uint8_t index) {
  // As far as a corner of a box, or the most ragged border, may reach.
  const int furthest = leaf.box ? leaf.radius * 10 / 7 : leaf.radius * 4 / 3;
  const int reach = std::min(furthest + 1, static_cast<int>(kScenerySide) / 2 - 1);
  const int border = leaf.radius * leaf.radius;
  for (int dy = -reach; dy <= reach; ++dy) {
    const auto y = static_cast<std::uint32_t>(leaf.y + dy);
    const std::size_t row = at(0, y);
    const std::int8_t* const grains = stock.grain.data() + at(0, leaf.grain_y + y);
    int from = -reach;
    int to = reach;
    narrow(leaf.cosine, dy * leaf.sine, 256 * (furthest + 1), from, to);
    narrow(-leaf.sine, dy * leaf.cosine, 256 * (256 * (furthest + 1) / leaf.squeeze + 2), from, to);
    for (int dx = from; dx <= to; ++dx) {
      const int u = (dx * leaf.cosine + dy * leaf.sine) >> 8;
      const int v = (((dy * leaf.cosine - dx * leaf.sine) >> 8) * leaf.squeeze) >> 8;
      const auto x = static_cast<std::uint32_t>(leaf.x + dx);
      const std::size_t place = row + (x & kMask);
      const bool inside =
          leaf.box ? std::max(std::abs(u), std::abs(v)) < leaf.radius
                   : u * u + v * v < border + ((border >> 7) * stock.patches[place] * leaf.wobble >> 2);
      if (!inside) continue;
      const int grain = grains[(leaf.grain_x + x) & kMask] * leaf.texture / 100;
      const int light = (leaf.light_u * u + leaf.light_v * v) / leaf.radius;
      luma[place] = to_byte(leaf.colour.y + light + grain);
      colour_index[place] = index;
    }
  }
}

// Rounds off what no lens resolves: (1 2 1) / 4 each way on the torus.
void soften(std::vector<std::uint8_t>& plane, std::uint32_t side) {
  const std::uint32_t mask = side - 1;
  std::vector<std::uint8_t> wide(plane.size());
  for (std::uint32_t y = 0; y < side; ++y)
    for (std::uint32_t x = 0; x < side; ++x) {
      const std::uint8_t* row = plane.data() + std::size_t{y} * side;
      wide[std::size_t{y} * side + x] =
          static_cast<std::uint8_t>((row[(x - 1) & mask] + 2 * row[x] + row[(x + 1) & mask] + 2) / 4);
    }
  for (std::uint32_t y = 0; y < side; ++y)
    for (std::uint32_t x = 0; x < side; ++x)
      plane[std::size_t{y} * side + x] = static_cast<std::uint8_t>(
          (wide[std::size_t{(y - 1) & mask} * side + x] + 2 * wide[std::size_t{y} * side + x] +
           wide[std::size_t{(y + 1) & mask} * side + x] + 2) /
          4);
}

// Mean over 2 * reach + 1 pixels each way, by running sums: a lens out of focus.
void blur(std::vector<std::uint8_t>& plane, std::uint32_t side, std::uint32_t reach) {
  const std::uint32_t mask = side - 1;
  const int width = static_cast<int>(2 * reach + 1);
  std::vector<std::uint8_t> line(side);
  for (const bool across : {true, false})
    for (std::uint32_t i = 0; i < side; ++i) {
      const auto pixel = [&](std::uint32_t j) -> std::uint8_t& {
        return plane[across ? std::size_t{i} * side + (j & mask) : std::size_t{j & mask} * side + i];
      };
      for (std::uint32_t j = 0; j < side; ++j) line[j] = pixel(j);
      int sum = 0;
      for (std::uint32_t j = 0; j <= 2 * reach; ++j) sum += line[(j - reach) & mask];
      for (std::uint32_t j = 0; j < side; ++j) {
        pixel(j) = static_cast<std::uint8_t>((sum + width / 2) / width);
        sum += line[(j + reach + 1) & mask] - line[(j - reach) & mask];
      }
    }
}

Canvas dead_leaves(RandomStream random, const Style& style, const Stock& stock) {
  Draws draws(random);
  Canvas canvas;
  canvas.y.assign(kArea, 128);
  std::vector<std::uint8_t> colour_index(kArea, 0);
  std::array<Colour, 256> colours{};
  // Density r^-3 is the same painted area for each octave of radii: the octave that is furthest behind is
  // next, so that leaves of all sizes lie over leaves of all sizes.
  const std::int64_t wanted = static_cast<std::int64_t>(kArea) * style.layers_percent / 100;
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
    Leaf leaf = draw_leaf(draws, style, stock.patches, radius);
    // Colours are kept by index: 256 of them are plenty to the eye.
    const std::uint8_t index = static_cast<std::uint8_t>(next % 256);
    if (next < 256)
      colours[index] = leaf.colour;
    else {
      leaf.colour.cb = colours[index].cb;
      leaf.colour.cr = colours[index].cr;
    }
    paint_leaf(leaf, stock, canvas.y, colour_index, index);
    painted[octave] += std::int64_t{2} * radius * radius;
    total += std::int64_t{2} * radius * radius;
  }
  canvas.cb.resize(kArea / 4);
  canvas.cr.resize(kArea / 4);
  for (std::uint32_t y = 0; y < kScenerySide / 2; ++y)
    for (std::uint32_t x = 0; x < kScenerySide / 2; ++x) {
      const Colour& colour = colours[colour_index[at(2 * x, 2 * y)]];
      // Colour follows the light a little, as it does on real surfaces.
      const int tone = stock.patches[at(2 * x + 77, 2 * y + 301)] / 16;
      canvas.cb[std::size_t{y} * (kScenerySide / 2) + x] = to_byte(colour.cb - tone);
      canvas.cr[std::size_t{y} * (kScenerySide / 2) + x] = to_byte(colour.cr + tone);
    }
  soften(canvas.y, kScenerySide);
  soften(canvas.cb, kScenerySide / 2);
  soften(canvas.cr, kScenerySide / 2);
  return canvas;
}

Canvas clouds(const NoiseField& patches, const NoiseField& grain) {
  Canvas canvas;
  canvas.y.resize(kArea);
  canvas.cb.resize(kArea / 4);
  canvas.cr.resize(kArea / 4);
  for (std::uint32_t y = 0; y < kScenerySide; ++y)
    for (std::uint32_t x = 0; x < kScenerySide; ++x) {
      const int puff = std::max(0, patches[at(x, y)] + grain[at(x, y)] / 24);
      canvas.y[at(x, y)] = to_byte(168 + puff * 3 / 4);
      if (x % 2 != 0 || y % 2 != 0) continue;
      const std::size_t half = std::size_t{y / 2} * (kScenerySide / 2) + x / 2;
      canvas.cb[half] = to_byte(150 - puff / 5);
      canvas.cr[half] = to_byte(112 + puff / 7);
    }
  return canvas;
}

Canvas out_of_focus(Canvas canvas, std::uint32_t reach) {
  for (int pass = 0; pass < 2; ++pass) {
    blur(canvas.y, kScenerySide, reach);
    blur(canvas.cb, kScenerySide / 2, reach / 2);
    blur(canvas.cr, kScenerySide / 2, reach / 2);
  }
  return canvas;
}

}  // namespace

Scenery::Scenery(std::uint64_t seed) {
  const RandomStream random(seed, "scenery");
  grain = fractal(random.substream(0), kScenerySide / 32, kScenerySide);
  patches = fractal(random.substream(1), 2, kScenerySide / 32);
  patches_half.resize(kArea / 4);
  for (std::uint32_t y = 0; y < kScenerySide / 2; ++y)
    for (std::uint32_t x = 0; x < kScenerySide / 2; ++x)
      patches_half[std::size_t{y} * (kScenerySide / 2) + x] = patches[at(2 * x, 2 * y)];

  const Stock stock{grain, patches};
  const std::array<Style, kSharp> styles{
      Style{kFoliage, 2, 256, false, 170, 350}, Style{kTown, 4, 384, true, 120, 300},
      Style{kThings, 6, 384, false, 120, 300}, Style{kStones, 3, 192, false, 170, 350}};
  canvases.resize(styles.size());
  std::atomic<std::size_t> next{0};
  const Result<void> painted =
      on_threads(static_cast<unsigned>(styles.size()), [&](unsigned) -> Result<void> {
        for (std::size_t i = next++; i < styles.size(); i = next++)
          canvases[i] = dead_leaves(random.substream(2 + i), styles[i], stock);
        return success();
      });
  if (!painted.ok()) throw std::bad_alloc();
  canvases.push_back(clouds(patches, grain));
  canvases.push_back(out_of_focus(canvases[0], 10));
  canvases.push_back(out_of_focus(canvases[2], 6));
}

}  // namespace penstock
