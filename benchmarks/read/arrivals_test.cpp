#include "benchmarks/read/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

std::vector<std::int64_t> times(const ArrivalRate& rate, std::size_t count, std::uint64_t run = 0) {
  Arrivals arrivals(rate, run);
  std::vector<std::int64_t> got(count);
  for (std::int64_t& one : got) one = arrivals.next_ns();
  return got;
}

TEST(ArrivalRate, IsANumberASecond) {
  for (const char* text : {"500", "500/s", "0.5k", "0.5k/s", "0.0005M/s"}) {
    const auto rate = parse_arrival_rate(text);
    ASSERT_OK(rate) << text;
    EXPECT_DOUBLE_EQ(rate->per_second, 500) << text;
    EXPECT_FALSE(rate->poisson);
  }
  const auto poisson = parse_arrival_rate("2.5k/s,poisson");
  ASSERT_OK(poisson);
  EXPECT_DOUBLE_EQ(poisson->per_second, 2500);
  EXPECT_TRUE(poisson->poisson);
  for (const char* text :
       {"", "/s", "fast", "0", "-1", "nan", "inf", "1e10", "5 /s", "500/m", "500,uniform", "500/s/s", "1e-9"})
    EXPECT_ERRC(Errc::invalid_argument, parse_arrival_rate(text)) << text;
}

TEST(Arrivals, AreEvenlySpacedUnlessAskedOtherwise) {
  EXPECT_EQ(times({.per_second = 1000}, 3), (std::vector<std::int64_t>{500'000, 1'500'000, 2'500'000}));
}

TEST(Arrivals, OfARunOfWholeGapsAreAsManyAsGaps) {
  EXPECT_EQ(Arrivals({.per_second = 5}, 0).between(0, 1'000'000'000), 5U);
  std::uint64_t all = 0;
  for (const unsigned rank : {0U, 1U, 2U, 3U})
    all += Arrivals({.per_second = 400, .rank = rank, .ranks = 4}, 0).between(0, 500'000'000);
  EXPECT_EQ(all, 200U);
}

TEST(Arrivals, AreCountedWhetherTheyWereGivenOutOrNot) {
  for (const bool poisson : {false, true}) {
    const ArrivalRate rate{.per_second = 1000, .poisson = poisson, .seed = 9};
    const auto all = times(rate, 1000);
    Arrivals arrivals(rate, 0);
    for (const auto& [from, to] : {std::pair{std::int64_t{0}, all[300]}, std::pair{all[20], all[500] + 1},
                                   std::pair{all[5], all[5]}}) {
      const auto wanted = std::count_if(all.begin(), all.end(), [first = from, end = to](std::int64_t one) {
        return one >= first && one < end;
      });
      EXPECT_EQ(arrivals.between(from, to), static_cast<std::uint64_t>(wanted));
      static_cast<void>(arrivals.next_ns());
    }
  }
}

TEST(Arrivals, OfRanksLieBetweenEachOther) {
  std::vector<std::int64_t> all;
  for (const unsigned rank : {0U, 1U, 2U, 3U}) {
    const auto mine = times({.per_second = 1000, .rank = rank, .ranks = 4}, 25);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, times({.per_second = 1000}, 100));
}

TEST(Arrivals, OfAPoissonProcessHaveItsMeanAndDeviationAndAreTheSeeds) {
  constexpr std::size_t kMany = 100'000;
  const ArrivalRate rate{.per_second = 1000, .poisson = true, .seed = 3};
  const auto got = times(rate, kMany);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  double square = 0;
  for (std::size_t i = 1; i < kMany; ++i)
    square += std::pow(static_cast<double>(got[i] - got[i - 1]) * 1e-6, 2);
  EXPECT_NEAR(static_cast<double>(got.back()) * 1e-9, 100, 2);
  EXPECT_NEAR(square / kMany, 2, 0.1)
      << "of exponential gaps the mean square is twice the square of the mean";
  EXPECT_EQ(times(rate, 100), times(rate, 100));
  EXPECT_NE(times(rate, 100), times(rate, 100, 1)) << "no two runs are alike";
  EXPECT_NE(times({.per_second = 1000, .poisson = true, .seed = 4}, 100), times(rate, 100));
}

}  // namespace
}  // namespace penstock
