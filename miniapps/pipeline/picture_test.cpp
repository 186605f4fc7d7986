#include "miniapps/pipeline/picture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/codec/png.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;

// A picture of waves in all channels, smooth and without symmetry.
Image waves(uint32_t width, uint32_t height) {
  Image image{width, height, {}};
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < 3; ++c)
        image.pixels.push_back(
            uint8_t(128 + 100 * std::sin(std::numbers::pi * (x * (c + 1.0) / width + 0.7 * y / height + c))));
  return image;
}

Bytes as_jpeg(const Image& image) {
  JpegEncoder encoder;
  const auto bytes = encoder.encode(image, 90).value();
  return {bytes.begin(), bytes.end()};
}

PictureSettings to_48() {
  PictureSettings settings;
  settings.tensor = {48, 48, PixelType::u8, Axes::nhwc};
  settings.seed = 7;
  return settings;
}

Bytes applied(const PictureSettings& settings, const Bytes& stored, const SampleKey& key = {}) {
  const auto app_transform = picture_transform(settings);
  const auto transform = app_transform.make().value();
  StageTimer timer(kFirstOwnPart + app_transform.stages.size());
  timer.restart();
  Bytes slot(app_transform.slot_bytes);
  const Result<void> done = transform->apply(key, stored, slot, timer);
  EXPECT_TRUE(done.ok()) << done.error().message();
  return slot;
}

int worst_difference(const Bytes& one, const Bytes& other) {
  int worst = 0;
  for (size_t i = 0; i < one.size(); ++i) worst = std::max(worst, std::abs(int(one[i]) - int(other[i])));
  return worst;
}

Bytes mirrored(const Bytes& slot, size_t side) {
  Bytes out(slot.size());
  for (size_t y = 0; y < side; ++y)
    for (size_t x = 0; x < side; ++x)
      std::copy_n(slot.begin() + ptrdiff_t(3 * (y * side + x)), 3,
                  out.begin() + ptrdiff_t(3 * (y * side + side - 1 - x)));
  return out;
}

TEST(Picture, ACropEqualsThePartOfAFullDecode) {
  const Bytes jpeg = as_jpeg(waves(200, 150));
  PictureSettings whole = to_48();
  whole.random_crop = true;
  PictureSettings part = to_48();
  part.decode = DecodeMode::crop;
  for (uint64_t index = 0; index < 50; ++index)
    EXPECT_EQ(applied(part, jpeg, {1, index}), applied(whole, jpeg, {1, index})) << index;
}

TEST(Picture, ScaledLooksTheSame) {
  const Bytes jpeg = as_jpeg(waves(900, 700));  // an eighth of each side is large enough
  PictureSettings scaled = to_48();
  scaled.decode = DecodeMode::scaled;
  EXPECT_LE(worst_difference(applied(scaled, jpeg), applied(to_48(), jpeg)), 8);
  scaled.random_crop = true;
  PictureSettings whole = to_48();
  whole.random_crop = true;
  for (uint64_t index = 0; index < 20; ++index)
    EXPECT_LE(worst_difference(applied(scaled, jpeg, {0, index}), applied(whole, jpeg, {0, index})), 12)
        << index;
}

TEST(Picture, ScaledLeavesSmallPicturesWhole) {
  const Bytes jpeg = as_jpeg(waves(90, 70));
  PictureSettings scaled = to_48();
  scaled.decode = DecodeMode::scaled;
  EXPECT_EQ(applied(scaled, jpeg), applied(to_48(), jpeg));
}

TEST(Picture, ScaledMayDecodeSlightlyLessThanTheTargetSize) {
  const Bytes jpeg = as_jpeg(waves(100, 80));  // half of it is 50x40
  PictureSettings scaled = to_48();
  scaled.decode = DecodeMode::scaled;
  const Bytes got = applied(scaled, jpeg);
  EXPECT_NE(got, applied(to_48(), jpeg)) << "it was decoded whole";
  EXPECT_LE(worst_difference(got, applied(to_48(), jpeg)), 40);
}

