// Pictures, and parts of them, to the size that a network takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

enum class ResizeFilter : std::uint8_t {
  // Between the two nearest pixel centres, edges repeated, no filter against aliasing:
  //   source = (target + 1/2) * source_size / target_size - 1/2, clamped to [0, source_size - 1]
  // which is what OpenCV calls INTER_LINEAR and PyTorch bilinear without antialias.
  bilinear,
  // A triangle over all pixels that fall on the target's pixel (twice as wide as the ratio where the picture
  // shrinks), cut off
  // at the edges and normalised: Pillow's BILINEAR, which torchvision has by default, within one of 255
  // levels
  // (Pillow rounds between its two passes, this does not).
  antialias,
};
Result<ResizeFilter> parse_resize(std::string_view name);

// A picture, or a part of one, in somebody's memory: lines of 3 * width bytes, `stride` bytes from each to
// the next.
struct PictureView {
  std::uint32_t width = 0;  // at least 1
  std::uint32_t height = 0;
  const std::uint8_t* pixels = nullptr;
  std::size_t stride = 0;
};
PictureView view_of(const Image& image);
PictureView view_of(const Image& image, const PicturePart& part);  // which is in it

// Resizes one picture after the other to one size, the aspect not kept, a line at a time. One thread; memory
// is reused.
class Resizer {
 public:
  virtual ~Resizer() = default;

  // `picture` stays until the last line. With `mirrored` left and right are exchanged.
  virtual void begin(const PictureView& picture, bool mirrored) = 0;
  // Line `y` of the result: red, green, blue by pixel, 0 to 255. `out` holds three numbers a pixel, and one
  // more, which is undefined. Lines from the top to the bottom, each once.
  virtual void line(std::uint32_t y, std::span<float> out) = 0;
};

std::unique_ptr<Resizer> make_resizer(ResizeFilter filter, std::uint32_t width, std::uint32_t height);

}  // namespace penstock
