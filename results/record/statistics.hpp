// Statistics of raw samples that assume no distribution: medians, percentiles, and intervals from order
// statistics. Samples that are not finite are left out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace penstock {

// The finite samples, in their order. sorted_samples() sorts them.
std::vector<double> finite_samples(std::span<const double> samples);
std::vector<double> sorted_samples(std::span<const double> samples);

// The middle one of the sorted samples, or the mean of the two middle ones if their number is even; 0 when
// empty.
double median(std::span<const double> samples);

// A percentile by linear interpolation between order statistics (type 7 of Hyndman and Fan, Sample Quantiles
// in Statistical Packages, 1996). `percent` is in [0, 100]; 0 when empty.
double percentile(std::span<const double> samples, double percent);

struct Interval {
  double low = 0;
  double high = 0;
};

// A distribution-free interval that covers the median with at least `confidence`: the narrowest symmetric
// pair of order statistics, from the binomial distribution (David and Nagaraja, Order Statistics, 7.1).
// Absent if even the range of all samples is not enough: below 6 samples at 0.95.
std::optional<Interval> median_interval(std::span<const double> samples, double confidence = 0.95);

// (max - min) / median: how much repeats differ. 0 for fewer than two samples or a median of 0.
double spread(std::span<const double> samples);

// The median ratio of repeats that were measured alternately, and its interval.
struct PairedRatio {
  double median = 0;
  std::optional<Interval> interval;  // 95% confidence interval; absent below 6 pairs
  size_t pairs = 0;
};

// Pairs sample i of `numerators` with sample i of `denominators`. A sample without a partner, or with a
// partner of 0, is left out. Absent if no pair is left.
std::optional<PairedRatio> paired_ratio(std::span<const double> numerators,
                                        std::span<const double> denominators);

}  // namespace penstock
