#include "datagen/recipe/photo_maker.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace penstock {
namespace {

constexpr double kHeaderBytes = 625;
constexpr double kJpegSizeTolerance = 0.04;

// A point of a curve that was measured: how the size of a typical picture falls when the quantizer percentage
// grows. log_bytes is relative to the size at 2%. For another picture, the curve of log(bytes) is higher or
// lower, but has nearly the same shape. So one trial encoding of the picture is enough to find its curve.
struct CurvePoint {
  double percent;
  double log_bytes;
};
constexpr CurvePoint kSizeCurve[] = {{2, 0.0},     {3, -0.105},  {4, -0.167},   {6, -0.280},  {8, -0.388},
                                     {12, -0.585}, {16, -0.750}, {24, -0.955},  {32, -1.120}, {48, -1.385},
                                     {64, -1.565}, {96, -1.820}, {128, -2.005}, {192, -2.270}};

constexpr int kFinestPercent = 2;
constexpr int kCoarsestPercent = 192;
constexpr int kTrialPercent = 8;

double curve_at(double percent) {
  size_t i = 1;
  while (i + 1 < std::size(kSizeCurve) && kSizeCurve[i].percent < percent) ++i;
  const CurvePoint& a = kSizeCurve[i - 1];
  const CurvePoint& b = kSizeCurve[i];
  return a.log_bytes + (b.log_bytes - a.log_bytes) * (percent - a.percent) / (b.percent - a.percent);
}

// The quantizer percentage at which a picture will have about `target_bytes` bytes. `actual_bytes` is its
// size at the percentage `percent`.
int quantizer_for(double target_bytes, int percent, double actual_bytes) {
  const double wanted_point = curve_at(percent) + portable_log(target_bytes / actual_bytes);
  int best_percent = kFinestPercent;
  double best_distance = HUGE_VAL;
  for (int candidate = kFinestPercent; candidate <= kCoarsestPercent; ++candidate) {
    const double distance = std::abs(curve_at(candidate) - wanted_point);
    if (distance >= best_distance) break;  // sizes only fall, so later candidates are not closer
    best_percent = candidate;
    best_distance = distance;
  }
  return best_percent;
}

}  // namespace

Result<std::span<const FieldBytes>> PhotoMaker::make(uint64_t index) {
  PENSTOCK_ASSIGN(jpeg_, paint(index));
  field_ = {.pieces = {&jpeg_, 1}, .bytes = jpeg_.size()};
  return std::span<const FieldBytes>(&field_, 1);
}

Result<std::span<const std::byte>> PhotoMaker::paint(uint64_t index) {
  const RandomStream sample = samples_.substream(index);
  const double target_bytes = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  PhotoShape shape = draw_photo_shape(draws, sizes_, target_bytes);
  painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
  PENSTOCK_ASSIGN(double estimated_bytes, estimate_bytes());
  // Even at the finest useful quality, a smooth picture may have fewer bytes than wanted. Such a picture gets
  // more pixels.
  const double finest_bytes =
      estimated_bytes * portable_exp(curve_at(kFinestPercent + 1) - curve_at(kTrialPercent));
  if (target_bytes > finest_bytes) {
    shape = resized(shape, shape.pixels() * 1.15 * target_bytes / finest_bytes);
    painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
    PENSTOCK_ASSIGN(estimated_bytes, estimate_bytes());
  }
  return encode(target_bytes, estimated_bytes);
}

// Estimates how many bytes the picture has at kTrialPercent. For this, encodes a quarter of it: every fourth
// row of coding units.
Result<double> PhotoMaker::estimate_bytes() {
  constexpr size_t kRowStep = 4;
  const size_t unit_rows = picture_.padded_height() / 16;
  const size_t inspected_rows = (unit_rows + kRowStep - 1) / kRowStep;
  excerpt_.reshape(picture_.width, uint32_t(inspected_rows * 16));
  for (size_t i = 0; i < inspected_rows; ++i) {
    const size_t unit_row = std::min(i * kRowStep + kRowStep / 2, unit_rows - 1);
    for (size_t plane = 0; plane < 3; ++plane) {
      const size_t bytes = picture_.stride() * (plane == 0 ? 16 : 4);
      std::memcpy(excerpt_.planes[plane].data() + i * bytes, picture_.planes[plane].data() + unit_row * bytes,
                  bytes);
    }
  }
  PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(excerpt_, kTrialPercent));
  return kHeaderBytes + (double(jpeg.size()) - kHeaderBytes) * double(unit_rows) / double(inspected_rows);
}

