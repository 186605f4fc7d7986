#include "datagen/reading/sampler.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <vector>

namespace penstock {
namespace {

std::vector<uint64_t> all(EpochOrder order) {
  std::vector<uint64_t> out;
  while (order.left() > 0) out.push_back(order.next());
  return out;
}

std::vector<uint64_t> sorted(std::vector<uint64_t> indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

// The resident memory of this process in bytes; 0 if /proc does not report it.
uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages >> pages;
  return pages * uint64_t(sysconf(_SC_PAGESIZE));
}

TEST(Sampler, WithoutShuffleFollowsTheManifest) {
  EXPECT_EQ(all(Sampler(4, Shuffle::none, 1).epoch(7)), (std::vector<uint64_t>{0, 1, 2, 3}));
}

TEST(Sampler, RanksShareAnEpochWithoutOverlap) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::local, Shuffle::buffer(1), Shuffle::buffer(10),
                                Shuffle::buffer(1000), Shuffle::global}) {
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::multiset<uint64_t> seen;
      for (int rank = 0; rank < 3; ++rank) {
        const Sampler sampler(100, shuffle, 11, rank, 3);
        EXPECT_EQ(sampler.per_epoch(), 33U);
        for (const uint64_t index : all(sampler.epoch(epoch))) {
          EXPECT_LT(index, 100U);
          seen.insert(index);
        }
      }
      EXPECT_EQ(seen.size(), 99U);
      EXPECT_EQ(std::set<uint64_t>(seen.begin(), seen.end()).size(), 99U);
    }
  }
}

TEST(Sampler, LocalShuffleStaysInTheRanksOwnPart) {
  const Sampler sampler(100, Shuffle::local, 5, 1, 4);
  for (const uint64_t index : all(sampler.epoch(2))) {
    EXPECT_GE(index, 25U);
    EXPECT_LT(index, 50U);
  }
  EXPECT_NE(all(sampler.epoch(0)), all(sampler.epoch(1)));
}

TEST(Sampler, GlobalShuffleGivesARankOtherSamplesEachEpoch) {
  const Sampler sampler(1000, Shuffle::global, 5, 0, 2);
  const std::vector<uint64_t> first = all(sampler.epoch(0));
  const std::vector<uint64_t> second = all(sampler.epoch(1));
  EXPECT_NE(std::set<uint64_t>(first.begin(), first.end()), std::set<uint64_t>(second.begin(), second.end()));
  EXPECT_EQ(first, all(Sampler(1000, Shuffle::global, 5, 0, 2).epoch(0))) << "the seed decides";
  EXPECT_NE(first, all(Sampler(1000, Shuffle::global, 6, 0, 2).epoch(0)));
}

// In each of three epochs, four ranks use each of ten million samples once. The order differs between epochs.
TEST(Sampler, GlobalShufflesOfTenMillionArePermutations) {
  constexpr uint64_t kSamples = 10'000'000;
  constexpr int kRanks = 4;
  std::vector<uint64_t> used(kSamples / 64 + 1);
  uint64_t twice = 0;
  uint64_t outside = 0;
  uint64_t alike = 0;  // positions with the same sample in two epochs; chance makes about one
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::fill(used.begin(), used.end(), 0);
    for (int rank = 0; rank < kRanks; ++rank) {
      const Sampler sampler(kSamples, Shuffle::global, 11, rank, kRanks);
      ASSERT_EQ(sampler.per_epoch() * kRanks, kSamples);
      EpochOrder order = sampler.epoch(epoch);
      EpochOrder other = sampler.epoch((epoch + 1) % 3);
      while (order.left() > 0) {
        const uint64_t index = order.next();
        alike += index == other.next() ? 1U : 0U;
        if (index >= kSamples) {
          ++outside;
          continue;
        }
        uint64_t& word = used[size_t(index / 64)];
        const uint64_t bit = uint64_t{1} << (index % 64);
        twice += (word & bit) != 0 ? 1U : 0U;
        word |= bit;
      }
    }
    EXPECT_EQ(outside, 0U) << "epoch " << epoch;
    EXPECT_EQ(twice, 0U) << "epoch " << epoch << ": as many as there are, none of them twice, is all of them";
  }
  EXPECT_LT(alike, 20U);
}

