// Tests saves that first copy the state to memory: who waits for the copy to be written, and what happens if
// a tier is full.
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/core/ranks/ranks_testing.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/checkpointer_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

class Snapshots : public CheckpointerTest {
 protected:
  void SetUp() override {
    CheckpointerTest::SetUp();
    policy_.by_snapshot = true;
  }
  // A slow tier on which the write of the first checkpoint's file takes `time`.
  Tier busy(const std::string& time = "1s") {
    return tier("slow", ",fail=write/rank-0.bin:hang=" + time + "@#1");
  }
};

TEST_F(Snapshots, HaveTheBytesAtTheCallOfSave) {
  const Tier slow = tier("slow", ",fail=write:hang=20ms@1.0");
  const auto saver = open(slow, nullptr).value();
  std::vector<std::byte> state = noise(kBytes, 20);
  const CheckpointTimes saved = saver->save({.step = 20, .files = {{"rank-0.bin", state}}}).value();
  std::fill(state.begin(), state.end(), std::byte{0});
  EXPECT_EQ(saved.reached, Reached::nothing);
  ASSERT_TRUE(saver->wait(saved.id, Reached::durable, kLong).ok());
  EXPECT_EQ(newest(slow), noise(kBytes, 20));
}

TEST_F(Snapshots, AreWaitedForNoLongerThanBlockFor) {
  policy_.block_for = 100ms;
  const Tier slow = busy();
  const auto saver = open(slow, nullptr).value();
  const CheckpointTimes first = save(*saver, 20).value();
  const Result<CheckpointTimes> second = save(*saver, 40);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::timed_out);
  EXPECT_NE(second.error().what.find("step 20 is still being written from memory"), std::string::npos)
      << second.error().what;
  const Result<void> early = saver->finalize(1ms);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, Errc::timed_out);
  ASSERT_TRUE(saver->wait(first.id, Reached::durable, kLong).ok());
  EXPECT_TRUE(save(*saver, 60).ok()) << "a save that took too long is no failed run";
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20, 60}));
}

TEST_F(Snapshots, AreNotWaitedForAfterASignal) {
  const Tier slow = busy();
  {
    const auto saver = open(slow, nullptr).value();
    ASSERT_TRUE(save(*saver, 20).ok());
    simulate_interrupt(SIGTERM);
    const Result<CheckpointTimes> second = save(*saver, 40);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Errc::interrupted) << second.error().what;
    EXPECT_TRUE(saver->finalize(kLong).ok()) << "what was saved has its grace";
  }
  simulate_interrupt(0);
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20}));
}

TEST_F(Snapshots, LeaveNoFilesAfterASignal) {
  const Tier slow = busy("600s");
  {
    const auto saver = open(slow, nullptr).value();
    ASSERT_TRUE(save(*saver, 20).ok());
    simulate_interrupt(SIGTERM);
    EXPECT_EQ(saver->finalize(10ms).error().code, Errc::timed_out);
  }
  simulate_interrupt(0);
  EXPECT_TRUE(steps(slow).empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path() / "slow" / "tmp"));
}

TEST_F(Snapshots, AreSkippedWhileTheMemoryIsInUse) {
  policy_.on_full = OnFull::skip;
  const Tier slow = busy("500ms");
  const auto saver = open(slow, nullptr).value();
  ASSERT_TRUE(save(*saver, 20).ok());
  const CheckpointTimes second = save(*saver, 40).value();
  EXPECT_TRUE(second.skipped);
  EXPECT_EQ(saver->counts().skips, 1U);
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20}));
}

TEST_F(Snapshots, AreWrittenThroughWhileTheMemoryIsInUse) {
  policy_.on_full = OnFull::writethrough;
  const Tier slow = busy("500ms");
  const auto saver = open(slow, nullptr).value();
  ASSERT_TRUE(save(*saver, 20).ok());
  const CheckpointTimes second = save(*saver, 40).value();
  EXPECT_EQ(second.reached, Reached::durable);
  const CheckpointTimes again = save(*saver, 20).value();
  EXPECT_EQ(again.id.generation, 1U) << "of the first, which may not be there yet";
  ASSERT_TRUE(saver->finalize(kLong).ok());
  EXPECT_EQ(newest(slow), noise(kBytes, 40));
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20, 20, 40}));
}

