#include "results/record/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

std::vector<double> whole_numbers(size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Statistics, MedianOfOddEvenEmptyAndUnsorted) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median(std::vector<double>{}), 0);
  EXPECT_EQ(median(std::vector<double>{std::nan(""), 5, INFINITY}), 5);
}

TEST(Statistics, PercentileInterpolates) {
  const auto values = whole_numbers(5);
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 100), 5);
  EXPECT_EQ(percentile(values, 50), 3);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 4.6);
  EXPECT_EQ(percentile(std::vector<double>{}, 50), 0);
}

// The standard table of 95% intervals of the median from order statistics.
TEST(Statistics, MedianIntervalAgreesWithTheTable) {
  EXPECT_FALSE(median_interval(whole_numbers(5)).has_value());
  const struct {
    size_t n;
    double low, high;
  } table[] = {{6, 1, 6},   {8, 1, 8},   {9, 2, 8},   {10, 2, 9},
               {11, 2, 10}, {12, 3, 10}, {20, 6, 15}, {100, 40, 61}};
  for (const auto& row : table) {
    const auto interval = median_interval(whole_numbers(row.n));
    ASSERT_TRUE(interval.has_value()) << row.n;
    EXPECT_EQ(interval->low, row.low) << row.n;
    EXPECT_EQ(interval->high, row.high) << row.n;
  }
  const auto many = median_interval(whole_numbers(20000));
  ASSERT_TRUE(many.has_value());
  EXPECT_NEAR(many->low, 10000.5 - 1.96 * std::sqrt(20000) / 2, 3);
}

TEST(Statistics, IntervalHasItsStatedCoverage) {
  const RandomStream random(3, "coverage");
  int covered = 0;
  constexpr int kTrials = 2000;
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values;
    for (uint64_t i = 0; i < 15; ++i) values.push_back(random.normal(trial * 15 + i));
    const auto interval = median_interval(values);
    ASSERT_TRUE(interval.has_value());
    if (interval->low <= 0 && 0 <= interval->high) ++covered;
  }
  EXPECT_GE(covered, kTrials * 95 / 100);
}

TEST(Statistics, SpreadIsRangeOverMedian) {
  EXPECT_DOUBLE_EQ(spread(std::vector<double>{90, 100, 120}), 0.3);
  EXPECT_EQ(spread(std::vector<double>{5}), 0);
  EXPECT_EQ(spread(std::vector<double>{-1, 0, 1}), 0);
}

TEST(Statistics, PairedRatioCancelsDriftThatBothArmsShare) {
  std::vector<double> base, tool;
  for (int i = 0; i < 11; ++i) {
    base.push_back(100 * std::pow(1.3, i));
    tool.push_back(0.98 * base.back());
  }
  const auto ratio = paired_ratio(tool, base);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_NEAR(ratio->median, 0.98, 1e-12);
  ASSERT_TRUE(ratio->interval.has_value());
  EXPECT_NEAR(ratio->interval->low, 0.98, 1e-12);
  EXPECT_EQ(ratio->pairs, 11U);
}

TEST(Statistics, PairedRatioLeavesOutSamplesWithoutAPartner) {
  const auto ratio = paired_ratio(std::vector<double>{2, 4, 6}, std::vector<double>{1, 0});
  ASSERT_TRUE(ratio.has_value());
  EXPECT_EQ(ratio->pairs, 1U);
  EXPECT_EQ(ratio->median, 2);
  EXPECT_FALSE(ratio->interval.has_value());
  EXPECT_FALSE(paired_ratio(std::vector<double>{1}, std::vector<double>{0}).has_value());
}

}  // namespace
}  // namespace penstock