TEST(Sampler, AGlobalShuffleOfABillionTakesNoMemory) {
  constexpr uint64_t kSamples = 1'000'000'000;
  constexpr size_t kInspected = 20'000;
  static_assert(sizeof(Sampler) + sizeof(EpochOrder) < 1024);
  std::vector<uint64_t> seen(kInspected);  // allocated before the measurement
  const uint64_t before = resident_bytes();
  const Sampler sampler(kSamples, Shuffle::global, 5, 17, 1000);
  EpochOrder order = sampler.epoch(0);
  for (uint64_t& index : seen) index = order.next();
  const uint64_t after = resident_bytes();
  EXPECT_LT(after, before + 1'000'000) << "a bit for each sample were 125 MB";
  EXPECT_EQ(order.left(), kSamples / 1000 - kInspected);
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), kSamples);
  EXPECT_GT(*std::max_element(seen.begin(), seen.end()), kSamples / 100 * 99) << "from all over the corpus";
  EXPECT_LT(*std::min_element(seen.begin(), seen.end()), kSamples / 100);
  EXPECT_EQ(std::set<uint64_t>(seen.begin(), seen.end()).size(), kInspected);
}

TEST(ShuffleBuffer, HoldsThePartOfTheRankInTheManifestsOrder) {
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<uint64_t> stream = all(Sampler(100, Shuffle::none, 5, rank, 3).epoch(0));
    for (const uint64_t entries : {1U, 7U, 33U, 100U}) {
      const auto shuffled = all(Sampler(100, Shuffle::buffer(entries), 5, rank, 3).epoch(2));
      EXPECT_EQ(sorted(shuffled), stream);
      EXPECT_EQ(shuffled == stream, entries == 1) << "a buffer of one place is none";
    }
  }
}

TEST(ShuffleBuffer, TakesEachEntryWithTheSameChance) {
  constexpr uint64_t kSamples = 100'000;
  constexpr uint64_t kEntries = 8;
  const std::vector<uint64_t> order = all(Sampler(kSamples, Shuffle::buffer(kEntries), 3).epoch(0));
  uint64_t newest = 0;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const uint64_t index = order[size_t(i)];
    ASSERT_LT(index, i + kEntries) << "it was not in the buffer yet";
    newest += index == i + kEntries - 1 ? 1U : 0U;
  }
  EXPECT_NEAR(double(newest), kSamples / kEntries, 400) << "each has the chance of 1/8";
}

TEST(ShuffleBuffer, OfAllSamplesGivesEveryPermutationWithTheSameChance) {
  constexpr int kEpochs = 6000;
  std::map<std::vector<uint64_t>, int> seen;
  for (const uint64_t entries : {3U, 50U}) {
    seen.clear();
    const Sampler sampler(3, Shuffle::buffer(entries), 7);
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) ++seen[all(sampler.epoch(epoch))];
    EXPECT_EQ(seen.size(), 6U);
    for (const auto& [order, times] : seen) EXPECT_NEAR(times, kEpochs / 6, 150);
  }
}

TEST(ShuffleBuffer, DependsOnTheSeedTheEpochAndTheRank) {
  const auto order = [](uint64_t seed, uint64_t epoch, int rank) {
    return all(Sampler(1000, Shuffle::buffer(50), seed, rank, 2).epoch(epoch));
  };
  EXPECT_EQ(order(5, 1, 0), order(5, 1, 0));
  EXPECT_NE(order(5, 1, 0), order(6, 1, 0));
  EXPECT_NE(order(5, 1, 0), order(5, 2, 0));
  std::vector<uint64_t> neighbours = order(5, 1, 1);
  for (uint64_t& index : neighbours) --index;
  EXPECT_NE(order(5, 1, 0), neighbours) << "the ranks do not draw alike";
}