TEST_F(Snapshots, FollowThePolicyIfTheFastTierIsFull) {
  for (const OnFull policy : {OnFull::block, OnFull::skip, OnFull::writethrough}) {
    for (const bool at_the_end : {false, true}) {
      SCOPED_TRACE(int(policy));
      policy_.on_full = policy;
      policy_.run = "run" + std::to_string(int(policy)) + (at_the_end ? "e" : "n");
      const Tier slow = tier("slow");
      const Tier fast = tier("fast", ",fail=write/rank-0.bin:enospc@#1");
      const auto saver = open(slow, &fast).value();
      const CheckpointTimes first = save(*saver, 20).value();
      if (at_the_end) {
        const Result<void> waited = saver->wait(first.id, Reached::durable, kLong);
        EXPECT_EQ(waited.ok(), policy != OnFull::skip);
      } else {
        // The result of the first save is known now, or at the end with policies that do not wait.
        EXPECT_TRUE(save(*saver, 40).ok());
      }
      ASSERT_TRUE(saver->finalize(kLong).ok());
      EXPECT_TRUE(save(*saver, 60).ok());
      ASSERT_TRUE(saver->finalize(kLong).ok());
      const std::vector<uint64_t> there = steps(slow, policy_.run);
      EXPECT_EQ(there.back(), 60U);
      const CheckpointCounts counts = saver->counts();
      EXPECT_EQ(counts.written_through >= 1, policy == OnFull::writethrough);
      EXPECT_EQ(counts.skips >= 1, policy == OnFull::skip);
      EXPECT_EQ(counts.saves, at_the_end ? 2U : 3U);
    }
  }
}

TEST_F(Snapshots, StayInMemoryAfterATimeout) {
  policy_.block_for = 150ms;
  const Tier stuck = tier("slow", ",fail=publish/drain.:eio@#1..");
  const Tier fast = tier("fast", ",fail=write/rank-0.bin:enospc@#2..");
  const auto saver = open(stuck, &fast).value();
  const CheckpointTimes first = save(*saver, 20).value();
  ASSERT_TRUE(saver->wait(first.id, Reached::fast, kLong).ok());
  ASSERT_TRUE(save(*saver, 40).ok());
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(save(*saver, 60).error().code, Errc::timed_out) << "that of 40 is still there";
    EXPECT_EQ(saver->finalize(10ms).error().code, Errc::timed_out);
  }
  EXPECT_EQ(saver->counts().saves, 2U);
  EXPECT_EQ(steps(fast), (std::vector<uint64_t>{20}));
}

TEST_F(Snapshots, AreTriedOnceMoreIfTheSlowTierIsFull) {
  const Tier once = tier("slow", ",fail=write/rank-0.bin:enospc@#1");
  {
    const auto saver = open(once, nullptr).value();
    ASSERT_TRUE(save(*saver, 20).ok());
    EXPECT_TRUE(save(*saver, 40).ok());
    EXPECT_TRUE(saver->finalize(kLong).ok());
    EXPECT_EQ(steps(once), (std::vector<uint64_t>{20, 40}));
  }
  const Tier full = tier("slow", ",fail=write/rank-0.bin:enospc@1.0");
  const auto saver = open(full, nullptr).value();
  ASSERT_TRUE(save(*saver, 60).ok());
  for (int times = 0; times < 2; ++times) {
    const Result<void> over = saver->finalize(kLong);
    ASSERT_FALSE(over.ok());
    EXPECT_EQ(over.error().code, Errc::no_space);
    EXPECT_NE(over.error().what.find("step 60 could not be written"), std::string::npos) << over.error().what;
    EXPECT_NE(over.error().what.find("free some space"), std::string::npos) << over.error().what;
  }
  EXPECT_EQ(save(*saver, 80).error().code, Errc::no_space) << "sticky, as all that went wrong behind a save";
}

// The threads of the other ranks do not wait for a rank that has no part to write.
TEST_F(Snapshots, AllRanksTryAgainIfOneHasNoSpace) {
  const Tier slow = tier("slow");
  const Tier fast = tier("fast", ",fail=write/rank-2.bin:enospc@#1");
  RankThreads::run(4, [&](Communicator& ranks) {
    const auto saver = Checkpointer::open(policy_, slow, &fast, ranks).value();
    for (const uint64_t step : {20U, 40U}) {
      const std::vector<std::byte> state = noise(kBytes, step, ranks.rank());
      const Result<CheckpointTimes> saved =
          saver->save({.step = step, .files = {{"rank-" + std::to_string(ranks.rank()) + ".bin", state}}});
      EXPECT_TRUE(saved.ok()) << saved.error().what;
    }
    const Result<void> over = saver->finalize(kLong);
    EXPECT_TRUE(over.ok()) << over.error().what;
  });
  EXPECT_EQ(steps(slow), (std::vector<uint64_t>{20, 40}));
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(newest(slow, "rank-" + std::to_string(rank) + ".bin"), noise(kBytes, 40, rank));
}

TEST_F(Snapshots, FailOnAllRanksIfOneFails) {
  const Tier slow = tier("slow", ",fail=write/rank-2.bin:eio@#1");
  RankThreads::run(4, [&](Communicator& ranks) {
    const auto saver = Checkpointer::open(policy_, slow, nullptr, ranks).value();
    const std::vector<std::byte> state = noise(kBytes, 20, ranks.rank());
    const SaveRequest request{.step = 20,
                              .files = {{"rank-" + std::to_string(ranks.rank()) + ".bin", state}}};
    EXPECT_TRUE(saver->save(request).ok());
    const Result<CheckpointTimes> next = saver->save(request);
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().code, Errc::io) << next.error().what;
  });
  EXPECT_TRUE(steps(slow).empty());
}

}  // namespace
}  // namespace penstock
