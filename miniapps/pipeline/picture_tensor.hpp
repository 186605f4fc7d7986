// From a decoded picture to its slot of a batch: the size, the element type, the order of the axes, and how
// pixels become numbers.
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

enum class ResizeFilter : std::uint8_t {
  // Between the two nearest pixel centres, edges repeated, no filter against aliasing:
  //   source = (target + 1/2) * source_size / target_size - 1/2, clamped to [0, source_size - 1]
  // which is what OpenCV calls INTER_LINEAR and PyTorch bilinear without antialias.
  bilinear,
  // A triangle over all pixels that fall on the target's pixel (twice as wide as the ratio where the picture
  // shrinks), cut off at the edges and normalised: Pillow's BILINEAR, torchvision's default, within one of
  // 255 levels. Pillow rounds between its two passes, this does not.
  antialias,
};
Result<ResizeFilter> parse_resize(std::string_view name);

// A picture, or a part of one, in borrowed memory: lines of 3 * width bytes, `stride` bytes from each to the
// next.
struct PictureView {
  std::uint32_t width = 0;  // at least 1
  std::uint32_t height = 0;
  const std::uint8_t* pixels = nullptr;
  std::size_t stride = 0;
};
PictureView view_of(const Image& image);
PictureView view_of(const Image& image, const PicturePart& part);  // which is in it

// Resizes one picture after the other to one size, the aspect not kept, a line at a time. One thread; memory
// is reused: nothing is allocated for a picture of the same size as the one before.
class Resizer {
 public:
  Resizer(ResizeFilter filter, std::uint32_t width, std::uint32_t height);

  // `picture` stays until the last line. With `mirrored` left and right are exchanged.
  void begin(const PictureView& picture, bool mirrored);
  // Line `y` of the result: red, green, blue by pixel, 0 to 255. `out` holds three numbers a pixel, and one
  // more, which is undefined. Lines from the top to the bottom, each once.
  void line(std::uint32_t y, std::span<float> out);

 private:
  // Which source positions each target position is made of.
  struct Axis {
    std::uint32_t source = 0;  // size that it was prepared for
    std::uint32_t taps = 0;    // antialias: source positions of each target position
    std::uint32_t step = 0;    // bilinear: from the first neighbour to the second; 0 for a source of 1
    std::vector<std::uint32_t> first;  // by target position
    std::vector<float> weights;  // bilinear: how far towards the second neighbour; antialias: `taps` each
  };
  void prepare(Axis& axis, std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit,
               bool mirrored) const;

  const ResizeFilter filter_;
  const std::uint32_t width_;
  const std::uint32_t height_;
  PictureView picture_;
  std::array<Axis, 2> columns_of_;  // as they are, and mirrored
  const Axis* columns_ = nullptr;
  Axis rows_;
  std::vector<float> line_;  // what one line of the result is made of, all of its pixels
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
