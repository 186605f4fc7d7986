#include "datagen/recipe/png_photo_maker.hpp"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr double kUsualDensity = 1.7;  // bytes a pixel of the median picture, measured
constexpr double kPngCloseEnough = 0.04;
constexpr int kMostTries = 4;
constexpr std::uint32_t kProbeBands = 8;
constexpr std::uint32_t kProbeRows = 8;

}  // namespace

void to_rgb(const YccImage& picture, Image& out) {
  out.width = picture.width;
  out.height = picture.height;
  out.pixels.resize(std::size_t{out.width} * out.height * 3);
  std::uint8_t* to = out.pixels.data();
  for (std::size_t y = 0; y < out.height; ++y) {
    const std::uint8_t* luma = picture.planes[0].data() + y * picture.stride();
    const std::uint8_t* blue = picture.planes[1].data() + y / 2 * (picture.stride() / 2);
    const std::uint8_t* red = picture.planes[2].data() + y / 2 * (picture.stride() / 2);
    for (std::size_t x = 0; x < out.width; ++x)
      for (const std::uint8_t value : jfif_rgb(luma[x], blue[x / 2], red[x / 2])) *to++ = value;
  }
}

// Bytes a pixel of the picture at hand, from some of its rows.
Result<double> PngPhotoMaker::density() {
  const std::uint32_t rows = std::min(pixels_.height, kProbeBands * kProbeRows);
  const std::size_t stride = std::size_t{pixels_.width} * 3;
  probe_.width = pixels_.width;
  probe_.height = rows;
  probe_.pixels.clear();
  for (std::uint32_t row = 0; row < rows; row += kProbeRows) {
    const std::uint32_t from = (pixels_.height - rows) / kProbeBands * (row / kProbeRows) + row;
    const auto begin = pixels_.pixels.begin() + static_cast<std::ptrdiff_t>(from * stride);
    const std::uint32_t count = std::min(kProbeRows, rows - row);
    probe_.pixels.insert(probe_.pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(count * stride));
  }
  PENSTOCK_ASSIGN(const std::span<const std::byte> png, encoder_.encode(probe_));
  return static_cast<double>(png.size()) / (static_cast<double>(rows) * pixels_.width);
}

Result<std::span<const FieldBytes>> PngPhotoMaker::make(std::uint64_t index) {
  const RandomStream sample = samples_.substream(index);
  const double wanted = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  PhotoShape shape = resized(draw_photo_shape(draws, sizes_, wanted), wanted / kUsualDensity);
  const auto paint = [&] {
    painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
    to_rgb(picture_, pixels_);
  };
  paint();
  PENSTOCK_ASSIGN(const double expected, density());
  shape = resized(shape, wanted / expected);
  for (int tries = 1;; ++tries) {
    paint();
    PENSTOCK_ASSIGN(png_, encoder_.encode(pixels_));
    const double off = wanted / static_cast<double>(png_.size());
    if (std::abs(off - 1.0) <= kPngCloseEnough || tries == kMostTries) break;
    shape = resized(shape, shape.pixels() * off);
  }
  made_ = {.pieces = {&png_, 1}, .bytes = png_.size()};
  return std::span<const FieldBytes>(&made_, 1);
}

}  // namespace penstock
