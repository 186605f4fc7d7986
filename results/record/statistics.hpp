// Statistics of raw samples that assume no distribution: medians, percentiles, and intervals from order
// statistics. Samples that are not finite are left out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace penstock {

// Returns the finite samples: finite_samples() in their original order, sorted_samples() sorted.
std::vector<double> finite_samples(std::span<const double> samples);
std::vector<double> sorted_samples(std::span<const double> samples);

// The sample in the middle of the sorted samples, or, if their number is even, the mean of the two in the
// middle. 0 if there are none.
double median(std::span<const double> samples);

// The value that `percent` of the samples do not exceed; `percent` is in [0, 100]. 0 if there are no samples.
// It interpolates linearly between order statistics (type 7 of Hyndman and Fan, Sample Quantiles in
// Statistical Packages, 1996).
double percentile(std::span<const double> samples, double percent);

struct Interval {
  double low = 0;
  double high = 0;
};

// An interval that covers the median with at least the probability `confidence`, whatever the distribution:
// the narrowest symmetric pair of order statistics, from the binomial distribution (David and Nagaraja, Order
// Statistics, 7.1). Absent if even the range of all samples is not enough: below 6 samples at 0.95.
std::optional<Interval> median_interval(std::span<const double> samples, double confidence = 0.95);

// (max - min) / median: how much repeats differ. 0 for fewer than two samples or a median of 0.
double spread(std::span<const double> samples);

// The median of the ratios of two things that were measured alternately, and its interval.
struct PairedRatio {
  double median = 0;
  std::optional<Interval> interval;  // 95% confidence interval of the median; absent below 6 pairs
  size_t pairs = 0;
};

// Divides sample i of `numerators` by sample i of `denominators`, for all i. A sample without a partner, or
// with a partner of 0, is left out. Absent if no pair is left.
std::optional<PairedRatio> paired_ratio(std::span<const double> numerators,
                                        std::span<const double> denominators);

}  // namespace penstock
