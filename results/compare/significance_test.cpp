#include "results/compare/significance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

using Numbers = std::vector<double>;

// Reference values: scipy.stats.wilcoxon and mannwhitneyu 1.17.1 with method="exact". With ties: the fraction
// of all sign changes, or of all choices of samples, counted one by one.
TEST(SignedRank, AgreesWithScipy) {
  EXPECT_NEAR(signed_rank_p(Numbers{0.31, -0.12, 0.55, 0.08, -0.27, 0.44, 0.19, 0.73, -0.05, 0.36}),
              0.0322265625, 1e-12);
  // Hollander and Wolfe, Nonparametric Statistical Methods, table 3.1: p = 0.0195.
  EXPECT_NEAR(signed_rank_p(Numbers{0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01}), 10.0 / 512,
              1e-12);
}

TEST(SignedRank, CountsTiesAndZerosExactly) {
  EXPECT_NEAR(signed_rank_p(Numbers{1, -1, 2, 2, 0, -3, 3, 3, 4, 0}), 0.08203125, 1e-12);
  EXPECT_EQ(signed_rank_p(Numbers{0, 0, 0}), 1);
  EXPECT_EQ(signed_rank_p(Numbers{}), 1);
  EXPECT_EQ(signed_rank_p(Numbers{2, 2, 2, 2}), 1.0 / 16);  // equal differences still count
}

TEST(SignedRank, TheMostExtremeOutcomeIsOneOfAllSignChanges) {
  for (size_t n = 1; n <= 20; ++n) {
    Numbers worse;
    for (size_t i = 0; i < n; ++i) worse.push_back(1.0 + double(i));
    EXPECT_EQ(signed_rank_p(worse), std::ldexp(1.0, -int(n)));
    for (double& value : worse) value = -value;
    EXPECT_EQ(signed_rank_p(worse), 1);
  }
}

TEST(SignedRank, ManyPairsUseTheNormalApproximation) {
  Numbers values;
  for (int i = 0; i < 300; ++i) values.push_back(std::sin(i) * 10 + 0.6);
  EXPECT_NEAR(signed_rank_p(values), 0.02232266899010556, 1e-9);
}

// 20 pairs of noise without a change, 20,000 times. An exact test at 1% rejects in at most 1% of them, and
// not in much less.
TEST(SignedRank, RejectsAsOftenAsItsLevelAllows) {
  const RandomStream draws(7, "signed rank");
  int rejected = 0;
  constexpr int kTimes = 20'000;
  for (int i = 0; i < kTimes; ++i) {
    Numbers values;
    for (uint64_t k = 0; k < 20; ++k) values.push_back(draws.substream(uint64_t(i)).normal(k));
    if (signed_rank_p(values) <= 0.01) ++rejected;
  }
  EXPECT_LE(rejected, 0.0125 * kTimes);
  EXPECT_GE(rejected, 0.007 * kTimes);
}

TEST(RankSum, AgreesWithScipy) {
  // Hollander and Wolfe, table 4.1: permeability constants of a membrane; W = 35, p = 0.1272.
  const Numbers term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const Numbers early{1.15, 0.88, 0.90, 0.74, 1.21};
  EXPECT_NEAR(rank_sum_p(early, term), 0.1272061272061272, 1e-12);
  EXPECT_NEAR(rank_sum_p(Numbers{1, 2, 2, 3, 5, 5, 8}, Numbers{2, 3, 5, 5, 6, 9, 9, 9}), 0.05081585081585081,
              1e-12);
}

TEST(RankSum, ManySamplesUseTheNormalApproximationWithTies) {
  Numbers first;
  Numbers second;
  for (int i = 0; i < 60; ++i) first.push_back(std::floor(std::sin(i) * 10));
  for (int i = 0; i < 70; ++i) second.push_back(std::floor(std::sin(i * 1.7 + 1) * 10) + 2);
  EXPECT_NEAR(rank_sum_p(first, second), 0.05931321069087266, 1e-9);
  EXPECT_EQ(rank_sum_p(Numbers(100, 5.0), Numbers(100, 5.0)), 1);
}

TEST(RankSum, OfNoSamplesIsOne) {
  EXPECT_EQ(rank_sum_p(Numbers{}, Numbers{1}), 1);
  EXPECT_EQ(rank_sum_p(Numbers{1}, Numbers{}), 1);
  EXPECT_EQ(rank_sum_p(Numbers{1, 2, 3}, Numbers{4, 5, 6}), 1.0 / 20);
}

TEST(Holm, AdjustsStepByStepInTheGivenOrder) {
  const Numbers adjusted = holm(Numbers{0.04, 0.01, 0.03, 0.005}, 4);
  EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.06);                // never below the adjusted value of a smaller p
  EXPECT_DOUBLE_EQ(holm(Numbers{0.01}, 30)[0], 0.3);  // of 30 tests, 29 had no p
  EXPECT_EQ(holm(Numbers{0.9, 0.8}, 2), (Numbers{1, 1}));
  EXPECT_TRUE(holm(Numbers{}, 3).empty());
}

TEST(LeastPairs, SufficesForTheMostExtremeResult) {
  EXPECT_EQ(least_pairs(0, 0.01), 0U);
  EXPECT_EQ(least_pairs(1, 0.01), 7U);
  EXPECT_EQ(least_pairs(2, 0.01), 8U);
  EXPECT_EQ(least_pairs(4, 0.01), 9U);
  EXPECT_EQ(least_pairs(30, 0.01), 12U);
  EXPECT_EQ(least_pairs(1, 0.05), 5U);
  EXPECT_EQ(least_pairs(4, 0.0625), 6U);
}

}  // namespace
}  // namespace penstock
