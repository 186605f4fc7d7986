// Turns stored pictures into tensors: decodes, crops, mirrors, resizes and normalises. The mini-apps that
// train on pictures share it.
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

// How much of a stored picture is decoded.
enum class DecodeMode : uint8_t {
  full,  // every pixel
  // Decodes at 1/2, 1/4 or 1/8 of the size, unless a side would become shorter than 4/5 of the result's side.
  // This avoids most of the work for the inverse transform (IDCT), but no work for the Huffman decoding.
  scaled,
  crop,  // decodes only the part that a random crop uses; implies random_crop
};

Result<DecodeMode> parse_decode(std::string_view name);

struct PictureSettings {
  PictureTensor tensor;
  DecodeMode decode = DecodeMode::full;
  ResizeFilter resize = ResizeFilter::bilinear;
  // The tensor shows a part chosen by random_resized_crop(); false: the whole picture.
  bool random_crop = false;
  bool mirror = false;  // mirrors a picture at random, with a probability of 1/2
  uint64_t seed = 0;    // for random crops and mirroring
};

// Draws a random part of a picture, as torchvision's RandomResizedCrop does. The part has 8 to 100% of the
// picture's area, its width is 3/4 to 4/3 of its height, and its position is random. If ten draws in a row do
// not fit into the picture, the result is in the middle: the largest part with such a ratio of width to
// height.
// The method is from Szegedy et al. (Going deeper with convolutions, 2015).
PicturePart random_resized_crop(uint32_t width, uint32_t height, const RandomStream& random);

// The random numbers for cropping and mirroring one sample in one epoch.
inline RandomStream augment_stream(uint64_t seed, const SampleKey& key) {
  return RandomStream(seed, "train.augment").substream(key.epoch).substream(key.index);
}

// Makes the transform of JPEG and PNG samples; their first bytes show which of the two they are. A PNG is
// always decoded in full. The transform has two stages: "decode", and "resize", which also crops, mirrors and
// normalises in the same pass.
Transform picture_transform(const PictureSettings& settings);

}  // namespace penstock
