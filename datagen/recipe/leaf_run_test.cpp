#include "datagen/recipe/leaf_run.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "datagen/recipe/draws.hpp"

namespace penstock {
namespace {

struct Painted {
  std::vector<uint8_t> luma;
  std::vector<uint8_t> colour_index;
  bool operator==(const Painted&) const = default;
};

// Paints many runs of pixels, of leaves of all shapes at random positions, and returns the result.
template <class Paint>
Painted paint_many(Paint paint) {
  constexpr int kWidth = 400;
  constexpr size_t kPaddedWidth = kWidth + kSceneryBlock;
  Draws draws{RandomStream(7, "runs")};
  std::vector<int8_t> grain(kPaddedWidth);
  std::vector<int8_t> patches(kPaddedWidth);
  for (size_t i = 0; i < kPaddedWidth; ++i) {
    grain[i] = int8_t(draws.between(-127, 127));
    patches[i] = int8_t(draws.between(-127, 127));
  }
  Painted painted{std::vector<uint8_t>(kPaddedWidth, 128), std::vector<uint8_t>(kPaddedWidth, 0)};
  const auto draw_float = [&](int from, int to, int parts) {
    return float(draws.between(from * parts, to * parts)) / float(parts);
  };
  for (int i = 0; i < 5000; ++i) {
    const int count = draws.between(1, kWidth);
    const int from = draws.between(0, kWidth - count);
    LeafRow row{};
    row.u = draw_float(-300, 300, 16);
    row.v = draw_float(-300, 300, 16);
    row.u_step = draw_float(-1, 1, 256);
    row.v_step = draw_float(-2, 2, 256);
    row.light_u = draw_float(-1, 1, 64);
    row.light_v = draw_float(-1, 1, 64);
    row.luma = draw_float(-40, 300, 1);
    row.texture = draw_float(0, 3, 100);
    row.radius = draw_float(2, 384, 1);
    row.raggedness = row.radius * row.radius * draw_float(0, 3, 1) / 512.0F;
    const LeafRun run{count, grain.data() + from, patches.data() + from, painted.luma.data() + from,
                      painted.colour_index.data() + from};
    paint(row, run, draws.percent(50), uint8_t(i % 256));
  }
  return painted;
}

TEST(LeafRun, EveryProcessorPaintsTheSame) {
  const Painted portable = paint_many(paint_run_portable);
  EXPECT_NE(portable.luma, std::vector<uint8_t>(portable.luma.size(), 128)) << "nothing was painted";
  if (!paint_run_has_avx2()) GTEST_SKIP() << "this processor has no AVX2: there is only one way";
  EXPECT_TRUE(paint_many(paint_run) == portable);
}

TEST(LeafRun, NothingOutsideIsChanged) {
  std::vector<int8_t> field(64);
  for (const bool box : {false, true})
    for (int count = 1; count < 40; ++count) {
      std::vector<uint8_t> luma(64, 7);
      std::vector<uint8_t> colour_index(64, 9);
      LeafRow row{};
      row.u_step = 1;
      row.radius = 1000;
      row.luma = 200;
      paint_run(row, {count, field.data(), field.data(), luma.data(), colour_index.data()}, box, 5);
      for (int x = 0; x < 64; ++x) {
        EXPECT_EQ(luma[size_t(x)], x < count ? 200 : 7) << x << " of " << count;
        EXPECT_EQ(colour_index[size_t(x)], x < count ? 5 : 9) << x << " of " << count;
      }
    }
}

}  // namespace
}  // namespace penstock
