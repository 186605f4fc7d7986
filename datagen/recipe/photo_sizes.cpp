#include "datagen/recipe/photo_sizes.hpp"

#include <algorithm>
#include <cmath>

#include "datagen/recipe/sizes.hpp"

namespace penstock {
namespace {

// 112 KB: the median in the paper of Chien et al. 2018, for its micro-benchmark
constexpr double kUsualMedianBytes = 112000;
// number of pixels of a typical ImageNet picture, which has about kUsualMedianBytes bytes
constexpr double kUsualPixels = 500 * 375;
constexpr uint64_t kMaxMedianBytes = 64'000'000;
constexpr double kMinPhotoBytes = 1500;  // of which the headers take 623
constexpr double kMaxPhotoBytes = 256e6;

// Draws the proportions of a picture, as width and height. The longer side is 500 pixels (Flickr's "medium").
// Most pictures are 4:3, many are 3:2. 22% of the pictures are upright.
PhotoShape draw_proportions(Draws& draws) {
  const int percentile = draws.between(0, 99);
  uint32_t shorter_side = 375;
  if (percentile >= 58 && percentile < 84) shorter_side = 333;
  if (percentile >= 84 && percentile < 90) shorter_side = 500;
  if (percentile >= 90) shorter_side = uint32_t(draws.between(280, 490));
  return draws.percent(22) ? PhotoShape{shorter_side, 500} : PhotoShape{500, shorter_side};
}

uint32_t scaled_side(uint32_t side, double factor) {
  return uint32_t(std::clamp(std::floor(side * factor + 0.5), 16.0, 65500.0));
}

}  // namespace

// typical_pixels falls more slowly than the median size. So a data set with smaller files has pictures with
// fewer pixels, and also fewer bytes per pixel.
PhotoSizes::PhotoSizes(double median, double sigma)
    : median_bytes(median),
      sigma_of_log(sigma),
      typical_pixels(kUsualPixels * portable_exp(0.6 * portable_log(median / kUsualMedianBytes))) {}

Result<PhotoSizes> photo_sizes(const Options& options) {
  const uint64_t median = options.size("median");
  const double sigma = options.real("sigma");
  if (median > kMaxMedianBytes)
    return make_error(Errc::invalid_argument, "median={}: from 4 kB to 64 MB", median);
  if (!(sigma >= 0.0 && sigma <= 1.5))
    return make_error(Errc::invalid_argument, "sigma={}: from 0 to 1.5", sigma);
  return PhotoSizes(double(median), sigma);
}

double photo_bytes(const PhotoSizes& sizes, const RandomStream& samples, uint64_t index) {
  return std::clamp(
      sizes.median_bytes * portable_exp(sizes.sigma_of_log * inverse_normal(drawn_quantile(samples, index))),
      kMinPhotoBytes, kMaxPhotoBytes);
}

PhotoShape resized(PhotoShape shape, double pixels) {
  const double factor = std::sqrt(pixels / shape.pixels());
  return {scaled_side(shape.width, factor), scaled_side(shape.height, factor)};
}

PhotoShape draw_photo_shape(Draws& draws, const PhotoSizes& sizes, double bytes) {
  PhotoShape shape = draw_proportions(draws);
  if (sizes.median_bytes < 0.99 * kUsualMedianBytes || sizes.median_bytes > 1.01 * kUsualMedianBytes)
    shape = resized(shape, shape.pixels() * sizes.typical_pixels / kUsualPixels);
  const double usual_density = std::clamp(sizes.median_bytes / sizes.typical_pixels, 0.12, 0.60);
  const double density = bytes / shape.pixels();
  const double max_density = usual_density * (1.10 + 0.20 * draws.uniform());
  const double min_density = usual_density * (0.55 + 0.25 * draws.uniform());
  if (density > max_density) return resized(shape, bytes / max_density);
  if (density < min_density) return resized(shape, bytes / min_density);
  return shape;
}

}  // namespace penstock
