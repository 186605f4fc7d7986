// Statistics of raw samples: medians, percentiles and confidence intervals. They do not assume any
// distribution of the samples. Samples that are not finite are left out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace penstock {

// Return the samples that are finite numbers: finite_samples() in their original order, sorted_samples()
// sorted.
std::vector<double> finite_samples(std::span<const double> samples);
std::vector<double> sorted_samples(std::span<const double> samples);

// The middle one of the sorted samples. If their number is even, the mean of the two samples in the middle. 0
// if there are no samples.
double median(std::span<const double> samples);

// The value that `percent` of the samples do not exceed; `percent` is in [0, 100]. 0 if there are no samples.
// Between two neighbouring sorted samples it interpolates linearly (type 7 of Hyndman and Fan, Sample
// Quantiles in Statistical Packages, 1996).
double percentile(std::span<const double> samples, double percent);

struct Interval {
  double low = 0;
  double high = 0;
};

// A confidence interval of the median: it contains the median with at least the probability `confidence`,
// whatever the distribution. Its bounds are two of the sorted samples, equally far from both ends. They are
// as near to each other as the binomial distribution allows (David and Nagaraja, Order Statistics, 7.1).
// Absent if there are too few samples: with `confidence` 0.95 at least 6 are needed.
std::optional<Interval> median_interval(std::span<const double> samples, double confidence = 0.95);

// (max - min) / median: how much repeats differ. 0 for fewer than two samples or a median of 0.
double spread(std::span<const double> samples);

// The median of the ratios of two quantities that were measured in turn, and its interval.
struct PairedRatio {
  double median = 0;
  std::optional<Interval> interval;  // 95% confidence interval of the median; absent below 6 pairs
  size_t pairs = 0;
};

// Divides sample i of `numerators` by sample i of `denominators`, for all i. Leaves out a sample without a
// partner and a division by 0. Absent if no pair is left.
std::optional<PairedRatio> paired_ratio(std::span<const double> numerators,
                                        std::span<const double> denominators);

}  // namespace penstock
