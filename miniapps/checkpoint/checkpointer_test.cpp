#include "miniapps/checkpoint/checkpointer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io_backends/core/ranks/ranks_testing.hpp"
#include "miniapps/checkpoint/checkpointer_testing.hpp"
#include "miniapps/checkpoint/drain_progress.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

TEST_F(CheckpointerTest, WithoutAFastTierASaveIsDurableWhenItReturns) {
  const Tier slow = tier("slow");
  const auto saver = open(slow, nullptr).value();
  const CheckpointTimes saved = save(*saver, 20).value();
  EXPECT_EQ(saved.reached, Reached::durable);
  EXPECT_EQ(saved.id, (CheckpointId{20, 0}));
  EXPECT_EQ(acknowledgements(), (std::vector<std::pair<uint64_t, Reached>>{{20, Reached::durable}}));
  EXPECT_EQ(newest(slow), noise(kBytes, 20));
  EXPECT_TRUE(saver->finalize(kLong).ok());
  ASSERT_EQ(saver->times().size(), 1U);
  EXPECT_TRUE(saver->times()[0].durable_s);
  EXPECT_FALSE(saver->times()[0].fast_s);
  EXPECT_GT(saver->times()[0].block_s, 0);
}

TEST_F(CheckpointerTest, AFastTierDrainsToTheSlowOne) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast");
  {
    const auto saver = open(slow, &fast).value();
    EXPECT_EQ(save(*saver, 20).value().reached, Reached::fast);
    ASSERT_TRUE(saver->wait({20, 0}, Reached::durable, kLong).ok());
    EXPECT_EQ(acknowledgements(),
              (std::vector<std::pair<uint64_t, Reached>>{{20, Reached::fast}, {20, Reached::durable}}));
    for (const uint64_t step : {40U, 60U, 80U}) ASSERT_TRUE(save(*saver, step).ok());
    ASSERT_TRUE(saver->finalize(kLong).ok());
    const CheckpointCounts counts = saver->counts();
    EXPECT_EQ(counts.saves, 4U);
    EXPECT_EQ(counts.drained, 4U);
    EXPECT_EQ(counts.backlog_bytes, 0U);
    EXPECT_GE(counts.most_backlog_bytes, kBytes);
    for (const CheckpointTimes& times : saver->times()) {
      EXPECT_EQ(times.bytes, kBytes);
      ASSERT_TRUE(times.fast_s && times.durable_s && times.drain_s);
      EXPECT_LE(*times.fast_s, *times.durable_s);
    }
  }
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{60, 80})) << "--keep 2";
  EXPECT_EQ(steps(fast), (std::vector<uint64_t>{80})) << "--keep-fast 1";
  EXPECT_EQ(newest(slow), noise(kBytes, 80));
}

TEST_F(CheckpointerTest, TheSameStepAgainIsAnotherGeneration) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast");
  const auto saver = open(slow, &fast).value();
  EXPECT_EQ(save(*saver, 20).value().id.generation, 0U);
  EXPECT_EQ(save(*saver, 20).value().id.generation, 1U);
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(save(*saver, 20).value().id.generation, 2U);
}

TEST_F(CheckpointerTest, BytesOnEitherTierAreProgress) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast");
  const auto saver = open(slow, &fast).value();
  DrainProgress progress(*saver, slow, &fast);
  for (const Tier* moving : {&slow, &fast}) {
    std::this_thread::sleep_for(2ms);
    EXPECT_GE(progress.stalled_for(), 2ms);
    const auto writer = moving->backend->create("object", 10);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(noise(10, 1)));
    EXPECT_EQ(progress.stalled_for(), 0ms) << moving->name;
  }
}

TEST_F(CheckpointerTest, LeftCheckpointsDrainWhenTheRunIsOpenedAgain) {
  const Tier fast = tier("fast");
  {
    const Tier broken = tier("slow", ",fail=publish/rank-0.bin:eio@1.0");
    const auto saver = open(broken, &fast).value();
    ASSERT_TRUE(save(*saver, 20).ok());
    const Result<void> over = saver->finalize(200ms);
    ASSERT_FALSE(over.ok());
    EXPECT_EQ(over.error().code, Errc::timed_out);
    EXPECT_NE(over.error().what.find("the error of the drain"), std::string::npos) << over.error().what;
    EXPECT_GE(saver->counts().drain_failures, 2U);
    EXPECT_TRUE(save(*saver, 40).ok()) << "training goes on";
  }
  const Tier slow = tier("slow");
  EXPECT_EQ(steps(fast), (std::vector<uint64_t>{20, 40}));
  const auto saver = open(slow, &fast).value();
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20, 40}));
}

