#include "io_backends/core/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

double exact_percentile(std::vector<uint64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const auto rank = size_t(std::max(1.0, std::ceil(percent / 100 * double(values.size()))));
  return double(values[rank - 1]);
}

TEST(Histogram, BucketsCoverAllValuesWithoutGapOrOverlap) {
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    const uint64_t low = Histogram::bucket_low(i);
    EXPECT_EQ(Histogram::bucket(low), i);
    EXPECT_EQ(Histogram::bucket(low + (Histogram::bucket_width(i) - 1)), i);
    if (i + 1 < Histogram::kBuckets) {
      EXPECT_EQ(low + Histogram::bucket_width(i), Histogram::bucket_low(i + 1));
    }
  }
  EXPECT_EQ(Histogram::bucket(UINT64_MAX), Histogram::kBuckets - 1);
}

TEST(Histogram, PercentilesAreWithinABucketOfTheExactOnes) {
  const RandomStream random(7, "latencies");
  std::vector<uint64_t> values;
  Histogram histogram;
  for (uint64_t i = 0; i < 50000; ++i) {
    values.push_back(uint64_t(random.log_normal(i, 7e5, 1.1)));
    histogram.add(values.back());
  }
  for (const double percent : {0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const double wanted = exact_percentile(values, percent);
    EXPECT_NEAR(histogram.percentile(percent), wanted, wanted / 64) << percent;
  }
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.min(), *std::min_element(values.begin(), values.end()));
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 100; ++value) histogram.add(value);
  EXPECT_EQ(histogram.percentile(50), 50);
  EXPECT_EQ(histogram.percentile(99), 99);
  EXPECT_EQ(histogram.percentile(0), 1);
}

TEST(Histogram, MergingIsTheSameAsAddingAllToOne) {
  const RandomStream random(11, "merge");
  Histogram all_values;
  Histogram parts[3];
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t value = random.bits(i) >> (i % 60);
    all_values.add(value);
    parts[i % 3].add(value);
  }
  Histogram merged;
  for (const Histogram& part : parts) merged.merge(part);
  EXPECT_TRUE(std::equal(all_values.counts().begin(), all_values.counts().end(), merged.counts().begin()));
  EXPECT_EQ(all_values.count(), merged.count());
  EXPECT_EQ(all_values.min(), merged.min());
  EXPECT_EQ(all_values.max(), merged.max());
  EXPECT_EQ(all_values.percentile(95), merged.percentile(95));
}

TEST(Histogram, EmptyIsZeroAndOneValueIsItself) {
  Histogram histogram;
  EXPECT_EQ(histogram.percentile(50), 0);
  EXPECT_EQ(histogram.min(), 0U);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.add(1234567);
  EXPECT_EQ(histogram.percentile(1), 1234567);
  EXPECT_EQ(histogram.percentile(99.9), 1234567);
  histogram.merge(Histogram{});
  EXPECT_EQ(histogram.min(), 1234567U);
}

}  // namespace
}  // namespace penstock
