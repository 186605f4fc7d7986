// Draws sizes and classes of samples from distributions. The size and class of a sample can be drawn without
// drawing those of earlier samples.
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

// Draws the quantile that sample `index` has in a distribution: a number between 0 and 1. In each group of
// 256 consecutive samples, each sample gets a different 256th of the distribution. So even a data set of a
// few hundred samples has the distribution's percentiles.
double drawn_quantile(const RandomStream& samples, uint64_t index);

// A normal distribution of sizes in bytes. A benchmark gives the mean and the standard deviation.
struct NormalSizes {
  double mean = 0;
  double deviation = 0;
};
// Draws a size from the normal distribution. It is at least one sixteenth of the mean, because a wide normal
// distribution also has negative sizes.
uint64_t normal_bytes(const NormalSizes& sizes, const RandomStream& samples, uint64_t index);

// mean_option() and kDeviationOption are rows for a recipe's option table. `fallback` is the recipe's
// default, as text.
constexpr OptionSpec mean_option(std::string_view fallback) {
  return {.name = "mean",
          .role = OptionRole::work,
          .type = OptionType::size,
          .value = "SIZE",
          .fallback = fallback,
          .help = "mean sample size, 1 byte to 8 GB",
          .at_least = 1};
}
inline constexpr OptionSpec kDeviationOption{.name = "deviation",
                                             .role = OptionRole::work,
                                             .type = OptionType::size,
                                             .value = "SIZE",
                                             .help =
                                                 "standard deviation of the sizes, at most the mean "
                                                 "(default: in proportion to the mean, as in the real data)"};
// Reads the two options above. Fails with `invalid_argument` if a value is out of range. If the deviation is
// not given, it is the same fraction of the mean as in `real`.
Result<NormalSizes> normal_sizes(const Options& options, const NormalSizes& real);

struct ClassCount {
  std::string_view name;
  uint64_t samples = 0;  // number of samples in the real data set
};

// Assigns a class to each sample, and a number within the class. The seed shuffles the order in which the
// classes occur. Among the first N samples (N: the size of the real data set), each class has as many samples
// as in the real data set. After that the same order of classes repeats, with higher numbers within the
// classes. `classes` must outlive this object.
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