TEST_F(CheckpointerTest, ADrainIsTriedAgainAfterAFaultOfTheSlowTier) {
  const Tier slow = tier("slow", ",fail=publish/rank-0.bin:eio@#1+sync:eio@#9");
  const Tier fast = tier("fast");
  const auto saver = open(slow, &fast).value();
  ASSERT_TRUE(save(*saver, 20).ok());
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_GE(saver->counts().drain_failures, 1U);
  EXPECT_EQ(newest(slow), noise(kBytes, 20));
}

TEST_F(CheckpointerTest, AFaultOfTheFastTierFailsTheSave) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast", ",fail=publish/rank-0.bin:eio@#1");
  const auto saver = open(slow, &fast).value();
  const Result<CheckpointTimes> saved = save(*saver, 20);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code, Errc::io);
  EXPECT_TRUE(acknowledgements().empty());
  EXPECT_TRUE(save(*saver, 40).ok()) << "a failed save is no failed run";
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{40}));
}

TEST_F(CheckpointerTest, ABitThatFlipsBeforeTheDrainIsNeverDurable) {
  const Tier fast = tier("fast");
  {
    const Tier broken = tier("slow", ",fail=publish/rank-0.bin:eio@1.0");
    ASSERT_TRUE(save(*open(broken, &fast).value(), 20).ok());
  }
  {
    std::fstream file(dir_.path() / "fast" / CheckpointStore::folder("default", {20, 0}) / "rank-0.bin",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1234);
    file.put(char(~unsigned(noise(kBytes, 20)[1234])));
    ASSERT_TRUE(file.good());
  }
  const Tier slow = tier("slow");
  const auto saver = open(slow, &fast).value();
  const Result<void> over = saver->finalize(kLong);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, Errc::corrupt) << over.error().what;
  const Result<CheckpointTimes> next = save(*saver, 40);
  ASSERT_FALSE(next.ok()) << "what went wrong in the background is the next save's error";
  EXPECT_EQ(next.error().code, Errc::corrupt);
  EXPECT_EQ(saver->counts().quarantined, 1U);
  EXPECT_TRUE(steps(slow).empty());
  EXPECT_TRUE(steps(fast).empty());
}

TEST_F(CheckpointerTest, PruningKeepsTheJustSavedOlderStep) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast");
  for (const Tier* const through : {static_cast<const Tier*>(nullptr), &fast}) {
    const auto saver = open(slow, through).value();
    for (const uint64_t step : {40U, 60U, 20U}) ASSERT_TRUE(save(*saver, step).ok());
    ASSERT_TRUE(saver->finalize(kLong).ok());
    const std::vector<uint64_t> there = steps(slow);
    EXPECT_NE(std::find(there.begin(), there.end(), 20U), there.end()) << "it was acknowledged as durable";
  }
}

TEST_F(CheckpointerTest, AnUnreadableFastCopyStays) {
  const Tier fast = tier("fast");
  {
    const Tier broken = tier("slow", ",fail=publish/rank-0.bin:eio@1.0");
    ASSERT_TRUE(save(*open(broken, &fast).value(), 20).ok());
  }
  const Tier slow = tier("slow");
  const Tier failing = tier("fast", ",fail=open/MANIFEST:eio@1.0");
  const auto refused = open(slow, &failing);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::io) << refused.error().message();
  EXPECT_EQ(steps(fast), std::vector<uint64_t>{20});
}

TEST_F(CheckpointerTest, ATruncatedSlowCopyIsWrittenAgain) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast");
  {
    const auto saver = open(slow, &fast).value();
    ASSERT_TRUE(save(*saver, 20).ok());
    ASSERT_TRUE(saver->finalize(kLong).ok());
  }
  std::filesystem::resize_file(
      dir_.path() / "slow" / CheckpointStore::folder("default", {20, 0}) / "rank-0.bin", 1000);
  const auto saver = open(slow, &fast).value();
  const Result<void> over = saver->finalize(kLong);
  EXPECT_TRUE(over.ok()) << over.error().message();
  EXPECT_EQ(steps(slow), std::vector<uint64_t>{20});
  EXPECT_EQ(steps(fast), std::vector<uint64_t>{20});
}

class FullFastTier : public CheckpointerTest {
 protected:
  // Has room for one checkpoint of kBytes with its manifest, but not for two.
  Tier small() { return tier("fast", ",capacity=500KB"); }
  Tier stuck() { return tier("slow", ",fail=publish/rank-0.bin:eio@1.0"); }
};

