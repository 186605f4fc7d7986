#include "io_backends/core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace penstock {
namespace {

TEST(RandomStream, IsIndexedAndTheSameEverywhere) {
  const RandomStream stream(7, uint64_t{3});
  EXPECT_EQ(stream.bits(1'000'000), RandomStream(7, uint64_t{3}).bits(1'000'000));
  EXPECT_NE(stream.bits(0), stream.bits(1));
  EXPECT_NE(stream.bits(0), RandomStream(8, uint64_t{3}).bits(0));
  EXPECT_NE(stream.bits(0), RandomStream(7, uint64_t{4}).bits(0));
  EXPECT_NE(RandomStream(7, "sizes").bits(0), RandomStream(7, "labels").bits(0));
  // Data sets depend on these numbers: a change here changes every corpus that penstock generates.
  EXPECT_EQ(mix64(1), 0x5692161d100b05e5U);
  EXPECT_EQ(RandomStream(7, uint64_t{0}).bits(0), 13787737555580495284U);
  EXPECT_EQ(RandomStream(7, uint64_t{0}).substream(5).bits(1), 7395422472372694637U);
}

TEST(RandomStream, NumbersHaveTheirDistributions) {
  const RandomStream stream(1, "test");
  constexpr uint64_t kCount = 200'000;
  double uniform = 0;
  double normal = 0;
  double square = 0;
  std::vector<double> sizes;
  std::vector<int> dice(6);
  for (uint64_t n = 0; n < kCount; ++n) {
    uniform += stream.uniform(n);
    const double z = stream.normal(n);
    normal += z;
    square += z * z;
    sizes.push_back(stream.log_normal(n, 112.0, 0.5));
    ++dice[stream.below(n, 6)];
  }
  EXPECT_NEAR(uniform / kCount, 0.5, 0.005);
  EXPECT_NEAR(normal / kCount, 0.0, 0.01);
  EXPECT_NEAR(square / kCount, 1.0, 0.02);
  std::nth_element(sizes.begin(), sizes.begin() + kCount / 2, sizes.end());
  EXPECT_NEAR(sizes[kCount / 2], 112.0, 1.0);
  for (const int count : dice) EXPECT_NEAR(count, kCount / 6.0, 800.0);
}

TEST(Permutation, VisitsEveryNumberOnce) {
  for (const uint64_t size : {1ULL, 2ULL, 3ULL, 64ULL, 1000ULL, 4097ULL}) {
    const Permutation order(size, 9);
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t at = order.at(i);
      ASSERT_LT(at, size);
      EXPECT_FALSE(seen[at]);
      seen[at] = true;
    }
  }
}

TEST(Permutation, DependsOnTheSeedAndChangesTheOrder) {
  const Permutation a(10'000, 1);
  const Permutation b(10'000, 2);
  int same = 0;
  int fixed = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    same += a.at(i) == b.at(i) ? 1 : 0;
    fixed += a.at(i) == i ? 1 : 0;
  }
  EXPECT_LT(same, 20);
  EXPECT_LT(fixed, 20);
}

TEST(PortableMath, AgreesWithTheLibrary) {
  for (int i = -219; i <= 219; ++i) {
    const double x = 0.137 * i;
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-13) << x;
    const double y = std::exp(x * 0.7);
    EXPECT_NEAR(portable_log(y), std::log(y), 1e-13 * (1 + std::abs(std::log(y)))) << y;
  }
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_TRUE(std::isnan(portable_log(-1.0)));
}

}  // namespace
}  // namespace penstock