Result<std::span<const std::byte>> PhotoMaker::encode(double target_bytes, double estimated_bytes) {
  const int percent =
      quantizer_for(target_bytes - kHeaderBytes, kTrialPercent, estimated_bytes - kHeaderBytes);
  PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(picture_, percent));
  const double actual_bytes = double(jpeg.size());
  if (std::abs(actual_bytes / target_bytes - 1.0) <= kJpegSizeTolerance) return jpeg;
  const int better_percent = quantizer_for(target_bytes - kHeaderBytes, percent, actual_bytes - kHeaderBytes);
  if (better_percent == percent) return jpeg;
  return encoder_.encode(picture_, better_percent);
}

// ---- PNG ------------------------------------------------------------------------------------------------

namespace {

constexpr double kMedianBytesPerPixel = 1.7;  // of a typical picture as a PNG, measured
constexpr double kPngSizeTolerance = 0.04;
constexpr int kMostTries = 4;
constexpr uint32_t kExcerptBands = 8;
constexpr uint32_t kRowsPerBand = 8;

}  // namespace

void to_rgb(const YccImage& picture, Image& out) {
  out.width = picture.width;
  out.height = picture.height;
  out.pixels.resize(size_t{out.width} * out.height * 3);
  uint8_t* out_value = out.pixels.data();
  for (size_t y = 0; y < out.height; ++y) {
    const uint8_t* luma = picture.planes[0].data() + y * picture.stride();
    const uint8_t* blue = picture.planes[1].data() + y / 2 * (picture.stride() / 2);
    const uint8_t* red = picture.planes[2].data() + y / 2 * (picture.stride() / 2);
    for (size_t x = 0; x < out.width; ++x)
      for (const uint8_t value : jfif_rgb(luma[x], blue[x / 2], red[x / 2])) *out_value++ = value;
  }
}

// Estimates how many bytes per pixel the current picture has as a PNG. For this, encodes some of its rows.
Result<double> PngPhotoMaker::estimate_density() {
  const uint32_t rows = std::min(pixels_.height, kExcerptBands * kRowsPerBand);
  const size_t stride = size_t{pixels_.width} * 3;
  excerpt_.width = pixels_.width;
  excerpt_.height = rows;
  excerpt_.pixels.clear();
  for (uint32_t row = 0; row < rows; row += kRowsPerBand) {
    const uint32_t first_row = (pixels_.height - rows) / kExcerptBands * (row / kRowsPerBand) + row;
    const auto begin = pixels_.pixels.begin() + ptrdiff_t(first_row * stride);
    const uint32_t count = std::min(kRowsPerBand, rows - row);
    excerpt_.pixels.insert(excerpt_.pixels.end(), begin, begin + ptrdiff_t(count * stride));
  }
  PENSTOCK_ASSIGN(const std::span<const std::byte> png, encode_png(excerpt_, encoded_));
  return double(png.size()) / (double(rows) * pixels_.width);
}

Result<std::span<const FieldBytes>> PngPhotoMaker::make(uint64_t index) {
  const RandomStream sample = samples_.substream(index);
  const double target_bytes = photo_bytes(sizes_, samples_, index);
  Draws draws(sample.substream(1));
  PhotoShape shape =
      resized(draw_photo_shape(draws, sizes_, target_bytes), target_bytes / kMedianBytesPerPixel);
  const auto paint = [&] {
    painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
    to_rgb(picture_, pixels_);
  };
  paint();
  PENSTOCK_ASSIGN(const double expected_density, estimate_density());
  shape = resized(shape, target_bytes / expected_density);
  for (int tries = 1;; ++tries) {
    paint();
    PENSTOCK_ASSIGN(png_, encode_png(pixels_, encoded_));
    const double size_ratio = target_bytes / double(png_.size());
    if (std::abs(size_ratio - 1.0) <= kPngSizeTolerance || tries == kMostTries) break;
    shape = resized(shape, shape.pixels() * size_ratio);
  }
  field_ = {.pieces = {&png_, 1}, .bytes = png_.size()};
  return std::span<const FieldBytes>(&field_, 1);
}

}  // namespace penstock
