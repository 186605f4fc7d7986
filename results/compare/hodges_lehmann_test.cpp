#include "results/compare/hodges_lehmann.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "io_backends/core/random.hpp"
#include "results/compare/significance.hpp"

namespace penstock {
namespace {

using Numbers = std::vector<double>;

Numbers sorted(Numbers values) {
  std::sort(values.begin(), values.end());
  return values;
}

// Hollander and Wolfe, table 3.1: the pseudo-median 0.46 and the interval (0.010, 0.786).
TEST(OneSampleShift, AgreesWithTheTextbook) {
  const auto shift = one_sample_shift(Numbers{0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01});
  ASSERT_TRUE(shift && shift->interval);
  EXPECT_NEAR(shift->estimate, 0.46, 1e-9);
  EXPECT_NEAR(shift->interval->low, 0.01, 1e-9);
  EXPECT_NEAR(shift->interval->high, 0.786, 1e-9);
}

// Hollander and Wolfe, table 4.1: 0.305 and (-0.15, 0.76).
TEST(TwoSampleShift, AgreesWithTheTextbook) {
  const auto shift = two_sample_shift(Numbers{1.15, 0.88, 0.90, 0.74, 1.21},
                                      Numbers{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46});
  ASSERT_TRUE(shift && shift->interval);
  EXPECT_NEAR(shift->estimate, 0.305, 1e-9);
  EXPECT_NEAR(shift->interval->low, -0.15, 1e-9);
  EXPECT_NEAR(shift->interval->high, 0.76, 1e-9);
}

// The code finds the order statistics without computing all n (n + 1) / 2 averages. This test computes and
// sorts them all.
TEST(OneSampleShift, IsTheMedianOfTheWalshAverages) {
  const RandomStream draws(3, "walsh");
  for (size_t n = 1; n <= 40; ++n) {
    Numbers x;
    for (uint64_t i = 0; i < n; ++i)
      x.push_back(std::round(8 * draws.substream(n).normal(i)) / 8);  // with ties
    Numbers averages;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i; j < n; ++j) averages.push_back((x[i] + x[j]) / 2);
    averages = sorted(averages);
    const auto shift = one_sample_shift(x);
    ASSERT_TRUE(shift);
    EXPECT_DOUBLE_EQ(shift->estimate, median(averages)) << n;
    const auto cut = walsh_cut(n, 0.95);
    ASSERT_EQ(shift->interval.has_value(), cut.has_value()) << n;
    EXPECT_EQ(cut.has_value(), n >= 6);
    if (!cut) continue;
    EXPECT_EQ(shift->interval->low, averages[*cut]) << n;
    EXPECT_EQ(shift->interval->high, averages[averages.size() - 1 - *cut]) << n;
  }
}

TEST(TwoSampleShift, IsTheMedianOfAllDifferences) {
  const RandomStream draws(4, "moses");
  for (const auto& [m, n] : {std::pair<size_t, size_t>{1, 1}, {4, 4}, {3, 5}, {10, 7}, {60, 50}}) {
    Numbers x;
    Numbers y;
    for (uint64_t i = 0; i < m; ++i) x.push_back(std::round(8 * draws.substream(m).normal(i)) / 8);
    for (uint64_t i = 0; i < n; ++i) y.push_back(std::round(8 * draws.substream(n + 100).normal(i)) / 8);
    Numbers differences;
    for (const double from : x)
      for (const double to : y) differences.push_back(to - from);
    differences = sorted(differences);
    const auto shift = two_sample_shift(x, y);
    ASSERT_TRUE(shift);
    EXPECT_DOUBLE_EQ(shift->estimate, median(differences));
    const auto cut = moses_cut(m, n, 0.95);
    ASSERT_EQ(shift->interval.has_value(), cut.has_value());
    EXPECT_EQ(cut.has_value(), m * n >= 15);
    if (cut) {
      EXPECT_EQ(shift->interval->low, differences[*cut]);
    }
  }
}

TEST(Shift, OfNoValuesIsAbsent) {
  EXPECT_FALSE(one_sample_shift(Numbers{}));
  EXPECT_FALSE(two_sample_shift(Numbers{}, Numbers{1}));
  EXPECT_FALSE(two_sample_shift(Numbers{1}, Numbers{}));
  EXPECT_EQ(one_sample_shift(Numbers{-1e6, 0, 0, 0, 1e6})->estimate, 0);
}

// 2,000 sets of 20 differences: the 95% interval misses the true shift in 5% of them.
TEST(OneSampleShift, HasItsStatedCoverage) {
  const RandomStream draws(5, "coverage");
  int missed = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    Numbers x;
    for (uint64_t k = 0; k < 20; ++k) x.push_back(0.3 + draws.substream(i).normal(k));
    const auto shift = one_sample_shift(x);
    if (shift->interval->low > 0.3 || shift->interval->high < 0.3) ++missed;
  }
  EXPECT_LE(missed, 130);
  EXPECT_GE(missed, 60);
}

// Suites of 20 pairs with 5% of noise on each side. A change of the size that is called detectable is found
// in about nine of ten suites, when both the test and the least effect decide.
TEST(DetectableShift, IsFoundInNineOfTenSuites) {
  const RandomStream draws(6, "power");
  constexpr double kLevel = 0.01 / 8;
  for (const double least : {0.0, 0.05}) {
    double detectable = 0;
    constexpr uint64_t kTimes = 500;
    const auto noise = [&](uint64_t suite) {
      Numbers x;
      for (uint64_t k = 0; k < 20; ++k) x.push_back(0.05 * std::sqrt(2.0) * draws.substream(suite).normal(k));
      return x;
    };
    for (uint64_t i = 0; i < kTimes; ++i)
      detectable += detectable_shift(*one_sample_shift(noise(i))->interval, kLevel, least) / kTimes;
    int found = 0;
    for (uint64_t i = 0; i < kTimes; ++i) {
      Numbers x = noise(i);
      for (double& value : x) value += detectable;
      if (signed_rank_p(x) <= kLevel && one_sample_shift(x)->estimate >= least) ++found;
    }
    EXPECT_GE(found, 0.84 * kTimes) << least << ": " << detectable;
    EXPECT_LE(found, 0.98 * kTimes) << least << ": " << detectable;
  }
}

}  // namespace
}  // namespace penstock
