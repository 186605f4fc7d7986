#include "results/compare/change_point.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

using Numbers = std::vector<double>;

// Noise in which each value depends on the one before by the factor `phi`, with a step of `step` standard
// deviations in the middle.
Numbers series(size_t n, double phi, double step, uint64_t seed) {
  const RandomStream draws(seed, "series");
  Numbers values;
  double last = draws.normal(0) / std::sqrt(1 - phi * phi);
  for (size_t i = 0; i < n; ++i) {
    values.push_back(last + (i >= n / 2 ? step / std::sqrt(1 - phi * phi) : 0));
    last = phi * last + draws.normal(i + 1);
  }
  return values;
}

int count_series_with_change(size_t n, double phi, double step, double level, int times) {
  int found = 0;
  for (int i = 0; i < times; ++i)
    if (find_change(series(n, phi, step, 1000 + uint64_t(i)), 1, 999)->p <= level) ++found;
  return found;
}

// The annual flow of the Nile at Aswan, 1871 to 1970 (Cobb, The problem of the Nile, Biometrika 65, 1978). It
// fell after 1898, when the building of the dam began.
TEST(ChangePoint, FindsTheChangeInTheFlowOfTheNile) {
  const Numbers nile{1120, 1160, 963, 1210, 1160, 1160, 813,  1230, 1370, 1140, 995,  935,  1110, 994,  1020,
                     960,  1180, 799, 958,  1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774,  840,
                     874,  694,  940, 833,  701,  916,  692,  1020, 1050, 969,  831,  726,  456,  824,  702,
                     1120, 1100, 832, 764,  821,  768,  845,  864,  862,  698,  845,  744,  796,  1040, 759,
                     781,  865,  845, 944,  984,  897,  822,  1010, 771,  676,  649,  846,  812,  742,  801,
                     1040, 860,  874, 848,  890,  744,  749,  838,  1050, 918,  986,  797,  923,  975,  815,
                     1020, 906,  901, 1170, 912,  746,  919,  718,  714,  740};
  const auto change = find_change(nile);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->index, 28U);  // 1899
  EXPECT_LE(change->p, 0.002);
  EXPECT_EQ(change->median_before, 1130);
  EXPECT_EQ(change->median_after, 842.5);
}

TEST(ChangePoint, ShortOrIncompleteSeriesHaveNoResult) {
  EXPECT_FALSE(find_change(series(29, 0, 5, 1)));
  EXPECT_TRUE(find_change(series(30, 0, 5, 1)));
  Numbers holed = series(40, 0, 0, 1);
  holed[7] = std::nan("");
  EXPECT_FALSE(find_change(holed));
}

TEST(ChangePoint, GivesTheSameResultEachTime) {
  const Numbers values = series(60, 0, 1, 9);
  const auto one = find_change(values);
  const auto other = find_change(values);
  EXPECT_EQ(one->index, other->index);
  EXPECT_EQ(one->p, other->p);
}

TEST(ChangePoint, EqualValuesHaveNoChange) {
  EXPECT_EQ(find_change(Numbers(50, 3.0))->p, 1);
}

TEST(ChangePoint, RarelyFindsAChangeInNoise) {
  EXPECT_LE(count_series_with_change(100, 0, 0, 0.01, 400), 8);
  // permutations of single values, not blocks, would flag a third of the series
  EXPECT_LE(count_series_with_change(100, 0.5, 0, 0.01, 400), 8);
  EXPECT_LE(count_series_with_change(30, 0, 0, 0.01, 400), 8);
}

TEST(ChangePoint, FindsAStepOfTwoDeviations) {
  EXPECT_GE(count_series_with_change(100, 0, 2, 0.05, 200), 190);
  EXPECT_GE(count_series_with_change(100, 0, 2, 0.01, 200), 170);
  EXPECT_GE(count_series_with_change(30, 0, 2, 0.05, 200), 120);
}

}  // namespace
}  // namespace penstock
