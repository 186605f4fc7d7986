// Histograms of latencies that can be merged. Their buckets are log-linear (as in HdrHistogram). For a
// percentile over several threads or ranks, the counts are merged first. Percentiles are never averaged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

// Counts unsigned values (nanoseconds, bytes) of the full 64-bit range. A bucket is at most as wide as 1/64
// (1.6%) of its values; each value below 128 has a bucket of its own. A histogram takes 30 KiB. add() is a
// few instructions. Only one thread may use a histogram: give each thread its own and merge them at the end.
class Histogram {
 public:
  void add(uint64_t value) {
    ++counts_[bucket(value)];
    ++total_;
    sum_ += value;
    if (value > max_) max_ = value;
    if (value < min_) min_ = value;
  }
  void merge(const Histogram& other);

  uint64_t count() const { return total_; }
  uint64_t min() const { return total_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  double mean() const { return total_ == 0 ? 0.0 : double(sum_) / double(total_); }

  // Returns the value that `percent` percent of the counted values do not exceed; 0 if no value was counted.
  // The histogram knows only the bucket of that value. So the result is the middle of the bucket, moved into
  // the range from min() to max() if it is outside.
  double percentile(double percent) const;

  static constexpr size_t kSubBuckets = 64;
  static constexpr size_t kBuckets = (64 - 6 + 1) * kSubBuckets;
  static constexpr size_t bucket(uint64_t value) {
    if (value < kSubBuckets) return size_t(value);
    const unsigned shift = 63U - unsigned(__builtin_clzll(value)) - 6U;
    return (shift + 1) * kSubBuckets + size_t((value >> shift) - kSubBuckets);
  }
  static constexpr uint64_t bucket_low(size_t bucket) {
    if (bucket < kSubBuckets) return bucket;
    const size_t shift = bucket / kSubBuckets - 1;
    return (kSubBuckets + bucket % kSubBuckets) << shift;
  }
  static constexpr uint64_t bucket_width(size_t bucket) {
    return bucket < kSubBuckets ? 1 : uint64_t{1} << (bucket / kSubBuckets - 1);
  }
  std::span<const uint64_t> counts() const { return counts_; }

 private:
  std::array<uint64_t, kBuckets> counts_{};
  uint64_t total_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
  uint64_t min_ = UINT64_MAX;
};

}  // namespace penstock
