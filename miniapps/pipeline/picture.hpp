// Pictures on their way into a batch: decoded, cropped, mirrored, resized, normalised. What the mini-apps
// that train on pictures have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/picture_tensor.hpp"
#include "miniapps/pipeline/transform.hpp"

namespace penstock {

// How much of a picture is decoded.
enum class DecodeMode : std::uint8_t {
  full,    // every pixel
  scaled,  // at half, a quarter or an eighth of the size where that leaves no side shorter than four fifths
           // of what is asked for: most of the inverse transform falls away, Huffman decoding stays
  crop,    // only what a random crop needs of it (which it makes, too)
};

Result<DecodeMode> parse_decode(std::string_view name);

struct PictureSettings {
  PictureTensor tensor;
  Normalisation normalisation;
  DecodeMode decode = DecodeMode::full;
  ResizeFilter resize = ResizeFilter::bilinear;
  bool random_crop = false;  // by random_resized_crop(); else the whole picture
  bool mirror = false;       // every second picture, at random
  std::uint64_t seed = 0;    // of crops and mirroring
};

// What Szegedy et al. (Going deeper with convolutions, 2015) trained with, as torchvision's RandomResizedCrop
// draws it: a part of 8 to 100% of the area, its width 3/4 to 4/3 of its height, anywhere; after ten draws
// that do not fit, the largest part in the middle with an aspect between these.
PicturePart random_resized_crop(std::uint32_t width, std::uint32_t height, const RandomStream& random);

// The numbers of one sample in one epoch.
inline RandomStream augment_stream(std::uint64_t seed, const SampleKey& key) {
  return RandomStream(seed, "train.augment").substream(key.epoch).substream(key.index);
}

// Takes JPEG and PNG (of which every pixel is decoded whatever the mode), told apart by their first bytes.
// Its stages are "decode" and "resize", the latter with cropping, mirroring and normalising in one pass.
Transform picture_transform(const PictureSettings& settings);

}  // namespace penstock
