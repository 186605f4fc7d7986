// Makes photographs' look-alikes of wanted sizes, each encoded by itself: as JPEG, or as PNG, where a size is
// met by how many pixels a picture has.
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

// One field: a baseline JPEG of 4:2:0, within 4% of photo_bytes() where its quantizer steps allow that. The
// scenery must outlive it.
class PhotoMaker final : public SampleMaker {
 public:
  PhotoMaker(const Scenery& scenery, RandomStream samples, PhotoSizes sizes)
      : samples_(samples), sizes_(sizes), painter_(scenery) {}

  Result<std::span<const FieldBytes>> make(std::uint64_t index) override;

 private:
  Result<std::span<const std::byte>> paint(std::uint64_t index);
  Result<double> first_look();
  Result<std::span<const std::byte>> encode(double wanted, double look);

  const RandomStream samples_;
  const PhotoSizes sizes_;
  PicturePainter painter_;
  JpegEncoder encoder_;
  YccImage picture_;
  YccImage look_;
  std::span<const std::byte> jpeg_;
  FieldBytes made_;
};

// One field: a PNG of eight-bit RGB, within 4% of photo_bytes() as a rule. The scenery must outlive it.
class PngPhotoMaker final : public SampleMaker {
 public:
  PngPhotoMaker(const Scenery& scenery, RandomStream samples, PhotoSizes sizes)
      : samples_(samples), sizes_(sizes), painter_(scenery) {}

  Result<std::span<const FieldBytes>> make(std::uint64_t index) override;

 private:
  Result<double> density();

  const RandomStream samples_;
  const PhotoSizes sizes_;
  PicturePainter painter_;
  PngEncoder encoder_;
  YccImage picture_;
  Image pixels_;
  Image probe_;
  std::span<const std::byte> png_;
  FieldBytes made_;
};

// The picture as its viewers see it, by JFIF's conversion; colour is not smoothed between its pixels.
void to_rgb(const YccImage& picture, Image& out);

}  // namespace penstock
