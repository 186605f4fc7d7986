#include "datagen/recipe/sizes.hpp"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr uint64_t kStrata = 256;
constexpr double kMaxMeanBytes = 8e9;

uint64_t total_samples(std::span<const ClassCount> classes) {
  uint64_t sum = 0;
  for (const ClassCount& row : classes) sum += row.samples;
  return sum;
}

}  // namespace

double drawn_quantile(const RandomStream& samples, uint64_t index) {
  const Permutation order(kStrata, samples.bits(index / kStrata));
  // The distribution has kStrata equal strata. This is a random position inside the sample's stratum: from 0
  // to 1, but never at an end.
  const double within_stratum = samples.substream(index).uniform(0) * 0.998 + 0.001;
  return (double(order.at(index % kStrata)) + within_stratum) / kStrata;
}

uint64_t normal_bytes(const NormalSizes& sizes, const RandomStream& samples, uint64_t index) {
  const double drawn_bytes = sizes.mean + sizes.deviation * inverse_normal(drawn_quantile(samples, index));
  return uint64_t(std::max({1.0, sizes.mean / 16, std::floor(drawn_bytes + 0.5)}));
}

Result<NormalSizes> normal_sizes(const Options& options, const NormalSizes& real) {
  NormalSizes sizes;
  sizes.mean = double(options.size("mean"));
  if (sizes.mean > kMaxMeanBytes)
    return make_error(Errc::invalid_argument, "mean={}: must be 1 byte to 8 GB", options.size("mean"));
  sizes.deviation = options.given("deviation") ? double(options.size("deviation"))
                                               : std::floor(sizes.mean * (real.deviation / real.mean) + 0.5);
  if (sizes.deviation > sizes.mean)
    return make_error(Errc::invalid_argument, "deviation={}: at most the mean, {}", options.size("deviation"),
                      sizes.mean);
  return sizes;
}

ClassMix::ClassMix(std::span<const ClassCount> classes, uint64_t seed)
    : classes_(classes), order_(total_samples(classes), RandomStream(seed, "classes").bits(0)) {
  uint64_t end = 0;
  ends_.reserve(classes.size());
  for (const ClassCount& row : classes) ends_.push_back(end += row.samples);
}

ClassMix::ClassPosition ClassMix::at(uint64_t index) const {
  const uint64_t round = index / order_.size();
  const uint64_t position = order_.at(index % order_.size());
  const auto label = size_t(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
  const uint64_t begin = ends_[label] - classes_[label].samples;
  return {uint32_t(label), round * classes_[label].samples + (position - begin)};
}

std::vector<std::string> ClassMix::names() const {
  std::vector<std::string> names;
  names.reserve(classes_.size());
  for (const ClassCount& row : classes_) names.emplace_back(row.name);
  return names;
}

}  // namespace penstock
