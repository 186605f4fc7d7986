#include "datagen/recipe/scenery.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <new>
#include <span>
#include <thread>
#include <utility>

#include "datagen/parallel.hpp"

namespace penstock {
namespace {

constexpr std::uint32_t kMask = kScenerySide - 1;
constexpr std::size_t kBlock = 16;  // pixels that are painted at once
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
  NoiseField noise(kArea + kBlock);  // runs of leaves look a block too far
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

// What a leaf is made with along a row, as lines in x. In `float` and without a branch, so that the compiler
// does four pixels at a time; sums, products and roots alone, which IEEE 754 rounds in one way.
struct LeafRow {
  float u, v;  // of the row's first pixel, from the middle, along the leaf's own axes
  float u_step, v_step;
  float light_u, light_v;  // slope of the light
  float luma;              // of the middle
  float texture;           // strength of the grain
  float radius;
  float raggedness;  // what a step of the patches moves the border by, in squares of pixels
};

// `count` pixels that are neighbours in every field. Looked at in blocks: up to kBlock - 1 pixels behind them
// are read, and written as they were.
struct LeafRun {
  int count;
  const std::int8_t* grain;
  const std::int8_t* patches;
  std::uint8_t* luma;
  std::uint8_t* colour_index;
};

// All bits where a number is negative, else none.
int sign_bits(int number) {
  return number >> 31;
}
int sign_bits(float number) {
  return sign_bits(std::bit_cast<std::int32_t>(number));
}

template <bool kBox>
void paint_run(const LeafRow& leaf, const LeafRun& run, std::uint8_t index) {
  const LeafRow row = leaf;
  const float border = row.radius * row.radius;
  for (int block = 0; block < run.count; block += int{kBlock}) {
    const std::int8_t* const grain = run.grain + block;
    const std::int8_t* const patches = run.patches + block;
    std::array<std::int16_t, kBlock> tones;
    std::array<std::int16_t, kBlock> outside;
    const int last = run.count - 1 - block;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const int x = static_cast<int>(i);
      const float u = row.u + static_cast<float>(block + x) * row.u_step;
      const float v = row.v + static_cast<float>(block + x) * row.v_step;
      int out = sign_bits(last - x);
      if constexpr (kBox)
        out |= sign_bits(row.radius - std::abs(u)) | sign_bits(row.radius - std::abs(v));
      else
        out |= sign_bits(border + row.raggedness * static_cast<float>(patches[i]) - (u * u + v * v));
      const float lit =
          row.luma + row.light_u * u + row.light_v * v + row.texture * static_cast<float>(grain[i]);
      outside[i] = static_cast<std::int16_t>(out);
      tones[i] = static_cast<std::int16_t>(static_cast<int>(lit));
    }
    std::uint8_t* const luma = run.luma + block;
    std::uint8_t* const colour_index = run.colour_index + block;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::int16_t tone = std::clamp(tones[i], std::int16_t{0}, std::int16_t{255});
      const auto keep = static_cast<std::uint8_t>(outside[i]);
      luma[i] = static_cast<std::uint8_t>((static_cast<std::uint8_t>(tone) & ~keep) | (luma[i] & keep));
      colour_index[i] = static_cast<std::uint8_t>((index & ~keep) | (colour_index[i] & keep));
    }
  }
}

// Where a row may meet a leaf: u^2 + v^2 is (x + lean * dy)^2 * width + dy^2 * height, which no pixel inside
// has above `reach` squared.
struct LeafReach {
  LeafReach(const LeafRow& row, float u_down, float v_down, float reach) : reach_(reach) {
    width_ = row.u_step * row.u_step + row.v_step * row.v_step;
    lean_ = (row.u_step * u_down + row.v_step * v_down) / width_;
    height_ = u_down * u_down + v_down * v_down - lean_ * lean_ * width_;
  }
  int rows() const { return static_cast<int>(reach_ / std::sqrt(height_)) + 1; }
  // The middle of the row and how far it goes from there, a pixel too much.
  std::pair<int, int> columns(int dy) const {
    const auto y = static_cast<float>(dy);
    const float left = std::max(reach_ * reach_ - y * y * height_, 0.0F);
    return {static_cast<int>(-lean_ * y), static_cast<int>(std::sqrt(left / width_)) + 2};
  }

 private:
  float reach_, width_, lean_, height_;
};

