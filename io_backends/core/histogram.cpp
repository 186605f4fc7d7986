#include "io_backends/core/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace penstock {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

double Histogram::percentile(double percent) const {
  if (total_ == 0) return 0;
  const double share = std::clamp(percent, 0.0, 100.0) / 100.0;
  const auto wanted =
      static_cast<std::uint64_t>(std::max(1.0, std::ceil(share * static_cast<double>(total_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen < wanted) continue;
    const double middle = static_cast<double>(bucket_low(i)) + static_cast<double>(bucket_width(i) - 1) / 2.0;
    return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
  }
  return static_cast<double>(max_);
}

}  // namespace penstock
