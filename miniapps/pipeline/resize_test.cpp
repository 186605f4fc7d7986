#include "miniapps/pipeline/resize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "io_backends/base/random.hpp"

namespace penstock {
namespace {

const Normalisation kSome{{0.5F, 0.4F, 0.3F}, {0.2F, 0.25F, 0.3F}};

Image noise(std::uint32_t width, std::uint32_t height) {
  Image image{width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height)};
  const RandomStream random(width, height);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(random.bits(i));
  return image;
}

// Straight from the definition, in double, one value at a time.
double reference(const Image& image, std::uint32_t out_width, std::uint32_t out_height, std::uint32_t x,
                 std::uint32_t y, std::uint32_t channel, const Normalisation& normalisation) {
  const auto place = [](std::uint32_t target, std::uint32_t target_size, std::uint32_t size) {
    return std::clamp((target + 0.5) * size / target_size - 0.5, 0.0, size - 1.0);
  };
  const auto pixel = [&](double px, double py) {
    const auto ix = static_cast<std::size_t>(std::min(px, image.width - 1.0));
    const auto iy = static_cast<std::size_t>(std::min(py, image.height - 1.0));
    return static_cast<double>(image.pixels[(iy * image.width + ix) * 3 + channel]);
  };
  const double sx = place(x, out_width, image.width);
  const double sy = place(y, out_height, image.height);
  const double fx = sx - std::floor(sx);
  const double fy = sy - std::floor(sy);
  const double top = pixel(sx, sy) * (1 - fx) + pixel(sx + 1, sy) * fx;
  const double bottom = pixel(sx, sy + 1) * (1 - fx) + pixel(sx + 1, sy + 1) * fx;
  return ((top * (1 - fy) + bottom * fy) / 255.0 - normalisation.mean[channel]) /
         normalisation.deviation[channel];
}

void expect_as_reference(std::uint32_t width, std::uint32_t height, std::uint32_t out_width,
                         std::uint32_t out_height) {
  SCOPED_TRACE(::testing::Message() << width << "x" << height << " to " << out_width << "x" << out_height);
  const Image image = noise(width, height);
  BilinearResizer resizer(out_width, out_height, kSome);
  constexpr float kGuard = 12345.0F;
  std::vector<float> out(resizer.out_floats() + 1, kGuard);
  resizer.run(image, {out.data(), resizer.out_floats()});
  EXPECT_EQ(out.back(), kGuard) << "wrote behind its slot";
  double worst = 0;
  for (std::uint32_t y = 0; y < out_height; ++y)
    for (std::uint32_t x = 0; x < out_width; ++x)
      for (std::uint32_t c = 0; c < 3; ++c)
        worst = std::max(worst, std::abs(out[(std::size_t{y} * out_width + x) * 3 + c] -
                                         reference(image, out_width, out_height, x, y, c, kSome)));
  EXPECT_LT(worst, 2e-5);
}

TEST(BilinearResizer, DoesWhatItsDefinitionSays) {
  for (const auto& [width, height] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {500, 375}, {375, 500}, {224, 224}, {223, 225}, {100, 70}, {448, 448}})
    expect_as_reference(width, height, 224, 224);
}

TEST(BilinearResizer, TakesTheSmallestAndTheOddestPictures) {
  for (const auto& [width, height] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}, {1, 5000}, {20000, 1}, {20000, 2}})
    expect_as_reference(width, height, 224, 224);
}

TEST(BilinearResizer, MakesTheSmallestPictures) {
  expect_as_reference(500, 375, 1, 1);
  expect_as_reference(1, 1, 1, 1);
  expect_as_reference(17, 9, 3, 2);
}

TEST(BilinearResizer, KeepsItsTablesStraightFromPictureToPicture) {
  BilinearResizer resizer(16, 16, kSome);
  std::vector<float> first(resizer.out_floats());
  std::vector<float> other(resizer.out_floats());
  std::vector<float> again(resizer.out_floats());
  resizer.run(noise(40, 30), first);
  resizer.run(noise(7, 90), other);
  resizer.run(noise(40, 30), again);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

TEST(BilinearResizer, NormalisesByChannel) {
  Image image{1, 1, {255, 0, 51}};
  BilinearResizer resizer(1, 1, kSome);
  std::vector<float> out(3);
  resizer.run(image, out);
  EXPECT_NEAR(out[0], (1.0 - 0.5) / 0.2, 1e-5);
  EXPECT_NEAR(out[1], (0.0 - 0.4) / 0.25, 1e-5);
  EXPECT_NEAR(out[2], (0.2 - 0.3) / 0.3, 1e-5);
}

}  // namespace
}  // namespace penstock
