// Drawing samples from distributions of sizes and of classes, any sample without those before it.
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

// The share of a distribution that lies below sample `index`'s draw, in (0, 1). By strata: of each 256
// samples in a row, one falls into each 256th of the distribution, so that a data set of a few hundred
// samples already has its percentiles.
double drawn_share(const RandomStream& samples, std::uint64_t index);

// Bytes of samples that a benchmark describes by mean and standard deviation.
struct NormalSizes {
  double mean = 0;
  double deviation = 0;
};
// Normal, and never below a sixteenth of the mean, where normal sizes of a wide spread go below zero.
std::uint64_t normal_bytes(const NormalSizes& sizes, const RandomStream& samples, std::uint64_t index);

// Rows for a recipe's option table; `fallback` in the recipe's own words.
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
// The values of the two options; invalid_argument out of their ranges. Without the option the deviation keeps
// its proportion to the mean.
Result<NormalSizes> normal_sizes(const Options& options, const NormalSizes& real);

struct ClassCount {
  std::string_view name;
  std::uint64_t samples = 0;  // of the real data set
};

// Which class sample n is of, and the how many-th of it: the real numbers of each class, shuffled by the
// seed. Samples beyond the real data set begin it again, with higher numbers. `classes` must outlive it.
class ClassMix {
 public:
  ClassMix(std::span<const ClassCount> classes, std::uint64_t seed);

  struct Place {
    std::uint32_t label = 0;
    std::uint64_t number = 0;  // in its class, from 0
  };
  Place at(std::uint64_t index) const;
  std::string_view name(std::uint32_t label) const { return classes_[label].name; }
  std::vector<std::string> names() const;

 private:
  const std::span<const ClassCount> classes_;
  std::vector<std::uint64_t> ends_;  // of the classes, one behind another
  Permutation order_;
};

}  // namespace penstock
