// Writes a decoded picture into its slot of a batch: resizes it, normalises pixels, and chooses the element
// type and the order of the axes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

enum class PixelType : uint8_t {
  f32,
  f16,  // IEEE 754 binary16, rounded to nearest even
  u8,   // pixels 0 to 255, rounded to nearest and not normalised
};

enum class Axes : uint8_t {
  nhwc,  // height, width, channel: TensorFlow's default
  nchw,  // channel, height, width: PyTorch's
};

Result<PixelType> parse_pixel_type(std::string_view name);
Result<Axes> parse_axes(std::string_view name);

// The form of a picture in a batch.
struct PictureTensor {
  uint32_t width = 0;
  uint32_t height = 0;
  PixelType type = PixelType::f32;
  Axes axes = Axes::nhwc;
  // Mean and deviation of each channel (red, green, blue). f32 and f16 are normalised: (pixel / 255 - mean) /
  // deviation.
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> deviation{1, 1, 1};

  size_t bytes() const;
  std::string text() const;  // "f32 NHWC 224x224x3"
};

enum class ResizeFilter : uint8_t {
  // Interpolates between the two nearest pixel centres, without a filter against aliasing. Repeats edges:
  // source = (target + 1/2) * source_size / target_size - 1/2, clamped to [0, source_size - 1]
  // OpenCV calls this INTER_LINEAR; in PyTorch it is bilinear without antialias.
  bilinear,
  // Applies a triangle filter to all source pixels under the target pixel. The filter is cut off at the edges
  // and normalised. If the picture shrinks, the triangle is twice as wide as the ratio. The result is that of
  // Pillow's BILINEAR and torchvision's default, within one of 255 levels: Pillow rounds between its two
  // passes, this code does not.
  antialias,
};
Result<ResizeFilter> parse_resize(std::string_view name);

// Resizes pictures, or parts of them, to one size, line by line. It does not keep the aspect. Only one thread
// at a time may use it. It reuses its memory: if a picture has the size of the one before, nothing is
// allocated.
class Resizer {
 public:
  Resizer(ResizeFilter filter, uint32_t width, uint32_t height);

  // Starts with a new picture. The pixels of `image` are borrowed until the last line is computed. `part`
  // must be inside the picture, and not empty. `mirrored` exchanges left and right.
  void begin(const Image& image, const PicturePart& part, bool mirrored);
  // Computes line `y` of the result: red, green and blue of each pixel, 0 to 255. `out` has three numbers for
  // each pixel and one more, which becomes undefined. Call it once for each line, from top to bottom.
  void line(uint32_t y, std::span<float> out);

 private:
  // For each target position along one axis, the source positions that contribute to it.
  struct Axis {
    uint32_t source_size = 0;  // the source size for which the members below are computed
    uint32_t taps = 0;         // antialias: how many source positions contribute to each target position
    // bilinear: distance from the first source position to the second; 0 if the source has one pixel
    uint32_t step = 0;
    std::vector<uint32_t> first_source;  // first source position of each target position
    // Bilinear: the second position's weight; antialias: `taps` weights for each target position.
    std::vector<float> weights;
  };
  void compute_taps(Axis& axis, uint32_t source_size, uint32_t target_size, uint32_t unit,
                    bool mirrored) const;

  const ResizeFilter filter_;
  const uint32_t width_;
  const uint32_t height_;
  const uint8_t* pixels_ = nullptr;  // first pixel of the part that is resized
  size_t stride_ = 0;                // bytes from one line of the whole picture to the next
  uint32_t part_width_ = 0;
  // For pictures as they are stored ([0]) and for mirrored ones ([1]).
  std::array<Axis, 2> columns_by_mirror_;
  const Axis* columns_ = nullptr;
  Axis rows_;
  std::vector<float> line_;  // the source lines for one result line, combined into one line
};

// Writes a picture line by line into its slot. Only one thread at a time may use it. It reuses its memory.
class LineWriter {
 public:
  explicit LineWriter(const PictureTensor& tensor);

  // Writes line `y` of a picture. `line` has red, green and blue of each pixel, 0 to 255; the function may
  // change it. `slot` has tensor.bytes() bytes and is aligned to its element type.
  void write(uint32_t y, std::span<float> line, std::span<std::byte> slot);

 private:
  void normalise(std::span<const float> from, float* to) const;

  const PictureTensor tensor_;
  std::array<float, 12> scale_{};  // factors of 12 successive numbers: the three channels of four pixels
  std::array<float, 12> shift_{};
  std::vector<float> planar_;  // the current line, one channel after another
};

// Converts to the nearest binary16, ties to even. Numbers that round above 65504 become infinity.
uint16_t half_from_float(float value);

}  // namespace penstock
