#include "miniapps/train/find_accelerators.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

TEST(MostFed, IsFoundWhereverItLies) {
  for (uint64_t most = 1; most <= 40; ++most) {
    for (uint64_t limit = 0; limit <= most; ++limit) {
      uint64_t runs = 0;
      const Result<uint64_t> found = most_fed(most, [&](uint64_t n) -> Result<bool> {
        EXPECT_GE(n, 1U);
        EXPECT_LE(n, most);
        ++runs;
        return n <= limit;
      });
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(*found, limit) << "of " << most;
      EXPECT_LE(runs, 20U) << "of " << most;
    }
  }
}

TEST(MostFed, IsNotStoppedByOneUnluckyRun) {
  for (uint64_t unlucky = 1; unlucky <= 12; ++unlucky) {
    uint64_t runs = 0;
    const Result<uint64_t> found =
        most_fed(16, [&](uint64_t n) -> Result<bool> { return ++runs != unlucky && n <= 11; });
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, 11U) << "the unlucky run was number " << unlucky;
  }
}

TEST(MostFed, StopsAtAnError) {
  EXPECT_EQ(most_fed(10, [](uint64_t) -> Result<bool> { return make_error(Errc::io, "gone"); }).error().code,
            Errc::io);
}

TEST(MostFedInARow, GoesDownUntilAllRunsHold) {
  std::vector<uint64_t> asked;
  unsigned sevens = 0;
  const Result<uint64_t> found = most_fed_in_a_row(8, 5, [&](uint64_t n) -> Result<bool> {
    asked.push_back(n);
    if (n == 8) return false;
    if (n == 7) return ++sevens < 5;  // the fifth time it fails
    return true;
  });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 6U);
  EXPECT_EQ(asked, (std::vector<uint64_t>{8, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6}));
}

TEST(MostFedInARow, MayBeNone) {
  EXPECT_EQ(most_fed_in_a_row(2, 5, [](uint64_t) -> Result<bool> { return false; }).value(), 0U);
}

}  // namespace
}  // namespace penstock
