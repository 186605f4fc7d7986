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

// Paints many pieces of leaves of all shapes at random places, and returns the result.
template <class Paint>
Painted paint_many(Paint paint) {
  constexpr int kWidth = 400;
  constexpr size_t kRoom = kWidth + kSceneryBlock;
  Draws draws{RandomStream(7, "runs")};
  std::vector<int8_t> grain(kRoom);
  std::vector<int8_t> patches(kRoom);
  for (size_t i = 0; i < kRoom; ++i) {
    grain[i] = int8_t(draws.between(-127, 127));
    patches[i] = int8_t(draws.between(-127, 127));
  }
  Painted painted{std::vector<uint8_t>(kRoom, 128), std::vector<uint8_t>(kRoom, 0)};
  const auto real = [&](int from, int to, int parts) {
    return float(draws.between(from * parts, to * parts)) / float(parts);
  };
  for (int i = 0; i < 5000; ++i) {
    const int count = draws.between(1, kWidth);
    const int from = draws.between(0, kWidth - count);
    LeafRow row{};
    row.u = real(-300, 300, 16);
    row.v = real(-300, 300, 16);
    row.u_step = real(-1, 1, 256);
    row.v_step = real(-2, 2, 256);
    row.light_u = real(-1, 1, 64);
    row.light_v = real(-1, 1, 64);
    row.luma = real(-40, 300, 1);
    row.texture = real(0, 3, 100);
    row.radius = real(2, 384, 1);
    row.raggedness = row.radius * row.radius * real(0, 3, 1) / 512.0F;
    const LeafRun run{count, grain.data() + from, patches.data() + from, painted.luma.data() + from,
                      painted.colour_index.data() + from};
    paint(row, run, draws.percent(50), uint8_t(i % 256));
  }
  return painted;
}

TEST(LeafRun, EveryProcessorPaintsTheSame) {
  const Painted any = paint_many(paint_run_portable);
  EXPECT_NE(any.luma, std::vector<uint8_t>(any.luma.size(), 128)) << "nothing was painted";
  if (!paint_run_has_avx2()) GTEST_SKIP() << "this processor has no AVX2: there is only one way";
  EXPECT_TRUE(paint_many(paint_run) == any);
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
