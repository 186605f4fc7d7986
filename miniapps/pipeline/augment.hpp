// Random changes of a picture on its way into the batch: functions of (seed, epoch, sample), with no state.
#pragma once

#include <cstdint>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/transform.hpp"

namespace penstock {

// What Szegedy et al. (Going deeper with convolutions, 2015) trained with, as torchvision's RandomResizedCrop
// draws it: a part of 8 to 100% of the area, its width 3/4 to 4/3 of its height, anywhere; after ten draws
// that do not fit, the largest part in the middle with an aspect between these.
PicturePart random_resized_crop(std::uint32_t width, std::uint32_t height, const RandomStream& random);

// The numbers of one sample in one epoch.
inline RandomStream augment_stream(std::uint64_t seed, const SampleKey& key) {
  return RandomStream(seed, "train.augment").substream(key.epoch).substream(key.index);
}

}  // namespace penstock
