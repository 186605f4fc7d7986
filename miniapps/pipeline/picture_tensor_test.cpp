#include "miniapps/pipeline/picture_tensor.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace penstock {
namespace {

constexpr std::array kMean{0.5F, 0.4F, 0.3F};
constexpr std::array kDeviation{0.2F, 0.25F, 0.3F};

double from_half(uint16_t half) {
  const int exponent = (half >> 10U) & 0x1FU;
  const double fraction = half & 0x3FFU;
  const double sign = (half & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryValueConvertsToItself) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const auto bits = uint16_t(half);
    const double value = from_half(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(from_half(half_from_float(float(value)))));
    } else {
      EXPECT_EQ(half_from_float(float(value)), bits) << value;
    }
  }
}

TEST(Half, RoundsToNearestAndTiesToEven) {
  for (uint32_t lower = 0; lower < 0x7BFF; ++lower) {
    const double below = from_half(uint16_t(lower));
    const double above = from_half(uint16_t(lower + 1));
    const auto middle = float((below + above) / 2);
    EXPECT_EQ(half_from_float(middle), lower + lower % 2) << below;
    EXPECT_EQ(half_from_float(std::nextafter(middle, 0.0F)), lower) << below;
    EXPECT_EQ(half_from_float(std::nextafter(middle, 1e9F)), lower + 1) << below;
  }
}

TEST(Half, BeyondTheLargestIsInfinity) {
  EXPECT_EQ(half_from_float(65519.996F), 0x7BFF);
  EXPECT_EQ(half_from_float(65520.0F), 0x7C00);
  EXPECT_EQ(half_from_float(-1e30F), 0xFC00);
  EXPECT_EQ(half_from_float(std::numeric_limits<float>::infinity()), 0x7C00);
}

// Writes a picture whose pixels are 0, 1, 2 and so on.
template <class Number>
std::vector<Number> written(PictureTensor tensor) {
  tensor.mean = kMean;
  tensor.deviation = kDeviation;
  std::vector<Number> slot(tensor.bytes() / sizeof(Number) + 1, Number{77});
  LineWriter writer(tensor);
  std::vector<float> line(size_t{3} * tensor.width);
  for (uint32_t y = 0; y < tensor.height; ++y) {
    std::iota(line.begin(), line.end(), float(y * line.size()));
    writer.write(y, line, std::as_writable_bytes(std::span(slot)).first(tensor.bytes()));
  }
  EXPECT_EQ(slot.back(), Number{77}) << "wrote behind its slot";
  slot.pop_back();
  return slot;
}

TEST(LineWriter, NormalisesByChannel) {
  for (const uint32_t width : {1U, 3U, 4U, 5U, 9U}) {
    const auto floats = written<float>({width, 2, PixelType::f32, Axes::nhwc});
    for (size_t i = 0; i < floats.size(); ++i)
      EXPECT_NEAR(floats[i], (double(i) / 255.0 - kMean[i % 3]) / kDeviation[i % 3], 1e-5) << i;
  }
}

TEST(LineWriter, WritesChannelsFirst) {
  const auto last = written<float>({5, 4, PixelType::f32, Axes::nhwc});
  const auto first = written<float>({5, 4, PixelType::f32, Axes::nchw});
  for (size_t pixel = 0; pixel < 20; ++pixel)
    for (size_t channel = 0; channel < 3; ++channel)
      EXPECT_EQ(first[channel * 20 + pixel], last[pixel * 3 + channel]);
}

TEST(LineWriter, RoundsToHalves) {
  const auto floats = written<float>({5, 4, PixelType::f32, Axes::nchw});
  const auto halves = written<uint16_t>({5, 4, PixelType::f16, Axes::nchw});
  for (size_t i = 0; i < floats.size(); ++i) EXPECT_EQ(halves[i], half_from_float(floats[i]));
}

TEST(LineWriter, LeavesPixelsAsTheyAre) {
  const auto pixels = written<uint8_t>({5, 4, PixelType::u8, Axes::nhwc});
  for (size_t i = 0; i < pixels.size(); ++i) EXPECT_EQ(pixels[i], i);
  LineWriter writer({2, 1, PixelType::u8, Axes::nhwc, kMean, kDeviation});
  std::vector<float> line{-0.4F, 0.49F, 0.51F, 254.6F, 255.4F, 99.5F};
  std::vector<std::byte> slot(6);
  writer.write(0, line, slot);
  const std::vector<std::byte> rounded{std::byte{0},   std::byte{0},   std::byte{1},
                                       std::byte{255}, std::byte{255}, std::byte{100}};
  EXPECT_EQ(slot, rounded);
}

TEST(PictureTensor, HasATextForItsLayout) {
  EXPECT_EQ((PictureTensor{224, 112, PixelType::f32, Axes::nhwc}).text(), "f32 NHWC 112x224x3");
  EXPECT_EQ((PictureTensor{224, 112, PixelType::f16, Axes::nchw}).text(), "f16 NCHW 3x112x224");
  EXPECT_EQ((PictureTensor{224, 112, PixelType::u8, Axes::nchw}).bytes(), 224U * 112 * 3);
  EXPECT_EQ(parse_pixel_type("f16").value(), PixelType::f16);
  EXPECT_FALSE(parse_pixel_type("bf16").ok());
  EXPECT_FALSE(parse_axes("hwcn").ok());
}

}  // namespace
}  // namespace penstock
