// Rows 12 to 18, 23, 24, 26 and 37 of the fault matrix: tiers that are full, small, slow or shared.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "io_backends/decorators/throttled.hpp"
#include "miniapps/checkpoint/faults/world_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

class FullTier : public FaultMatrix {
 protected:
  // The capacity option for a fast tier that holds `checkpoints` checkpoints and half of one more.
  std::string room_for(uint64_t checkpoints) const {
    return ",capacity=" + std::to_string(checkpoints * bytes_of_all() + bytes_of_all() / 2);
  }
  static constexpr const char* kNoDrain = ",fail=publish/drain.:eio@1.0";

  // Runs the fault with each policy. If `is_full`, the fast tier is full for a time; otherwise one checkpoint
  // fails. No acknowledged byte may be lost, and the training must get the error.
  void under_each_policy(const std::string& fault, bool is_full = true) {
    for (const OnFull policy : {OnFull::block, OnFull::skip, OnFull::writethrough}) {
      SCOPED_TRACE(int(policy));
      reset_tiers();
      policy_.on_full = policy;
      policy_.block_for = 200ms;
      const Outcome outcome = train({.steps = {20, 40, 60},
                                     .slow_options = kNoDrain,
                                     .fast_options = ",fail=" + fault,
                                     .stops_at_error = false,
                                     .finalize = 1ns});
      ASSERT_EQ(outcome.saves.size(), 3U);
      EXPECT_TRUE(outcome.saves[0].ok());
      EXPECT_TRUE(outcome.saves[2].ok()) << "full for a time is not for ever: " << outcome.errors_text();
      EXPECT_EQ(outcome.counts.skips, is_full && policy == OnFull::skip ? 1U : 0U);
      EXPECT_EQ(outcome.counts.written_through, is_full && policy == OnFull::writethrough ? 1U : 0U);
      if (!is_full) {
        EXPECT_ERRC(Errc::exhausted, outcome.saves[1], "cannot write");
      }
      expect_nothing_lost();
      expect_nothing_lost_without_fast_tier();
    }
  }
};

TEST_F(FullTier, Row12NoSpaceAtWrite) {
  under_each_policy("write/rank-0:enospc@#4");
}

TEST_F(FullTier, Row13NoSpaceAtSync) {
  under_each_policy("publish/rank-0:enospc@#2");
}

TEST_F(FullTier, Row14NoSpaceOnSlowMidDrain) {
  policy_.block_for = 200ms;
  const Outcome outcome = train({.steps = {20, 40},
                                 .slow_options = ",fail=write/rank-0:enospc@#2..",
                                 .fast_options = room_for(1),
                                 .stops_at_error = false,
                                 .finalize = 100ms});
  ASSERT_EQ(outcome.saves.size(), 2U);
  EXPECT_TRUE(outcome.saves[0].ok());
  ASSERT_FALSE(outcome.saves[1].ok()) << "nothing that is not durable makes room";
  EXPECT_EQ(outcome.saves[1].error().code, Errc::timed_out);
  EXPECT_NE(outcome.saves[1].error().what.find("the error of the drain"), std::string::npos);
  EXPECT_GE(outcome.counts.drain_failures, 2U) << "it tries again";
  EXPECT_EQ(restart_step(), 20U);
  expect_nothing_lost();
  EXPECT_EQ(whole_steps(slow()), std::vector<uint64_t>{20});
}

TEST_F(FullTier, Row15FastFullOfWhatIsNotDurable) {
  for (const OnFull policy : {OnFull::block, OnFull::skip, OnFull::writethrough}) {
    SCOPED_TRACE(int(policy));
    reset_tiers();
    policy_.on_full = policy;
    policy_.block_for = 200ms;
    const auto since = std::chrono::steady_clock::now();
    const Outcome outcome = train({.steps = {20, 40},
                                   .slow_options = kNoDrain,
                                   .fast_options = room_for(1),
                                   .stops_at_error = false,
                                   .finalize = 50ms});
    EXPECT_LT(std::chrono::steady_clock::now() - since, kLong) << "a bounded wait";
    ASSERT_EQ(outcome.saves.size(), 2U);
    if (policy == OnFull::block) {
      EXPECT_EQ(outcome.saves[1].error().code, Errc::timed_out);
    } else {
      ASSERT_TRUE(outcome.saves[1].ok()) << outcome.errors_text();
      EXPECT_EQ(outcome.saves[1]->skipped, policy == OnFull::skip);
      EXPECT_EQ(restart_step(), policy == OnFull::skip ? 20U : 40U);
    }
    EXPECT_EQ(whole_steps(fast()), std::vector<uint64_t>{20}) << "what is not durable stays";
    expect_nothing_lost();
  }
}

