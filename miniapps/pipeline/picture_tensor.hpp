// A picture as one slot of a batch: element type, order of the axes, and how pixels become numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

enum class PixelType : std::uint8_t {
  f32,
  f16,  // IEEE 754 binary16, rounded to nearest even
  u8,   // pixels as they are, rounded to nearest: not normalised
};

enum class Axes : std::uint8_t {
  nhwc,  // height, width, channel: TensorFlow's default
  nchw,  // channel, height, width: PyTorch's
};

Result<PixelType> parse_pixel_type(std::string_view name);
Result<Axes> parse_axes(std::string_view name);

// out = (pixel / 255 - mean) / deviation, by channel (red, green, blue).
struct Normalisation {
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> deviation{1, 1, 1};
};

struct PictureTensor {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  PixelType type = PixelType::f32;
  Axes axes = Axes::nhwc;

  std::size_t bytes() const;
  std::string text() const;  // "f32 NHWC 224x224x3"
};

// Writes a picture line by line into its slot. One thread; memory is reused.
class LineWriter {
 public:
  LineWriter(const PictureTensor& tensor, const Normalisation& normalisation);

  // `line`: one line of the picture, width() times red, green, blue, 0 to 255 each; it may be changed. `slot`
  // is tensor.bytes() long and aligned to its element.
  void write(std::uint32_t y, std::span<float> line, std::span<std::byte> slot);

 private:
  void normalise(std::span<const float> from, float* to) const;

  const PictureTensor tensor_;
  std::array<float, 12> scale_{};  // of 12 numbers on end, which are four pixels
  std::array<float, 12> shift_{};
  std::vector<float> planar_;  // the line, channel by channel
};

// The nearest binary16, ties to even; infinity beyond 65504.
std::uint16_t half_from_float(float value);

}  // namespace penstock
