#include "miniapps/pipeline/sampler.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace penstock {
namespace {

std::vector<std::uint64_t> all(const EpochOrder& order) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < order.size(); ++i) out.push_back(order.at(i));
  return out;
}

TEST(Sampler, WithoutShuffleFollowsTheManifest) {
  EXPECT_EQ(all(Sampler(4, Shuffle::none, 1).epoch(7)), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST(Sampler, RanksShareAnEpochWithoutOverlap) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::local, Shuffle::global}) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::multiset<std::uint64_t> seen;
      for (int rank = 0; rank < 3; ++rank) {
        const Sampler sampler(100, shuffle, 11, rank, 3);
        EXPECT_EQ(sampler.per_epoch(), 33U);
        for (const std::uint64_t index : all(sampler.epoch(epoch))) {
          EXPECT_LT(index, 100U);
          seen.insert(index);
        }
      }
      EXPECT_EQ(seen.size(), 99U);
      EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 99U);
    }
  }
}

TEST(Sampler, LocalShuffleStaysInTheRanksOwnPart) {
  const Sampler sampler(100, Shuffle::local, 5, 1, 4);
  for (const std::uint64_t index : all(sampler.epoch(2))) {
    EXPECT_GE(index, 25U);
    EXPECT_LT(index, 50U);
  }
  EXPECT_NE(all(sampler.epoch(0)), all(sampler.epoch(1)));
}

TEST(Sampler, GlobalShuffleGivesARankOtherSamplesEachEpoch) {
  const Sampler sampler(1000, Shuffle::global, 5, 0, 2);
  const std::vector<std::uint64_t> first = all(sampler.epoch(0));
  const std::vector<std::uint64_t> second = all(sampler.epoch(1));
  EXPECT_NE(std::set<std::uint64_t>(first.begin(), first.end()),
            std::set<std::uint64_t>(second.begin(), second.end()));
  EXPECT_EQ(first, all(Sampler(1000, Shuffle::global, 5, 0, 2).epoch(0))) << "the seed decides";
  EXPECT_NE(first, all(Sampler(1000, Shuffle::global, 6, 0, 2).epoch(0)));
}

TEST(Sampler, NamesItsModes) {
  EXPECT_EQ(*parse_shuffle("local"), Shuffle::local);
  const Result<Shuffle> wrong = parse_shuffle("globl");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().what.find("global"), std::string::npos);
}

}  // namespace
}  // namespace penstock
