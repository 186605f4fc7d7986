#include "datagen/recipe/photo_maker.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace penstock {
namespace {

constexpr double kHeaderBytes = 625;
constexpr double kCloseEnough = 0.04;

// log(bytes) of a typical picture of Penstock by the quantizer's percentage, measured (docs/recipes.md). For
// different pictures the curve is shifted much more than its slope changes. So one trial encoding is enough
// to fix the curve of a picture.
struct CurvePoint {
  double percent;
  double log_bytes;
};
constexpr CurvePoint kCurve[] = {{2, 0.0},     {3, -0.105},  {4, -0.167},   {6, -0.280},  {8, -0.388},
                                 {12, -0.585}, {16, -0.750}, {24, -0.955},  {32, -1.120}, {48, -1.385},
                                 {64, -1.565}, {96, -1.820}, {128, -2.005}, {192, -2.270}};

constexpr int kFinest = 2;
constexpr int kCoarsest = 192;
constexpr int kTrialPercent = 8;

double curve_at(double percent) {
  std::size_t i = 1;
  while (i + 1 < std::size(kCurve) && kCurve[i].percent < percent) ++i;
  const CurvePoint& a = kCurve[i - 1];
  const CurvePoint& b = kCurve[i];
  return a.log_bytes + (b.log_bytes - a.log_bytes) * (percent - a.percent) / (b.percent - a.percent);
}

// The quantizer percentage that makes about `target_bytes` bytes, if `percent` made `actual` bytes.
int quantizer_for(double target_bytes, int percent, double actual) {
  const double goal = curve_at(percent) + portable_log(target_bytes / actual);
  int best = kFinest;
  double best_distance = HUGE_VAL;
  for (int candidate = kFinest; candidate <= kCoarsest; ++candidate) {
    const double distance = std::abs(curve_at(candidate) - goal);
    if (distance >= best_distance) break;  // the curve only falls
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace

Result<std::span<const FieldBytes>> PhotoMaker::make(std::uint64_t index) {
  PENSTOCK_ASSIGN(jpeg_, paint(index));
  field_ = {.pieces = {&jpeg_, 1}, .bytes = jpeg_.size()};
  return std::span<const FieldBytes>(&field_, 1);
}

Result<std::span<const std::byte>> PhotoMaker::paint(std::uint64_t index) {
  const RandomStream sample = samples_.substream(index);
  const double target_bytes = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  PhotoShape shape = draw_photo_shape(draws, sizes_, target_bytes);
  painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
  PENSTOCK_ASSIGN(double estimate, estimate_bytes());
  // A smooth picture cannot fill its bytes at any useful quality, so it gets more pixels.
  const double finest = estimate * portable_exp(curve_at(kFinest + 1) - curve_at(kTrialPercent));
  if (target_bytes > finest) {
    shape = resized(shape, shape.pixels() * 1.15 * target_bytes / finest);
    painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
    PENSTOCK_ASSIGN(estimate, estimate_bytes());
  }
  return encode(target_bytes, estimate);
}

// The bytes at kTrialPercent, estimated from a quarter of the picture: every fourth row of coding units.
Result<double> PhotoMaker::estimate_bytes() {
  constexpr std::size_t kEvery = 4;
  const std::size_t units = picture_.padded_height() / 16;
  const std::size_t inspected = (units + kEvery - 1) / kEvery;
  excerpt_.reshape(picture_.width, static_cast<std::uint32_t>(inspected * 16));
  for (std::size_t i = 0; i < inspected; ++i) {
    const std::size_t unit = std::min(i * kEvery + kEvery / 2, units - 1);
    for (std::size_t plane = 0; plane < 3; ++plane) {
      const std::size_t bytes = picture_.stride() * (plane == 0 ? 16 : 4);
      std::memcpy(excerpt_.planes[plane].data() + i * bytes, picture_.planes[plane].data() + unit * bytes,
                  bytes);
    }
  }
  PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(excerpt_, kTrialPercent));
  return kHeaderBytes + (static_cast<double>(jpeg.size()) - kHeaderBytes) * static_cast<double>(units) /
                            static_cast<double>(inspected);
}

Result<std::span<const std::byte>> PhotoMaker::encode(double target_bytes, double estimate) {
  const int percent = quantizer_for(target_bytes - kHeaderBytes, kTrialPercent, estimate - kHeaderBytes);
  PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(picture_, percent));
  const double actual = static_cast<double>(jpeg.size());
  if (std::abs(actual / target_bytes - 1.0) <= kCloseEnough) return jpeg;
  const int better = quantizer_for(target_bytes - kHeaderBytes, percent, actual - kHeaderBytes);
  if (better == percent) return jpeg;
  return encoder_.encode(picture_, better);
}

// ---- PNG ------------------------------------------------------------------------------------------------

namespace {

constexpr double kUsualDensity = 1.7;  // bytes per pixel of the median picture, measured
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

// Bytes per pixel of the current picture, estimated from some of its rows.
Result<double> PngPhotoMaker::estimate_density() {
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
  const double target_bytes = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  PhotoShape shape = resized(draw_photo_shape(draws, sizes_, target_bytes), target_bytes / kUsualDensity);
  const auto paint = [&] {
    painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
    to_rgb(picture_, pixels_);
  };
  paint();
  PENSTOCK_ASSIGN(const double expected, estimate_density());
  shape = resized(shape, target_bytes / expected);
  for (int tries = 1;; ++tries) {
    paint();
    PENSTOCK_ASSIGN(png_, encoder_.encode(pixels_));
    const double ratio = target_bytes / static_cast<double>(png_.size());
    if (std::abs(ratio - 1.0) <= kPngCloseEnough || tries == kMostTries) break;
    shape = resized(shape, shape.pixels() * ratio);
  }
  field_ = {.pieces = {&png_, 1}, .bytes = png_.size()};
  return std::span<const FieldBytes>(&field_, 1);
}

}  // namespace penstock
