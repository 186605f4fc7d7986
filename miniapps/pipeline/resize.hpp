// Pictures to the size that a network takes, normalised on the way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datagen/codec/jpeg.hpp"

namespace penstock {

// out = (pixel / 255 - mean) / deviation, by channel (red, green, blue).
struct Normalisation {
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> deviation{1, 1, 1};
};

// Bilinear interpolation between pixel centres, edges repeated, the aspect not kept, no filter against
// aliasing:
//   source = (target + 1/2) * source_size / target_size - 1/2, clamped to [0, source_size - 1]
// which is what OpenCV calls INTER_LINEAR and PyTorch bilinear without antialias. The result is one picture
// of f32 in the order height, width, channel (NHWC once pictures stand in a batch, as TensorFlow, the paper's
// framework, has them by default). One thread; memory is reused from picture to picture.
class BilinearResizer {
 public:
  BilinearResizer(std::uint32_t width, std::uint32_t height, const Normalisation& normalisation);

  std::size_t out_floats() const { return std::size_t{3} * width_ * height_; }

  // `image` has at least one pixel and holds width * height * 3 bytes; `out` holds out_floats().
  void run(const Image& image, std::span<float> out);

 private:
  // Where the two neighbours of each target position are, and how far it is towards the second.
  struct Axis {
    std::uint32_t source = 0;
    std::uint32_t step = 0;  // from the first neighbour to the second: 0 when the source is one wide
    std::vector<std::uint32_t> first;
    std::vector<float> towards;
    void prepare(std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit);
  };

  const std::uint32_t width_;
  const std::uint32_t height_;
  std::array<float, 4> scale_{};  // out = value * scale + shift; the fourth lane is padding
  std::array<float, 4> shift_{};
  Axis columns_;
  Axis rows_;
  std::vector<float> line_;  // one line between two source lines, all of its pixels
};

}  // namespace penstock
