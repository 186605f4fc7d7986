#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/ranks/ranks_testing.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_team.hpp"

namespace penstock {
namespace {

TrainOutcome of_rank(int rank) {
  const double r = rank;
  TrainOutcome outcome;
  outcome.figures = {.wall_s = 10 + r,
                     .first_batch_s = 1 + r,
                     .input_wait_s = 2 + r,
                     .straggler_s = 1,
                     .barrier_s = 0.5,
                     .samples = 100,
                     .payload_bytes = 1000,
                     .steps_arrived_last = uint64_t(rank),
                     .step_overshoot = 0.001,
                     .utilization = 0.9 - 0.1 * r,
                     .utilization_dlio = std::nullopt};
  outcome.steps = 10;
  outcome.stages = {{"read", 1, 2, 3}, {"accelerator", 4, 5, 6}};
  outcome.lost = {{"read", 2 + r}, {"straggler", 1}, {"barrier", 0.5}};
  outcome.losses = {.skipped = 6, .dropped_tail = 1, .named = {}};
  for (uint64_t i = 0; i < 6; ++i)  // both ranks name the first object, "shard"
    outcome.losses.named.push_back({.name = i == 0 ? "shard" : std::to_string(rank) + std::to_string(i),
                                    .is_one_sample = false,
                                    .offset = uint64_t(100 - rank),
                                    .why = "rank " + std::to_string(rank)});
  outcome.bytes_by_second.assign(size_t(rank) + 1, 50.0);
  outcome.ranks = {outcome.figures};
  if (rank == 1) outcome.failure = Error{Errc::io, 5, "cannot read 'x'"};
  return outcome;
}

TEST(TrainOutcome, IsJoinedOverTheRanksAndTheSameOnAll) {
  RankThreads::run(2, [](Communicator& ranks) {
    const TrainOutcome all = joined(ranks, of_rank(ranks.rank())).value();
    EXPECT_EQ(all.figures.wall_s, 11) << "the slowest";
    EXPECT_EQ(all.figures.first_batch_s, 2);
    EXPECT_EQ(all.figures.input_wait_s, 2.5) << "the mean";
    EXPECT_EQ(all.figures.straggler_s, 1);
    EXPECT_EQ(all.figures.barrier_s, 0.5);
    EXPECT_EQ(all.figures.samples, 200);
    EXPECT_EQ(all.figures.payload_bytes, 2000);
    EXPECT_DOUBLE_EQ(*all.figures.utilization, 0.85);
    EXPECT_FALSE(all.figures.utilization_dlio);
    EXPECT_EQ(all.steps, 10U);
    ASSERT_EQ(all.stages.size(), 2U);
    EXPECT_EQ(all.stages[1].stage, "accelerator");
    EXPECT_EQ(all.stages[1].blocked_s, 12);
    ASSERT_EQ(all.lost.size(), 3U);
    EXPECT_EQ(all.lost[0].cause, "read");
    EXPECT_EQ(all.lost[0].seconds, 2.5);
    EXPECT_EQ(all.losses.skipped, 12U);
    ASSERT_EQ(all.losses.named.size(), LoaderLosses::kMostNamed);
    EXPECT_EQ(all.losses.named[0].name, "shard");
    EXPECT_FALSE(all.losses.named[0].is_one_sample);
    EXPECT_EQ(all.losses.named[0].samples, 2U);
    EXPECT_EQ(all.losses.named[0].offset, 99U);
    EXPECT_EQ(all.losses.named[0].why, "rank 1") << "as the first sample in it failed";
    EXPECT_EQ(all.bytes_by_second, (std::vector<double>{100, 50}));
    ASSERT_TRUE(all.failure);
    EXPECT_EQ(all.failure->what, "cannot read 'x'");
    EXPECT_EQ(all.failure->sys_errno, 5);
    ASSERT_EQ(all.ranks.size(), 2U);
    for (const size_t rank : {0U, 1U}) {
      EXPECT_EQ(all.ranks[rank].wall_s, 10.0 + double(rank));
      EXPECT_EQ(all.ranks[rank].payload_bytes, 1000);
      EXPECT_EQ(all.ranks[rank].utilization, rank == 0 ? 0.9 : 0.8);
      EXPECT_EQ(all.ranks[rank].steps_arrived_last, rank);
    }
  });
}

TEST(TrainOutcome, SaysNothingOfWhatWasFetchedUnlessAllRanksCanTell) {
  RankThreads::run(2, [](Communicator& ranks) {
    std::vector<EpochBytes> mine{{.consumed = 500, .fetched = 400}, {.consumed = 500, .fetched = 0}};
    const std::vector<EpochBytes> all = joined(ranks, mine).value();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].fetched, 800U);
    if (!ranks.root()) mine.clear();
    EXPECT_TRUE(joined(ranks, mine).value().empty());
  });
}

TEST(TrainOutcome, OfATimelineIsJoinedOverTheRanksAndTheSameOnAll) {
  RankThreads::run(2, [](Communicator& ranks) {
    const double r = ranks.rank();
    const TimelineFigures mine{.spans = 100,
                               .dropped = uint64_t(ranks.rank()),
                               .read_bytes = 1000,
                               .read_summed_s = 8,
                               .read_merged_s = 4 + r,
                               .train_merged_s = 6,
                               .read_train_overlap_s = 2 + r,
                               .read_share = 0.4};
    const TimelineFigures all = joined(ranks, mine).value();
    EXPECT_EQ(all.spans, 200U);
    EXPECT_EQ(all.dropped, 1U);
    EXPECT_EQ(all.read_bytes, 2000U);
    EXPECT_EQ(all.read_summed_s, 8);
    EXPECT_EQ(all.read_merged_s, 4.5) << "the mean";
    EXPECT_EQ(all.train_merged_s, 6);
    EXPECT_EQ(all.read_train_overlap_s, 2.5);
    EXPECT_EQ(all.read_share, 0.4);
  });
}

std::vector<std::string_view> headlines_of(std::span<const MetricInfo> table) {
  std::vector<std::string_view> names;
  for (const MetricInfo& metric : table)
    if (metric.headline) names.push_back(metric.name);
  return names;
}

// Records of earlier versions have no headline marks, so they are compared by these tables.
TEST(TrainMetrics, HeadlinesAreWhatEarlierRecordsAreComparedBy) {
  EXPECT_EQ(headlines_of(train_metrics::kAll),
            (std::vector<std::string_view>{"samples_per_s", "checkpoint_block_s", "checkpoint_bytes", "steps",
                                           "skipped_samples", "dropped_tail_samples", "checkpoint_bytes",
                                           "file_reads", "checkpoint_skips"}));
  EXPECT_EQ(headlines_of(bench_metrics::kAll),
            (std::vector<std::string_view>{"checkpoint_block_s", "checkpoint_bytes", "checkpoint_durable_s",
                                           "checkpoint_skips"}));
}

}  // namespace
}  // namespace penstock