TEST_F(FullTier, Row16LargerThanTheFastTier) {
  const std::string small = ",capacity=" + std::to_string(bytes_of_all() / 2);
  const Outcome through = train({.steps = {20}, .fast_options = small});
  ASSERT_TRUE(through.all_succeeded()) << through.errors_text();
  EXPECT_EQ(through.saves[0]->reached, Reached::durable);
  policy_.fail_oversize = true;
  const Outcome refused = train({.steps = {40}, .fast_options = small});
  ASSERT_EQ(refused.saves.size(), 1U);
  EXPECT_EQ(refused.saves[0].error().code, Errc::no_space);
  expect_nothing_pending(fast_root());
  EXPECT_EQ(restart_step(), 20U);
}

TEST_F(FullTier, Row17RoomForExactlyOne) {
  const Outcome outcome = train({.steps = {20, 40, 60, 80}, .fast_options = room_for(1)});
  EXPECT_TRUE(outcome.all_succeeded()) << outcome.errors_text();
  EXPECT_EQ(outcome.counts.most_backlog_bytes, bytes_of_all()) << "one at a time";
  for (size_t i = 1; i < outcome.times.size(); ++i) {
    const CheckpointTimes& before = outcome.times[i - 1];
    ASSERT_TRUE(before.durable_s && outcome.times[i].fast_s);
    EXPECT_LE(before.save_begin_s + *before.durable_s,
              outcome.times[i].save_begin_s + *outcome.times[i].fast_s);
  }
  expect_nothing_lost();
}

// A file of another program next to the stores, which leaves a given number of bytes free.
class SpaceFiller {
 public:
  explicit SpaceFiller(const std::filesystem::path& file) : file_(file) {}
  ~SpaceFiller() { remove_file(); }
  SpaceFiller(const SpaceFiller&) = delete;
  SpaceFiller& operator=(const SpaceFiller&) = delete;

  void leave_free(uint64_t bytes) {
    const std::filesystem::space_info space = std::filesystem::space(file_.parent_path());
    std::ofstream stream(file_, std::ios::binary | std::ios::app);
    const std::vector<char> piece(1U << 18U, 'x');
    for (uint64_t left = space.available; left > bytes + piece.size(); left -= piece.size())
      stream.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    stream.close();
    ASSERT_TRUE(stream.good());
  }
  void remove_file() { std::filesystem::remove(file_); }

 private:
  const std::filesystem::path file_;
};

// No checkpoint is drained, so only the training and the file of SpaceFiller use or free space.
TEST_F(FullTier, Row18ForeignFileTakesRoom) {
  if (!own_file_system()) GTEST_SKIP() << "needs a file system of its own";
  const char* const stuck = ",fail=open/drain.:eio@1.0";
  policy_.on_full = OnFull::skip;
  SpaceFiller filler(fast_root().parent_path() / "hog");
  // The free space is measured again before each save. Else the first write of the second checkpoint would
  // fail.
  const Outcome outcome = train({.steps = {20, 40},
                                 .slow_options = stuck,
                                 .fast_options = ",fail=write/rank-0:eio@#3",
                                 .stops_at_error = false,
                                 .finalize = 1ns,
                                 .after_save = [&](uint64_t step) {
                                   if (step == 20) filler.leave_free(bytes_of_all() / 2);
                                 }});
  ASSERT_EQ(outcome.saves.size(), 2U) << outcome.errors_text();
  EXPECT_TRUE(outcome.saves[0].ok() && !outcome.saves[0]->skipped) << outcome.errors_text();
  ASSERT_TRUE(outcome.saves[1].ok()) << "written where there was no room: " << outcome.errors_text();
  EXPECT_TRUE(outcome.saves[1]->skipped);
  EXPECT_EQ(whole_steps(fast()), std::vector<uint64_t>{20});

  // Removing the file frees space, and most of that space is then reserved for another run. It must not be
  // reserved twice.
  filler.remove_file();
  const Tier tier = fast();
  const auto store = CheckpointStore::open(tier).value();
  std::unique_ptr<PendingCheckpoint> promised;
  const Outcome later = train({.steps = {60, 80, 100},
                               .slow_options = stuck,
                               .stops_at_error = false,
                               .finalize = 1ns,
                               .after_save = [&](uint64_t step) {
                                 if (step == 60) {
                                   filler.leave_free(bytes_of_all() + bytes_of_all() / 2);
                                   promised = store->stage("other", "save", bytes_of_all(), 0).value();
                                 } else {
                                   promised.reset();
                                 }
                               }});
  ASSERT_EQ(later.saves.size(), 3U) << later.errors_text();
  for (const Result<CheckpointTimes>& saved : later.saves) ASSERT_TRUE(saved.ok()) << saved.error().message();
  EXPECT_FALSE(later.saves[0]->skipped) << "the file is gone";
  EXPECT_TRUE(later.saves[1]->skipped) << "it is back, and what it leaves is promised to another run";
  EXPECT_FALSE(later.saves[2]->skipped) << "which did not take it";
  EXPECT_EQ(whole_steps(fast()), (std::vector<uint64_t>{20, 60, 100}));
  filler.remove_file();
  expect_nothing_lost();
}

