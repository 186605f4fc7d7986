// Draws the sizes in bytes and in pixels of the photographs of a data set.
#pragma once

#include <cstdint>

#include "datagen/recipe/draws.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// A log-normal distribution of file sizes. docs/reference/recipes.md gives the source of ImageNet's figures.
struct PhotoSizes {
  PhotoSizes(double median, double sigma);

  double median_bytes;
  double sigma_of_log;    // standard deviation of the logarithm
  double typical_pixels;  // number of pixels of a picture of the median size
};

// These two functions return rows for a recipe's option table. `fallback` is the recipe's default, as text.
constexpr OptionSpec photo_median_option(std::string_view fallback) {
  return {.name = "median",
          .role = OptionRole::work,
          .type = OptionType::size,
          .value = "SIZE",
          .fallback = fallback,
          .help = "median image size, 4 kB to 64 MB",
          .at_least = 4000};
}
constexpr OptionSpec photo_sigma_option(std::string_view fallback) {
  return {.name = "sigma",
          .role = OptionRole::work,
          .type = OptionType::real,
          .value = "X",
          .fallback = fallback,
          .help = "spread of the sizes: standard deviation of their logarithm, 0 to 1.5"};
}
// Reads the two options above. Fails with `invalid_argument` if a value is out of range.
Result<PhotoSizes> photo_sizes(const Options& options);

// The size in bytes that sample `index` should have. `samples` is the random stream of the data set. The
// sizes of even a few samples cover the whole distribution (drawn_quantile() in sizes.hpp).
double photo_bytes(const PhotoSizes& sizes, const RandomStream& samples, uint64_t index);

struct PhotoShape {
  uint32_t width = 0;
  uint32_t height = 0;
  double pixels() const { return double(width) * height; }
};

// Draws the width and height of a picture that will have `bytes` bytes, with proportions as in ImageNet. Most
// pictures get the number of pixels that is typical for the data set. If this would give too many or too few
// bytes per pixel, the picture gets more or fewer pixels.
PhotoShape draw_photo_shape(Draws& draws, const PhotoSizes& sizes, double bytes);
// A shape with the same proportions and about `pixels` pixels.
PhotoShape resized(PhotoShape shape, double pixels);

}  // namespace penstock
