#include "results/record/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace penstock {

std::vector<double> finite_samples(std::span<const double> samples) {
  std::vector<double> values;
  values.reserve(samples.size());
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(values),
               [](double value) { return std::isfinite(value); });
  return values;
}

std::vector<double> sorted_samples(std::span<const double> samples) {
  std::vector<double> values = finite_samples(samples);
  std::sort(values.begin(), values.end());
  return values;
}

namespace {

double median_of_sorted(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : values[half - 1] + (values[half] - values[half - 1]) / 2;
}

}  // namespace

double median(std::span<const double> samples) {
  return median_of_sorted(sorted_samples(samples));
}

double percentile(std::span<const double> samples, double percent) {
  const std::vector<double> values = sorted_samples(samples);
  if (values.empty()) return 0;
  const double position = std::clamp(percent, 0.0, 100.0) / 100.0 * double(values.size() - 1);
  const auto below = size_t(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - double(below));
}

std::optional<Interval> median_interval(std::span<const double> samples, double confidence) {
  const std::vector<double> values = sorted_samples(samples);
  const size_t n = values.size();
  if (n == 0) return std::nullopt;
  // If k samples are cut off at each end of the sorted samples, the rest is an interval. It misses the median
  // with probability 2 P(B <= k), where B is the number of heads in n throws of a coin. The terms are
  // calculated by lgamma, since for thousands of samples they would otherwise become 0.
  const auto count = double(n);
  double tail = 0;
  std::optional<size_t> cut;
  for (size_t k = 0; 2 * k + 1 < n; ++k) {
    const auto i = double(k);
    tail += std::exp(std::lgamma(count + 1) - std::lgamma(i + 1) - std::lgamma(count - i + 1) -
                     count * std::log(2.0));
    if (1 - 2 * tail < confidence) break;
    cut = k;
  }
  if (!cut) return std::nullopt;
  return Interval{values[*cut], values[n - 1 - *cut]};
}

double spread(std::span<const double> samples) {
  const std::vector<double> values = sorted_samples(samples);
  const double middle = median_of_sorted(values);
  return middle == 0 || values.size() < 2 ? 0 : (values.back() - values.front()) / std::abs(middle);
}

std::optional<PairedRatio> paired_ratio(std::span<const double> numerators,
                                        std::span<const double> denominators) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i)
    if (denominators[i] != 0 && std::isfinite(numerators[i] / denominators[i]))
      ratios.push_back(numerators[i] / denominators[i]);
  if (ratios.empty()) return std::nullopt;
  return PairedRatio{median(ratios), median_interval(ratios), ratios.size()};
}

}  // namespace penstock