TEST(ShuffleBuffer, TakesMemoryOnlyForItsEntries) {
  const uint64_t before = resident_bytes();
  EpochOrder order = Sampler(1'000'000'000, Shuffle::buffer(1000), 5).epoch(0);
  for (int i = 0; i < 20'000; ++i) EXPECT_LT(order.next(), 21'000U);
  EXPECT_LT(resident_bytes(), before + 1'000'000);
}

TEST(Shuffle, IsParsedAndPrinted) {
  for (const char* text : {"none", "local", "global", "buffer:1", "buffer:10000"})
    EXPECT_EQ(shuffle_text(*parse_shuffle(text)), text);
  EXPECT_EQ(*parse_shuffle("local"), Shuffle::local);
  EXPECT_EQ(*parse_shuffle("buffer:10k"), Shuffle::buffer(10'000));
}

TEST(Shuffle, ErrorsNameTheValidArguments) {
  for (const auto& [word, hint] : std::map<std::string, std::string>{{"globl", "global"},
                                                                     {"", "buffer:N"},
                                                                     {"buffers:3", "buffer:N"},
                                                                     {"local:3", "buffer:N"},
                                                                     {"buffer", "buffer:1000"},
                                                                     {"buffer:", "buffer:1000"},
                                                                     {"buffer:0", "at least one sample"},
                                                                     {"buffer:-1", "whole number"},
                                                                     {"buffer:1.5", "whole number"},
                                                                     {"buffer:ten", "whole number"},
                                                                     {"buffer:1:2", "whole number"}}) {
    const Result<Shuffle> wrong = parse_shuffle(word);
    ASSERT_FALSE(wrong.ok()) << word;
    EXPECT_EQ(wrong.error().code, Errc::invalid_argument);
    EXPECT_NE(wrong.error().what.find(hint), std::string::npos) << word << ": " << wrong.error().what;
  }
}

TEST(Sampler, ContinuesAfterTheUsedSamples) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::local, Shuffle::buffer(1), Shuffle::buffer(10),
                                Shuffle::buffer(1000), Shuffle::global}) {
    for (int rank = 0; rank < 3; ++rank) {
      const Sampler sampler(100, shuffle, 11, rank, 3);
      const std::vector<uint64_t> whole = all(sampler.epoch(4));
      for (const uint64_t each : {0U, 1U, 12U, 32U, 33U}) {
        EXPECT_EQ(all(sampler.epoch(4, 3 * each)),
                  std::vector<uint64_t>(whole.begin() + ptrdiff_t(each), whole.end()))
            << shuffle_text(shuffle) << " rank " << rank << " behind " << each;
      }
    }
  }
}

TEST(Sampler, OtherRanksShareWhatIsLeftOfAnOrderOfAll) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::global}) {
    std::multiset<uint64_t> used;
    for (int rank = 0; rank < 4; ++rank) {
      EpochOrder order = Sampler(100, shuffle, 11, rank, 4).epoch(2);
      for (int i = 0; i < 10; ++i) used.insert(order.next());
    }
    for (int rank = 0; rank < 3; ++rank)
      for (const uint64_t index : all(Sampler(100, shuffle, 11, rank, 3).epoch(2, 40))) used.insert(index);
    EXPECT_EQ(used.size(), 100U);
    EXPECT_EQ(std::set<uint64_t>(used.begin(), used.end()).size(), 100U) << shuffle_text(shuffle);
  }
}

TEST(Sampler, SkipsNoMoreThanIsLeft) {
  EpochOrder order = Sampler(10, Shuffle::buffer(3), 1).epoch(0);
  order.skip(4);
  EXPECT_EQ(order.left(), 6U);
  order.skip(100);
  EXPECT_EQ(order.left(), 0U);
}

}  // namespace
}  // namespace penstock