TEST_F(FullFastTier, BlocksUntilTheDrainHasMadeRoom) {
  const Tier slow = tier("slow", ",fail=publish/rank-0.bin:hang=50ms@1.0");
  const Tier fast = small();
  const auto saver = open(slow, &fast).value();
  for (const uint64_t step : {20U, 40U, 60U}) {
    EXPECT_EQ(save(*saver, step).value().reached, Reached::fast);
    EXPECT_EQ(saver->counts().backlog_bytes, kBytes) << "one at a time";
  }
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(saver->counts().most_backlog_bytes, kBytes);
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{40, 60}));
}

TEST_F(FullFastTier, BlocksNoLongerThanAllowed) {
  policy_.block_for = 100ms;
  const Tier slow = stuck();
  const Tier fast = small();
  const auto saver = open(slow, &fast).value();
  ASSERT_TRUE(save(*saver, 20).ok());
  const Result<CheckpointTimes> second = save(*saver, 40);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::timed_out);
  EXPECT_NE(second.error().what.find("not enough space for a checkpoint"), std::string::npos)
      << second.error().what;
}

TEST_F(FullFastTier, SkipsAndCounts) {
  policy_.on_full = OnFull::skip;
  const Tier slow = stuck();
  const Tier fast = small();
  const auto saver = open(slow, &fast).value();
  ASSERT_TRUE(save(*saver, 20).ok());
  const CheckpointTimes second = save(*saver, 40).value();
  EXPECT_TRUE(second.skipped);
  EXPECT_EQ(second.reached, Reached::nothing);
  EXPECT_EQ(saver->counts().skips, 1U);
  EXPECT_EQ(steps(fast), (std::vector<uint64_t>{20})) << "what is not durable stays";
}

TEST_F(FullFastTier, WritesThrough) {
  policy_.on_full = OnFull::writethrough;
  const Tier slow = tier("slow", ",fail=publish/000000000020:eio@1.0+publish/drain:eio@1.0");
  const Tier fast = small();
  const auto saver = open(slow, &fast).value();
  ASSERT_TRUE(save(*saver, 20).ok());
  const CheckpointTimes second = save(*saver, 40).value();
  EXPECT_EQ(second.reached, Reached::durable);
  EXPECT_EQ(saver->counts().written_through, 1U);
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{40}));
}

TEST_F(FullFastTier, ALargerCheckpointGoesToTheSlowTierOrFails) {
  const Tier slow = tier("slow");
  const Tier fast = small();
  {
    const auto saver = open(slow, &fast).value();
    EXPECT_EQ(save(*saver, 20, 2 * kBytes).value().reached, Reached::durable);
    EXPECT_EQ(save(*saver, 40).value().reached, Reached::fast);
    ASSERT_TRUE(saver->finalize(kLong).ok());
  }
  policy_.fail_oversize = true;
  const auto saver = open(slow, &fast).value();
  const Result<CheckpointTimes> large = save(*saver, 60, 2 * kBytes);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, Errc::no_space);
  EXPECT_NE(large.error().what.find("--oversize"), std::string::npos);
}

TEST_F(FullFastTier, NoSpaceDuringAWriteCountsAsAFullTier) {
  policy_.on_full = OnFull::writethrough;
  const Tier slow = tier("slow");
  const Tier fast = tier("fast", ",fail=write/rank-0.bin:enospc@#1");
  const auto saver = open(slow, &fast).value();
  EXPECT_EQ(save(*saver, 20).value().reached, Reached::durable);
  EXPECT_EQ(save(*saver, 40).value().reached, Reached::fast);
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20, 40}));
}

TEST_F(CheckpointerTest, OnlyOneTrainingMaySaveARun) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast");
  const auto saver = open(slow, &fast).value();
  const auto second = open(slow, nullptr);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::busy);
  policy_.run = "another";
  EXPECT_TRUE(open(slow, &fast).ok());
}

TEST_F(CheckpointerTest, ARunDoesNotEvictCheckpointsOfAnotherRun) {
  policy_.keep_on_fast = 5;
  const Tier slow = tier("slow");
  const Tier fast = tier("fast", ",capacity=1MB");
  policy_.run = "one";
  {
    const auto one = open(slow, &fast).value();
    ASSERT_TRUE(save(*one, 20).ok());
    ASSERT_TRUE(one->finalize(kLong).ok());
  }
  policy_.run = "two";
  policy_.quota = 2 * kBytes;
  const auto two = open(slow, &fast).value();
  for (const uint64_t step : {20U, 40U, 60U, 80U}) {
    ASSERT_TRUE(save(*two, step).ok());
    ASSERT_TRUE(two->finalize(kLong).ok());
  }
  EXPECT_EQ(steps(fast, "one"), (std::vector<uint64_t>{20}));
  EXPECT_LE(steps(fast, "two").size(), 2U);
}

