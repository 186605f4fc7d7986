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
  nchw,  // channel, height, width: PyTorch's default
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
  std::string text() const;  // such as "f32 NHWC 224x224x3"
};

enum class ResizeFilter : uint8_t {
  // Interpolates between the two nearest pixel centres, without a filter against aliasing. The source
  // position is (target + 1/2) * source_size / target_size - 1/2, but not below 0 or above source_size - 1:
  // at the edges the outermost pixel is repeated.
  // OpenCV calls this INTER_LINEAR; in PyTorch it is bilinear without antialias.
  bilinear,
  // Weights all source pixels under the target pixel by a triangle. If the picture shrinks, the triangle is
  // as wide as two target pixels. At the edges the triangle is cut off, and the weights are scaled so that
  // their sum stays 1.
  // The result is that of Pillow's BILINEAR and torchvision's default, within one of 255 levels: Pillow
  // rounds between its two passes, and this code does not.
  antialias,
};
Result<ResizeFilter> parse_resize(std::string_view name);

// Resizes pictures, or parts of them, to one size, line by line. The ratio of width to height may change.
// Only one thread at a time may use it. It reuses its memory, and allocates only for a part that is larger
// than all before, and for the first mirrored one.
class Resizer {
 public:
  Resizer(ResizeFilter filter, uint32_t width, uint32_t height);

  // Starts with a new picture. The pixels of `image` are borrowed until the last line is computed. `part`
  // must be inside the picture, and not empty. If `mirrored`, left and right are exchanged.
  void begin(const Image& image, const PicturePart& part, bool mirrored);
  // Computes line `y` of the result: red, green and blue of each pixel, from 0 to 255. `out` has space for
  // three numbers for each pixel and one more number, whose value is undefined afterwards. Call it once for
  // each line, from top to bottom.
  void line(uint32_t y, std::span<float> out);

 private:
  // For each target position along one axis, the source positions that contribute to it.
  struct Axis {
    uint32_t source_size = 0;  // the source size for which the members below are computed
    uint32_t taps = 0;         // antialias: how many source positions contribute to each target position
    // Bilinear: distance from the first source position to the second, for columns in floats of `line_`, for
    // rows in lines. 0 if the source has one pixel.
    uint32_t step = 0;
    std::vector<uint32_t> first_source;  // first source position of each target position
    // Bilinear: for each target position, the weight of its second source position. Antialias: for each
    // target position, `taps` weights.
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
  // [0] is for pictures as they are stored, [1] for mirrored pictures.
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

// Converts to the nearest binary16; of two equally near numbers it takes the even one. Numbers that would
// round to more than 65504 become infinity.
uint16_t half_from_float(float value);

}  // namespace penstock
