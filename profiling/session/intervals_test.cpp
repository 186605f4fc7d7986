#include "profiling/session/intervals.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace penstock {
namespace {

using Intervals = std::vector<TimeInterval>;

TEST(Merged, JoinsIntervalsThatOverlapTouchOrContainEachOther) {
  EXPECT_EQ(merged({{0, 10}, {5, 15}}), (Intervals{{0, 15}}));
  EXPECT_EQ(merged({{0, 10}, {2, 3}, {4, 5}, {9, 12}}), (Intervals{{0, 12}})) << "nested";
  EXPECT_EQ(merged({{0, 10}, {10, 20}}), (Intervals{{0, 20}})) << "touching";
  EXPECT_EQ(merged({{0, 10}, {11, 20}}), (Intervals{{0, 10}, {11, 20}}));
  EXPECT_EQ(merged({{3, 7}, {3, 7}, {3, 7}}), (Intervals{{3, 7}})) << "equal";
}

TEST(Merged, AcceptsAnyOrderAndNegativeTimes) {
  EXPECT_EQ(merged({{30, 40}, {-5, 1}, {0, 10}, {35, 50}}), (Intervals{{-5, 10}, {30, 50}}));
}

TEST(Merged, LeavesOutEmptyIntervals) {
  EXPECT_EQ(merged({}), Intervals{});
  EXPECT_EQ(merged({{5, 5}, {9, 3}}), Intervals{});
  EXPECT_EQ(merged({{0, 4}, {4, 4}, {5, 6}}), (Intervals{{0, 4}, {5, 6}})) << "an empty one joins nothing";
}

TEST(Length, OfUnionsAndOfTheirIntersection) {
  EXPECT_EQ(length({}), 0);
  EXPECT_EQ(length(merged({{0, 10}, {5, 15}, {20, 21}})), 16);
  const Intervals a{{0, 10}, {20, 30}, {40, 50}};
  const Intervals b{{5, 25}, {30, 40}, {45, 46}};
  EXPECT_EQ(common_length(a, b), 5 + 5 + 0 + 1);
  EXPECT_EQ(common_length(b, a), 11);
  EXPECT_EQ(common_length(a, a), length(a));
  EXPECT_EQ(common_length(a, {}), 0);
}

// Compares the lengths with the number of integers that are in the intervals.
TEST(Length, AgreesWithCountingIntegers) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<bool> in_a(64), in_b(64);
    Intervals a, b;
    for (int i = 0; i < 8; ++i) {
      const auto begin = int64_t(random() % 60);
      const auto end = begin + int64_t(random() % 5);
      (i % 2 == 0 ? a : b).push_back({begin, end});
      for (int64_t at = begin; at < end; ++at) (i % 2 == 0 ? in_a : in_b)[size_t(at)] = true;
    }
    int64_t points = 0, both = 0;
    for (size_t at = 0; at < in_a.size(); ++at) {
      points += in_a[at] ? 1 : 0;
      both += in_a[at] && in_b[at] ? 1 : 0;
    }
    EXPECT_EQ(length(merged(a)), points);
    EXPECT_EQ(common_length(merged(a), merged(b)), both);
  }
}

}  // namespace
}  // namespace penstock
