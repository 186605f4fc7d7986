#include "datagen/recipe/photo_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "datagen/recipe/sizes.hpp"

namespace penstock {
namespace {

constexpr double kUsualMedian = 112000;     // Chien et al. 2018, micro-benchmark: 112 KB
constexpr double kUsualPixels = 500 * 375;  // of an ImageNet picture with that size
constexpr std::uint64_t kMostMedian = 64'000'000;
constexpr double kLeastBytes = 1500;  // the headers alone take 623
constexpr double kMostBytes = 256e6;

// The longer side is 500 (Flickr's "medium"). Most pictures are four to three, then three to two. 22%
// are turned upright.
PhotoShape draw_proportions(Draws& draws) {
  const int kind = draws.between(0, 99);
  std::uint32_t shorter = 375;
  if (kind >= 58 && kind < 84) shorter = 333;
  if (kind >= 84 && kind < 90) shorter = 500;
  if (kind >= 90) shorter = static_cast<std::uint32_t>(draws.between(280, 490));
  return draws.percent(22) ? PhotoShape{shorter, 500} : PhotoShape{500, shorter};
}

std::uint32_t scaled(std::uint32_t side, double factor) {
  return static_cast<std::uint32_t>(std::clamp(std::floor(side * factor + 0.5), 16.0, 65500.0));
}

}  // namespace

// Data sets with smaller files have smaller pictures, and fewer bytes per pixel.
PhotoSizes::PhotoSizes(double median_bytes, double sigma_of_log)
    : median(median_bytes),
      sigma(sigma_of_log),
      pixels(kUsualPixels * portable_exp(0.6 * portable_log(median_bytes / kUsualMedian))) {}

Result<PhotoSizes> photo_sizes(const Options& options) {
  const std::uint64_t median = options.size("median");
  const double sigma = options.real("sigma");
  if (median > kMostMedian)
    return make_error(Errc::invalid_argument, fmt::format("median={}: from 4 kB to 64 MB", median));
  if (!(sigma >= 0.0 && sigma <= 1.5))
    return make_error(Errc::invalid_argument, fmt::format("sigma={}: from 0 to 1.5", sigma));
  return PhotoSizes(static_cast<double>(median), sigma);
}

double photo_bytes(const PhotoSizes& sizes, const RandomStream& samples, std::uint64_t index) {
  return std::clamp(sizes.median * portable_exp(sizes.sigma * inverse_normal(drawn_quantile(samples, index))),
                    kLeastBytes, kMostBytes);
}

PhotoShape resized(PhotoShape shape, double pixels) {
  const double factor = std::sqrt(pixels / shape.pixels());
  return {scaled(shape.width, factor), scaled(shape.height, factor)};
}

PhotoShape draw_photo_shape(Draws& draws, const PhotoSizes& sizes, double bytes) {
  PhotoShape shape = draw_proportions(draws);
  if (sizes.median < 0.99 * kUsualMedian || sizes.median > 1.01 * kUsualMedian)
    shape = resized(shape, shape.pixels() * sizes.pixels / kUsualPixels);
  const double usual = std::clamp(sizes.median / sizes.pixels, 0.12, 0.60);
  const double density = bytes / shape.pixels();
  const double most = usual * (1.10 + 0.20 * draws.uniform());
  const double least = usual * (0.55 + 0.25 * draws.uniform());
  if (density > most) return resized(shape, bytes / most);
  if (density < least) return resized(shape, bytes / least);
  return shape;
}

}  // namespace penstock
