// How many bytes and pixels the photographs of a data set have.
#pragma once

#include <cstdint>

#include "datagen/recipe/draws.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Log-normal. docs/recipes.md says where ImageNet's figures come from.
struct PhotoSizes {
  PhotoSizes(double median_bytes, double sigma_of_log);

  double median;  // bytes
  double sigma;   // standard deviation of the logarithm
  double pixels;  // of a usual picture
};

// Rows for a recipe's option table; `fallback` in the recipe's own words.
constexpr OptionSpec photo_median_option(std::string_view fallback) {
  return {.name = "median",
          .role = OptionRole::work,
          .type = OptionType::size,
          .value = "SIZE",
          .fallback = fallback,
          .help = "median size of a picture, 4 kB to 64 MB",
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
// What the two were given as; invalid_argument out of their ranges.
Result<PhotoSizes> photo_sizes(const Options& options);

// Bytes that sample `index` of the data set that `samples` stands for is to have; drawn_share() (sizes.hpp)
// places it.
double photo_bytes(const PhotoSizes& sizes, const RandomStream& samples, std::uint64_t index);

struct PhotoShape {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  double pixels() const { return static_cast<double>(width) * height; }
};

// Of a picture of `bytes`: proportions as most of ImageNet has them, in the usual number of pixels for the
// data set's median unless that would take too many or too few bytes for a pixel: then larger or smaller.
PhotoShape draw_photo_shape(Draws& draws, const PhotoSizes& sizes, double bytes);
// The same proportions with that many pixels.
PhotoShape resized(PhotoShape shape, double pixels);

}  // namespace penstock
