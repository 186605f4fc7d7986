// Draws sizes and classes of samples from distributions. To draw those of a sample, no other sample must be
// drawn before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The quantile at which sample `index` is in a distribution: a number between 0 and 1. It is stratified: in
// each group of 256 consecutive samples, each gets a different 256th of the distribution. So even a data set
// of a few hundred samples has the distribution's percentiles.
double drawn_quantile(const RandomStream& samples, uint64_t index);

// The distribution of sizes in bytes, for which a benchmark gives the mean and the standard deviation.
struct NormalSizes {
  double mean = 0;
  double deviation = 0;
};
// Draws a normally distributed size. It is at least one sixteenth of the mean, because a wide normal
// distribution has negative sizes.
uint64_t normal_bytes(const NormalSizes& sizes, const RandomStream& samples, uint64_t index);

// These two are rows for a recipe's option table. `fallback` is the recipe's default, as text.
constexpr OptionSpec mean_option(std::string_view fallback) {
  return {.name = "mean",
          .role = OptionRole::work,
          .type = OptionType::size,
          .value = "SIZE",
          .fallback = fallback,
          .help = "mean size of a sample, 1 byte to 8 GB",
          .at_least = 1};
}
inline constexpr OptionSpec kDeviationOption{
    .name = "deviation",
    .role = OptionRole::work,
    .type = OptionType::size,
    .value = "SIZE",
    .help = "standard deviation of the sizes, at most the mean (else in the real proportion to it)"};
// Reads the two options above. `invalid_argument` if a value is out of range. If the deviation is not given,
// it has the same proportion to the mean as in `real`.
Result<NormalSizes> normal_sizes(const Options& options, const NormalSizes& real);

struct ClassCount {
  std::string_view name;
  uint64_t samples = 0;  // number of samples in the real data set
};

// Assigns a class to each sample, and a number within the class. The classes have the sizes of the real data
// set, and the seed shuffles their samples. If there are more samples than in the real data set, the same
// order of classes repeats, with higher numbers. `classes` must outlive it.
class ClassMix {
 public:
  ClassMix(std::span<const ClassCount> classes, uint64_t seed);

  struct ClassPosition {
    uint32_t label = 0;
    uint64_t number = 0;  // number of the sample in its class, from 0
  };
  ClassPosition at(uint64_t index) const;
  std::string_view name(uint32_t label) const { return classes_[label].name; }
  std::vector<std::string> names() const;

 private:
  const std::span<const ClassCount> classes_;
  std::vector<uint64_t> ends_;  // for each class: number of samples in it and all classes before it
  Permutation order_;
};

}  // namespace penstock
