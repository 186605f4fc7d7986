#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "datagen/reading/sample_order.hpp"

namespace penstock {
namespace {

std::vector<int64_t> times(const OpenLoop& loop, size_t count, uint64_t seed = 0, const RankShare& share = {},
                           uint64_t run = 0) {
  Arrivals arrivals(loop, seed, share, run);
  std::vector<int64_t> got(count);
  for (int64_t& one : got) one = arrivals.next_ns();
  return got;
}

TEST(Arrivals, AreEvenlySpacedUnlessAskedOtherwise) {
  EXPECT_EQ(times({.per_second = 1000}, 3), (std::vector<int64_t>{500'000, 1'500'000, 2'500'000}));
}

TEST(Arrivals, OfARunOfWholeGapsAreAsManyAsGaps) {
  EXPECT_EQ(Arrivals({.per_second = 5}, 0, {}, 0).count_due(0, 1'000'000'000), 5U);
  uint64_t all = 0;
  for (const uint64_t rank : {0U, 1U, 2U, 3U})
    all += Arrivals({.per_second = 400}, 0, {.rank = rank, .ranks = 4}, 0).count_due(0, 500'000'000);
  EXPECT_EQ(all, 200U);
}

TEST(Arrivals, AreCountedWhetherTheyWereGivenOutOrNot) {
  for (const bool poisson : {false, true}) {
    const OpenLoop loop{.per_second = 1000, .poisson = poisson};
    const auto all = times(loop, 1000, 9);
    Arrivals arrivals(loop, 9, {}, 0);
    for (const auto& [from, to] :
         {std::pair{int64_t{0}, all[300]}, std::pair{all[20], all[500] + 1}, std::pair{all[5], all[5]}}) {
      const auto wanted = std::count_if(all.begin(), all.end(), [first = from, end = to](int64_t one) {
        return one >= first && one < end;
      });
      EXPECT_EQ(arrivals.count_due(from, to), uint64_t(wanted));
      static_cast<void>(arrivals.next_ns());
    }
  }
}

TEST(Arrivals, OfRanksLieBetweenEachOther) {
  std::vector<int64_t> all;
  for (const uint64_t rank : {0U, 1U, 2U, 3U}) {
    const auto mine = times({.per_second = 1000}, 25, 0, {.rank = rank, .ranks = 4});
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, times({.per_second = 1000}, 100));
}

TEST(Arrivals, OfAPoissonProcessHaveItsMeanAndDeviationAndAreTheSeeds) {
  constexpr size_t kMany = 100'000;
  const OpenLoop loop{.per_second = 1000, .poisson = true};
  const auto got = times(loop, kMany, 3);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  double square = 0;
  for (size_t i = 1; i < kMany; ++i) square += std::pow(double(got[i] - got[i - 1]) * 1e-6, 2);
  EXPECT_NEAR(double(got.back()) * 1e-9, 100, 2);
  EXPECT_NEAR(square / kMany, 2, 0.1)
      << "of exponential gaps the mean square is twice the square of the mean";
  EXPECT_EQ(times(loop, 100, 3), times(loop, 100, 3));
  EXPECT_NE(times(loop, 100, 3), times(loop, 100, 3, {}, 1)) << "no two runs are alike";
  EXPECT_NE(times(loop, 100, 4), times(loop, 100, 3));
}

}  // namespace
}  // namespace penstock
