#include "datagen/reading/collective_order.hpp"

#include <map>
#include <set>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

SampleList objects_of(const std::vector<uint64_t>& samples) {
  SampleList list;
  for (const uint64_t count : samples) {
    const uint32_t object = list.add_object("object" + std::to_string(list.objects()));
    for (uint64_t i = 0; i < count; ++i) list.add_sample({i * 10, 10, object});
  }
  return list;
}

TEST(CollectiveOrder, RanksMeetInEveryRoundAndReadEachSampleOnceAPass) {
  const SampleList samples = objects_of({7, 1, 20, 4});
  for (const SampleOrder order : {SampleOrder::sequential, SampleOrder::shuffled}) {
    for (const uint64_t count : {1U, 2U, 4U}) {
      std::vector<CollectiveOrder> ranks;
      for (uint64_t rank = 0; rank < count; ++rank)
        ranks.emplace_back(samples, order, 7, RankShare{.rank = rank, .ranks = count, .shift = 1});
      for (const uint64_t pass : {0U, 1U, 5U}) {
        std::set<uint64_t> seen;
        for (uint64_t i = 0; i < ranks.front().rounds(); ++i) {
          const uint32_t object = ranks.front().round(pass, i).object;
          for (CollectiveOrder& rank : ranks) {
            const Round round = rank.round(pass, i);
            EXPECT_EQ(round.object, object);
            if (!round.sample) continue;
            EXPECT_EQ(samples[*round.sample].object, object);
            EXPECT_TRUE(seen.insert(*round.sample).second) << "twice";
          }
        }
        EXPECT_EQ(seen.size(), samples.size());
      }
    }
  }
}

TEST(CollectiveOrder, RoundsAreNoMoreThanTheLongestShareNeeds) {
  const SampleList samples = objects_of({7, 1, 20, 4});
  CollectiveOrder order(samples, SampleOrder::sequential, 0, RankShare{.rank = 0, .ranks = 4});
  EXPECT_EQ(order.rounds(), 2U + 1U + 5U + 1U);
}

TEST(CollectiveOrder, ShuffledPassesDiffer) {
  const SampleList samples = objects_of({7, 9, 20, 4});
  CollectiveOrder order(samples, SampleOrder::shuffled, 7, RankShare{});
  std::vector<uint64_t> first;
  std::vector<uint64_t> second;
  for (uint64_t i = 0; i < order.rounds(); ++i) first.push_back(order.round(0, i).sample.value());
  for (uint64_t i = 0; i < order.rounds(); ++i) second.push_back(order.round(1, i).sample.value());
  EXPECT_NE(first, second);
  for (uint64_t i = 0; i < order.rounds(); ++i) EXPECT_EQ(order.round(0, i).sample.value(), first[i]);
}

}  // namespace
}  // namespace penstock
