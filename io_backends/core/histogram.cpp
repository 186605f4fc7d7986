#include "io_backends/core/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace penstock {

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

double Histogram::percentile(double percent) const {
  if (total_ == 0) return 0;
  const double fraction = std::clamp(percent, 0.0, 100.0) / 100.0;
  const auto wanted_count = uint64_t(std::max(1.0, std::ceil(fraction * double(total_))));
  uint64_t seen_count = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen_count += counts_[i];
    if (seen_count < wanted_count) continue;
    const double middle = double(bucket_low(i)) + double(bucket_width(i) - 1) / 2.0;
    return std::clamp(middle, double(min_), double(max_));
  }
  return double(max_);
}

}  // namespace penstock
