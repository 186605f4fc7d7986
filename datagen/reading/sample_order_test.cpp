#include "datagen/reading/sample_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace penstock {
namespace {

constexpr int64_t kStartOfRun = 0;

std::vector<uint64_t> all_positions(SampleSource& source, int64_t now_ns) {
  std::vector<uint64_t> positions;
  for (Slice slice; source.take(now_ns, slice);)
    for (uint64_t i = slice.begin; i < slice.end; ++i) positions.push_back(i);
  return positions;
}

TEST(SampleSource, GivesEveryPositionOfAPassOnceAndInOrderToOneThread) {
  for (const uint64_t samples : {1U, 2U, 7U, 128U, 129U, 5000U}) {
    SampleSource source(samples, 1, 1, 0);
    const std::vector<uint64_t> positions = all_positions(source, kStartOfRun);
    ASSERT_EQ(positions.size(), samples);
    for (uint64_t i = 0; i < samples; ++i) EXPECT_EQ(positions[i], i);
  }
}

TEST(SampleSource, AddsWholePassesUntilTheTimeIsOver) {
  SampleSource source(10, 1, 0, 100);
  Slice slice;
  uint64_t taken = 0;
  while (source.take(taken < 25 ? 50 : 100, slice)) taken += slice.end - slice.begin;
  EXPECT_EQ(taken, 30U);
  EXPECT_EQ(source.passes(), 3U);
  EXPECT_FALSE(source.take(0, slice)) << "once ended, a late clock must not start another pass";
}

TEST(SampleSource, KeepsToTheMostPassesWhateverTheTime) {
  SampleSource source(10, 4, 2, 1'000'000);
  EXPECT_EQ(all_positions(source, 1).size(), 20U);
}

TEST(SampleSource, ManyThreadsTogetherGetEveryPositionOfEveryPassOnce) {
  constexpr uint64_t kSamples = 1000;
  constexpr uint64_t kPasses = 7;
  SampleSource source(kSamples, 4, kPasses, INT64_MAX);
  std::vector<std::vector<uint64_t>> taken(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(taken.size());
    for (std::vector<uint64_t>& mine : taken)
      threads.emplace_back([&source, &mine] {
        for (Slice slice; source.take(1, slice);)
          for (uint64_t i = slice.begin; i < slice.end; ++i) mine.push_back(slice.pass * kSamples + i);
      });
  }
  std::set<uint64_t> all;
  size_t count = 0;
  for (const std::vector<uint64_t>& mine : taken) {
    all.insert(mine.begin(), mine.end());
    count += mine.size();
  }
  EXPECT_EQ(count, kSamples * kPasses);
  EXPECT_EQ(all.size(), kSamples * kPasses);
}

TEST(PassOrder, ShufflesEveryPassAnewAndTheSameForTheSameSeed) {
  constexpr uint64_t kSamples = 100;
  PassOrder order(SampleOrder::shuffled, kSamples, 7);
  PassOrder again(SampleOrder::shuffled, kSamples, 7);
  PassOrder other(SampleOrder::shuffled, kSamples, 8);
  std::vector<uint64_t> first;
  std::vector<uint64_t> second;
  std::vector<uint64_t> of_other;
  for (uint64_t i = 0; i < kSamples; ++i) {
    first.push_back(order.sample(0, i));
    EXPECT_EQ(again.sample(0, i), first.back());
    of_other.push_back(other.sample(0, i));
  }
  for (uint64_t i = 0; i < kSamples; ++i) second.push_back(order.sample(1, i));
  EXPECT_NE(first, second);
  EXPECT_NE(first, of_other);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), kSamples);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), kSamples);
  EXPECT_EQ(order.sample(0, 3), first[3]) << "going back to an earlier pass gives its order again";
}

TEST(PassOrder, PhysicalSortsEachWindowOfTheShuffle) {
  constexpr uint64_t kSamples = 100;
  constexpr uint64_t kWindow = 16;
  std::vector<uint64_t> device_offsets;
  for (uint64_t i = 0; i < kSamples; ++i) device_offsets.push_back((kSamples - i) / 2);
  PassOrder shuffled(SampleOrder::shuffled, kSamples, 7);
  PassOrder physical(SampleOrder::physical, kSamples, 7, {}, &device_offsets, kWindow);
  for (const uint64_t pass : {0U, 1U, 0U}) {
    for (uint64_t from = 0; from < kSamples; from += kWindow) {
      std::set<uint64_t> wanted, got;
      uint64_t last = 0;
      for (uint64_t i = from; i < std::min(from + kWindow, kSamples); ++i) {
        wanted.insert(shuffled.sample(pass, i));
        const uint64_t sample = physical.sample(pass, i);
        got.insert(sample);
        EXPECT_GE(device_offsets[sample], last);
        last = device_offsets[sample];
      }
      EXPECT_EQ(got, wanted) << "pass " << pass << ", window at " << from;
    }
  }
}

TEST(PassOrder, RanksShareEveryPassAndMoveOnByTheShift) {
  constexpr uint64_t kSamples = 103;
  constexpr uint64_t kRanks = 4;
  std::vector<uint64_t> device_offsets;
  for (uint64_t i = 0; i < kSamples; ++i) device_offsets.push_back(i * 37 % kSamples);
  for (const SampleOrder order_kind :
       {SampleOrder::sequential, SampleOrder::shuffled, SampleOrder::physical}) {
    std::vector<std::set<uint64_t>> before(kRanks);
    for (uint64_t pass = 0; pass < 5; ++pass) {
      std::vector<int> seen(kSamples);
      std::vector<std::set<uint64_t>> now(kRanks);
      for (uint64_t rank = 0; rank < kRanks; ++rank) {
        const RankShare share{.rank = rank, .ranks = kRanks, .shift = 1};
        PassOrder order(order_kind, kSamples, 7, share, &device_offsets, 16);
        const uint64_t positions = order.begin(pass);
        EXPECT_LE(positions, share.largest_part(kSamples));
        for (uint64_t i = 0; i < positions; ++i) {
          ++seen[order.sample(pass, i)];
          now[rank].insert(order.sample(pass, i));
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), ptrdiff_t(kSamples));
      for (uint64_t rank = 0; pass > 0 && rank < kRanks; ++rank) {
        EXPECT_EQ(now[rank], before[(rank + 1) % kRanks]) << "what the next rank had read";
      }
      before = now;
    }
  }
}

TEST(PassOrder, SequentialIsTheManifestsOrder) {
  PassOrder order(SampleOrder::sequential, 10, 7);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(order.sample(i, i), i);
}

}  // namespace
}  // namespace penstock
