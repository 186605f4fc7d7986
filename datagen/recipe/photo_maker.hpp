// Makes pictures that resemble photographs and have given sizes. Each picture is encoded on its own, as JPEG
// or as PNG. A PNG gets the number of pixels that gives its size in bytes.
#pragma once

#include <cstdint>
#include <span>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/recipe/photo_sizes.hpp"
#include "datagen/recipe/picture.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/scenery.hpp"

namespace penstock {

// Makes samples of one field: a baseline JPEG with 4:2:0. The quantizer percentage, a whole number from 2 to
// 192, is chosen to give the wanted size. A picture is encoded at most twice, so its size is usually, but not
// always, within 4% of photo_bytes(). From percentage 2 to 3 alone, the size falls by 10%. The scenery must
// outlive the maker.
class PhotoMaker final : public SampleMaker {
 public:
  PhotoMaker(const Scenery& scenery, RandomStream samples, PhotoSizes sizes)
      : samples_(samples), sizes_(sizes), painter_(scenery) {}

  Result<std::span<const FieldBytes>> make(uint64_t index) override;

 private:
  Result<std::span<const std::byte>> paint(uint64_t index);
  Result<double> estimate_bytes();
  Result<std::span<const std::byte>> encode(double target_bytes, double estimated_bytes);

  const RandomStream samples_;
  const PhotoSizes sizes_;
  PicturePainter painter_;
  JpegEncoder encoder_;
  YccImage picture_;
  YccImage excerpt_;
  std::span<const std::byte> jpeg_;
  FieldBytes field_;
};

// Makes samples of one field: a PNG with eight-bit RGB, usually within 4% of photo_bytes(). The scenery must
// outlive the maker.
class PngPhotoMaker final : public SampleMaker {
 public:
  PngPhotoMaker(const Scenery& scenery, RandomStream samples, PhotoSizes sizes)
      : samples_(samples), sizes_(sizes), painter_(scenery) {}

  Result<std::span<const FieldBytes>> make(uint64_t index) override;

 private:
  Result<double> estimate_density();

  const RandomStream samples_;
  const PhotoSizes sizes_;
  PicturePainter painter_;
  std::vector<std::byte> encoded_;
  YccImage picture_;
  Image pixels_;
  Image excerpt_;
  std::span<const std::byte> png_;
  FieldBytes field_;
};

// Converts the picture to RGB by JFIF's rule, as viewers do. Colour has half the resolution, so two by two
// pixels get the same colour value, without interpolation.
void to_rgb(const YccImage& picture, Image& out);

}  // namespace penstock