TEST_F(FullTier, Row23SlowTierHangs) {
  policy_.block_for = 200ms;
  const Outcome outcome = train({.steps = {20, 40, 60},
                                 .slow_options = ",fail=write/rank-0:hang=1s@1.0",
                                 .fast_options = room_for(2),
                                 .stops_at_error = false,
                                 .finalize = 50ms});
  ASSERT_EQ(outcome.saves.size(), 3U);
  EXPECT_TRUE(outcome.saves[0].ok());
  EXPECT_TRUE(outcome.saves[1].ok()) << "the training goes on until the fast tier is full";
  ASSERT_FALSE(outcome.saves[2].ok());
  EXPECT_EQ(outcome.saves[2].error().code, Errc::timed_out);
  EXPECT_EQ(outcome.finalized.error().code, Errc::timed_out);
  EXPECT_EQ(restart_step(), 40U);
  expect_nothing_lost();
}

uint64_t peak_memory_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return uint64_t(usage.ru_maxrss);
}

TEST_F(FullTier, Row24SlowTierAHundredTimesSlower) {
  bytes_ = 100'000;
  policy_.on_full = OnFull::skip;
  TrainingSetup trained{.slow_options = ",write_limit=" + std::to_string(bytes_of_all()) + "B/s",
                        .fast_options = room_for(4),
                        .finalize = 1ns};
  trained.steps.clear();
  for (uint64_t step = 1; step <= 500; ++step) trained.steps.push_back(step);
  uint64_t early = 0;
  trained.after_save = [&](uint64_t step) {
    if (step == 50) early = peak_memory_kib();
  };
  const Outcome outcome = train(trained);
  EXPECT_EQ(outcome.saves.size(), 500U) << outcome.errors_text();
  EXPECT_GE(outcome.counts.skips, 400U);
  EXPECT_LE(outcome.counts.most_backlog_bytes, 5 * bytes_of_all()) << "bounded by the fast tier";
#ifndef PENSTOCK_ADDRESS_SANITIZER  // the sanitizer keeps freed memory for a while
  EXPECT_LE(peak_memory_kib(), early + 8192) << "memory is flat";
#endif
}

TEST_F(FullTier, Row26QuotaAndFileSizeLimit) {
  under_each_policy("write/rank-0:edquot@#4");
  under_each_policy("write/rank-0:efbig@#4", false);
}

TEST_F(FullTier, Row37TwoRunsOnOneFastTier) {
  policy_.keep_on_fast = 5;
  policy_.quota = bytes_of_all();
  ASSERT_TRUE(train({.steps = {20}, .fast_options = room_for(3)}).all_succeeded());
  policy_.run = "other";
  const Outcome other = train({.steps = {30, 50, 70}, .fast_options = room_for(3)});
  EXPECT_TRUE(other.all_succeeded()) << other.errors_text();
  EXPECT_EQ(whole_steps(fast()), std::vector<uint64_t>{20}) << "of the first run: a run evicts only its own";
  policy_.run = "default";
  EXPECT_EQ(restart_step(), 20U);
}

}  // namespace
}  // namespace penstock