TEST_F(CheckpointerTest, ATooLargeManifestIsRefusedBeforeAByteIsWritten) {
  const Tier slow = tier("slow");
  const auto saver = open(slow, nullptr).value();
  const std::vector<std::byte> some(16);
  const std::span<const std::byte> huge(some.data(), size_t{1} << 47U);  // never read
  const Result<CheckpointTimes> refused = saver->save({.step = 20, .files = {{"rank-0.bin", huge}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::unsupported) << refused.error().what;
  EXPECT_NE(refused.error().what.find("the limit is"), std::string::npos);
  EXPECT_EQ(saver->counts().saves, 0U);
  EXPECT_TRUE(save(*saver, 20).ok());
}

TEST_F(CheckpointerTest, BytesThatChangeAfterASaveAreNotInIt) {
  const Tier slow = tier("slow", ",fail=write:hang=20ms@1.0");
  const Tier fast = tier("fast");
  const auto saver = open(slow, &fast).value();
  std::vector<std::byte> state = noise(kBytes, 20);
  ASSERT_TRUE(saver->save({.step = 20, .files = {{"rank-0.bin", state}}}).ok());
  std::fill(state.begin(), state.end(), std::byte{0});
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(newest(slow), noise(kBytes, 20));
}

TEST_F(CheckpointerTest, AFailedAcknowledgementFailsLaterSaves) {
  const Tier slow = tier("slow");
  auto saver =
      Checkpointer::open(policy_, slow, nullptr, *alone_, [](const CheckpointId&, Reached) -> Result<void> {
        return make_error(Errc::no_space, "the log is full");
      }).value();
  EXPECT_FALSE(save(*saver, 20).ok());
  EXPECT_FALSE(save(*saver, 40).ok());
}

TEST_F(CheckpointerTest, BadArguments) {
  const Tier slow = tier("slow");
  policy_.run = "../up";
  EXPECT_EQ(open(slow, nullptr).error().code, Errc::invalid_argument);
  policy_.run = "fine";
  policy_.keep_on_slow = 0;
  EXPECT_EQ(open(slow, nullptr).error().code, Errc::invalid_argument);
}

class CheckpointerOfRanks : public CheckpointerTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Snapshot, CheckpointerOfRanks, ::testing::Bool(),
                         [](const auto& made) { return made.param ? "behind" : "at_once"; });

TEST_P(CheckpointerOfRanks, CommitsWhenAllRanksHaveWritten) {
  policy_.by_snapshot = GetParam();
  const Tier slow = tier("slow");
  const Tier fast = tier("fast");
  RankThreads::run(4, [&](Communicator& ranks) {
    const auto opened = Checkpointer::open(policy_, slow, &fast, ranks);
    ASSERT_TRUE(opened.ok()) << opened.error().what;
    for (const uint64_t step : {20U, 40U}) {
      const std::vector<std::byte> state = noise(kBytes + size_t(ranks.rank()), step, ranks.rank());
      const Result<CheckpointTimes> saved = (*opened)->save(
          {.step = step, .files = {{"rank-" + std::to_string(ranks.rank()) + ".bin", state}}});
      EXPECT_TRUE(saved.ok()) << saved.error().what;
    }
    const Result<void> over = (*opened)->finalize(kLong);
    EXPECT_TRUE(over.ok()) << over.error().what;
  });
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20, 40}));
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(newest(slow, "rank-" + std::to_string(rank) + ".bin"), noise(kBytes + size_t(rank), 40, rank));
}

TEST_F(CheckpointerTest, ARankThatFailsFailsTheSaveOfAll) {
  const Tier slow = tier("slow", ",fail=publish/rank-2.bin:eio@#1");
  std::atomic<int> failed = 0;
  RankThreads::run(4, [&](Communicator& ranks) {
    const auto saver = Checkpointer::open(policy_, slow, nullptr, ranks).value();
    const std::vector<std::byte> state = noise(kBytes, 20, ranks.rank());
    const SaveRequest request{.step = 20,
                              .files = {{"rank-" + std::to_string(ranks.rank()) + ".bin", state}}};
    failed += saver->save(request).ok() ? 0 : 1;
    EXPECT_TRUE(saver->save(request).ok());
  });
  EXPECT_EQ(failed, 4);
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20}));
}

}  // namespace
}  // namespace penstock