void paint_leaf(const Leaf& leaf, const Stock& stock, std::vector<std::uint8_t>& luma,
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
  row.raggedness = row.radius * row.radius * static_cast<float>(leaf.wobble) / 512.0F;
  // As far as a corner of a box, or the most ragged border, goes.
  const float furthest =
      row.radius * std::sqrt(leaf.box ? 2.0F : 1.0F + 128.0F * static_cast<float>(leaf.wobble) / 512.0F);
  const LeafReach reach(row, u_down, v_down, furthest);
  constexpr int kMost = static_cast<int>(kScenerySide) / 2 - 1;
  const int rows = std::min(reach.rows(), kMost);
  for (int dy = -rows; dy <= rows; ++dy) {
    const auto y = static_cast<std::uint32_t>(leaf.y + dy);
    const auto [middle, half] = reach.columns(dy);
    int from = std::max(middle - half, -kMost);
    const int to = std::min(middle + half, kMost);
    while (from <= to) {
      const std::uint32_t x = static_cast<std::uint32_t>(leaf.x + from) & kMask;
      const std::uint32_t grain_x = (leaf.grain_x + x) & kMask;
      const int count = std::min(to - from + 1, static_cast<int>(kScenerySide - std::max(x, grain_x)));
      row.u = static_cast<float>(dy) * u_down + static_cast<float>(from) * row.u_step;
      row.v = static_cast<float>(dy) * v_down + static_cast<float>(from) * row.v_step;
      const LeafRun run{count, stock.grain.data() + at(grain_x, leaf.grain_y + y),
                        stock.patches.data() + at(x, y), luma.data() + at(x, y),
                        colour_index.data() + at(x, y)};
      leaf.box ? paint_run<true>(row, run, index) : paint_run<false>(row, run, index);
      from += count;
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
  const std::uint32_t width = 2 * reach + 1;
  const std::uint32_t share = (65536 + width / 2) / width;  // of 65536
  std::vector<std::uint8_t> line(side);
  for (std::uint32_t y = 0; y < side; ++y) {
    std::uint8_t* const row = plane.data() + std::size_t{y} * side;
    std::copy_n(row, side, line.begin());
    std::uint32_t sum = 0;
    for (std::uint32_t x = 0; x < width; ++x) sum += line[(x - reach) & mask];
    for (std::uint32_t x = 0; x < side; ++x) {
      row[x] = static_cast<std::uint8_t>(std::min((sum * share) >> 16U, 255U));
      sum += line[(x + reach + 1) & mask];
      sum -= line[(x - reach) & mask];
    }
  }
  // Down, a whole row of sums at a time.
  const std::vector<std::uint8_t> sharp = plane;
  const auto row_of = [&](std::uint32_t y) { return sharp.data() + std::size_t{y & mask} * side; };
  std::vector<std::uint32_t> sums(side, 0);
  for (std::uint32_t y = 0; y < width; ++y)
    for (std::uint32_t x = 0; x < side; ++x) sums[x] += row_of(y - reach)[x];
  for (std::uint32_t y = 0; y < side; ++y) {
    std::uint8_t* const out = plane.data() + std::size_t{y} * side;
    const std::uint8_t* const entering = row_of(y + reach + 1);
    const std::uint8_t* const leaving = row_of(y - reach);
    for (std::uint32_t x = 0; x < side; ++x) {
      out[x] = static_cast<std::uint8_t>(std::min((sums[x] * share) >> 16U, 255U));
      sums[x] += entering[x];
      sums[x] -= leaving[x];
    }
  }
}

Canvas dead_leaves(RandomStream random, const Style& style, const Stock& stock) {
  Draws draws(random);
  Canvas canvas;
  canvas.y.assign(kArea + kBlock, 128);
  std::vector<std::uint8_t> colour_index(kArea + kBlock, 0);
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
  canvas.y.resize(kArea);
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

// On as many threads as there are processors.
void each_on_a_thread(std::initializer_list<std::function<void()>> tasks) {
  std::atomic<std::size_t> next{0};
  const unsigned threads = std::min(static_cast<unsigned>(tasks.size()), std::thread::hardware_concurrency());
  const Result<void> done = on_threads(threads, [&](unsigned) -> Result<void> {
    for (std::size_t i = next++; i < tasks.size(); i = next++) tasks.begin()[i]();
    return success();
  });
  if (!done.ok()) throw std::bad_alloc();
}

}  // namespace

Scenery::Scenery(std::uint64_t seed) {
  const RandomStream random(seed, "scenery");
  each_on_a_thread({[&] { grain = fractal(random.substream(0), kScenerySide / 32, kScenerySide); },
                    [&] { patches = fractal(random.substream(1), 2, kScenerySide / 32); }});
  patches_half.resize(kArea / 4);
  for (std::uint32_t y = 0; y < kScenerySide / 2; ++y)
    for (std::uint32_t x = 0; x < kScenerySide / 2; ++x)
      patches_half[std::size_t{y} * (kScenerySide / 2) + x] = patches[at(2 * x, 2 * y)];

  const Stock stock{grain, patches};
  const std::array<Style, kSharp> styles{
      Style{kFoliage, 2, 256, false, 170, 350}, Style{kTown, 4, 384, true, 120, 300},
      Style{kThings, 6, 384, false, 120, 300}, Style{kStones, 3, 192, false, 170, 350}};
  canvases.resize(kSharp + 3);
  const auto paint = [&](std::size_t i) {
    canvases[i] = dead_leaves(random.substream(2 + i), styles[i], stock);
  };
  each_on_a_thread({[&] {
                      paint(0);
                      canvases[kSharp + 1] = out_of_focus(canvases[0], 10);
                    },
                    [&] { paint(3); },
                    [&] {
                      paint(2);
                      canvases[kSharp + 2] = out_of_focus(canvases[2], 6);
                    },
                    [&] { paint(1); }, [&] { canvases[kSharp] = clouds(patches, grain); }});
}

}  // namespace penstock