TEST(Picture, AboutHalfAreMirrored) {
  const Bytes jpeg = as_jpeg(waves(200, 150));
  const Bytes plain = applied(to_48(), jpeg);
  PictureSettings settings = to_48();
  settings.mirror = true;
  int changed = 0;
  for (uint64_t index = 0; index < 100; ++index) {
    const Bytes got = applied(settings, jpeg, {0, index});
    if (got == plain) continue;
    EXPECT_EQ(got, mirrored(plain, 48));
    ++changed;
  }
  EXPECT_GT(changed, 30);
  EXPECT_LT(changed, 70);
}

TEST(Picture, CropsDependOnlyOnSeedEpochAndSample) {
  const Bytes jpeg = as_jpeg(waves(200, 150));
  PictureSettings settings = to_48();
  settings.random_crop = true;
  settings.mirror = true;
  const Bytes first = applied(settings, jpeg, {3, 5});
  EXPECT_EQ(applied(settings, jpeg, {3, 5}), first);
  EXPECT_NE(applied(settings, jpeg, {4, 5}), first);
  EXPECT_NE(applied(settings, jpeg, {3, 6}), first);
  settings.seed = 8;
  EXPECT_NE(applied(settings, jpeg, {3, 5}), first);
}

TEST(Picture, TakesPngInEveryMode) {
  if (!png_available().ok()) GTEST_SKIP() << png_available().error().what;
  std::vector<std::byte> encoded;
  const auto png = encode_png(waves(200, 150), encoded).value();
  const Bytes stored(png.begin(), png.end());
  const Bytes whole = applied(to_48(), stored);
  EXPECT_LE(worst_difference(whole, applied(to_48(), as_jpeg(waves(200, 150)))), 12);
  PictureSettings settings = to_48();
  settings.decode = DecodeMode::scaled;
  EXPECT_EQ(applied(settings, stored), whole);
  settings.decode = DecodeMode::crop;
  EXPECT_NE(applied(settings, stored), whole);
}

TEST(Picture, HasATextForItsLayout) {
  PictureSettings settings = to_48();
  settings.tensor = {224, 224, PixelType::f16, Axes::nchw};
  const auto app_transform = picture_transform(settings);
  EXPECT_EQ(app_transform.layout, "f16 NCHW 3x224x224");
  EXPECT_EQ(app_transform.slot_bytes, 224U * 224 * 3 * 2);
}

TEST(RandomResizedCrop, StaysWithinThePictureAndItsLimits) {
  double least = 1;
  double most = 0;
  for (uint64_t index = 0; index < 2000; ++index) {
    const PicturePart part = random_resized_crop(500, 375, augment_stream(1, {0, index}));
    ASSERT_LE(part.left + part.width, 500U);
    ASSERT_LE(part.top + part.height, 375U);
    const double area = double(part.width) * part.height / (500.0 * 375.0);
    const double aspect = double(part.width) / part.height;
    EXPECT_GT(area, 0.078);
    EXPECT_GT(aspect, 0.74);
    EXPECT_LT(aspect, 1.35);
    least = std::min(least, area);
    most = std::max(most, area);
  }
  EXPECT_LT(least, 0.1);
  EXPECT_GT(most, 0.9);
}

TEST(RandomResizedCrop, TakesTheMiddleOfLongPictures) {
  const PicturePart wide = random_resized_crop(1000, 10, augment_stream(1, {0, 0}));
  EXPECT_EQ(wide.height, 10U);
  EXPECT_EQ(wide.width, 13U);
  EXPECT_EQ(wide.left, 493U);
  const PicturePart high = random_resized_crop(10, 1000, augment_stream(1, {0, 0}));
  EXPECT_EQ(high.width, 10U);
  EXPECT_EQ(high.height, 13U);
  for (const uint32_t side : {1U, 2U}) {
    const PicturePart tiny = random_resized_crop(side, 1, augment_stream(1, {0, side}));
    EXPECT_GE(tiny.width, 1U);
    EXPECT_EQ(tiny.height, 1U);
    EXPECT_LE(tiny.left + tiny.width, side);
  }
}

}  // namespace
}  // namespace penstock
