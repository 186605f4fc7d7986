// Rows 1 to 11, 38 and 44 of the fault matrix: killed processes, power failures, a lost fast tier.
#include <filesystem>
#include <fstream>
#include <string>

#include "miniapps/checkpoint/faults/world_testing.hpp"

namespace penstock {
namespace {

const TrainingSetup kTwo{.steps = {20, 40}};

TEST_F(FaultMatrix, Row01KillInSnapshot) {
  policy_.by_snapshot = true;
  EXPECT_TRUE(train_is_killed({.steps = {20, 40}, .fast_options = ",fail=open/rank-0:kill@#2"}));
  expect_nothing_lost();
  EXPECT_EQ(restart_step(), 20U);
}

TEST_F(FaultMatrix, Row02KillInFastWrite) {
  EXPECT_GE(kill_at_each("write/rank-0", true, kTwo), 4U);
  EXPECT_TRUE(train_is_killed({.steps = {60}, .fast_options = ",fail=write/rank-0:kill@#2"}));
  EXPECT_EQ(restart_step(), 40U) << "the one before";
}

TEST_F(FaultMatrix, Row03KillBeforeManifest) {
  EXPECT_GE(kill_at_each("any/MANIFEST", true, kTwo), 4U);
}

TEST_F(FaultMatrix, Row04KillBeforeRename) {
  EXPECT_GE(kill_at_each("names/tmp/", true, kTwo), 4U);
}

TEST_F(FaultMatrix, Row05KillAfterRenameBeforeSync) {
  EXPECT_GE(kill_at_each("sync/ckpt", true, kTwo), 2U);
  EXPECT_GE(kill_at_each("sync/tmp", true, kTwo), 2U);
}

TEST_F(FaultMatrix, Row06KillMidDrain) {
  EXPECT_TRUE(train_is_killed({.slow_options = ",fail=write/rank-0:kill@#2"}));
  EXPECT_EQ(restart_step(), 20U) << "from the fast tier";
  const Outcome again = train({.steps = {}});
  EXPECT_TRUE(again.all_succeeded()) << again.errors_text();
  EXPECT_EQ(whole_steps(slow()), std::vector<uint64_t>{20}) << "the drain began anew";
}

TEST_F(FaultMatrix, Row07KillAfterSlowCommit) {
  policy_.keep_on_fast = 0;
  uint64_t operation = 0;
  do {
    reset_tiers();
    ASSERT_TRUE(
        train_is_killed({.fast_options = ",fail=names/ckpt/default/:kill@#" + std::to_string(++operation)}));
  } while (last_acknowledged(Reached::durable) < 20);
  ASSERT_EQ(whole_steps(fast()), std::vector<uint64_t>{20}) << "killed when it evicts";
  const Outcome again = train({.steps = {}});
  EXPECT_TRUE(again.all_succeeded()) << again.errors_text();
  EXPECT_EQ(again.counts.drained, 0U) << "no second copy";
  EXPECT_EQ(again.counts.evicted, 1U);
  EXPECT_TRUE(whole_steps(fast()).empty());
  EXPECT_EQ(restart_step(), 20U);
}

TEST_F(FaultMatrix, Row08KillInEvictAndPrune) {
  policy_.keep_on_slow = 2;
  policy_.keep_on_fast = 0;
  const TrainingSetup four{.steps = {20, 40, 60, 80}};
  EXPECT_GE(kill_at_each("names/trash", true, four), 4U);
  EXPECT_GE(kill_at_each("names/trash", false, four), 2U);
  EXPECT_EQ(whole_steps(slow()), (std::vector<uint64_t>{60, 80})) << "retention holds";
}

TEST_F(FaultMatrix, Row09KillInRecovery) {
  ASSERT_TRUE(train_is_killed({.steps = {20, 40}, .fast_options = ",fail=publish/MANIFEST:kill@#2"}));
  for (int times = 1; times <= 5; ++times)
    EXPECT_TRUE(train_is_killed({.steps = {}, .fast_options = ",fail=names/tmp/:kill@#1"}))
        << "recovery is killed again and again, each time at its first operation";
  // Kills each recovery one operation later than the one before, until a recovery ends before its kill.
  uint64_t n = 2;
  while (n < 100 &&
         train_is_killed({.steps = {}, .fast_options = ",fail=names/tmp/:kill@#" + std::to_string(n)}))
    ++n;
  EXPECT_GT(n, 2U);
  expect_nothing_lost();
  EXPECT_EQ(restart_step(), 20U);
}

TEST_F(FaultMatrix, Row11NodeLoss) {
  TrainingSetup trained{.steps = {20, 40, 60},
                        .slow_options = ",fail=publish/MANIFEST:eio@#2..",
                        .finalize = std::chrono::seconds(0)};
  trained.after_save = [&](uint64_t step) {
    for (int i = 0; step == 20 && i < 2000 && last_acknowledged(Reached::durable) < 20; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  const Outcome outcome = train(trained);
  EXPECT_EQ(outcome.saves.size(), 3U);
  wipe_fast();
  const Restart chosen = restart();
  ASSERT_NE(chosen.store, nullptr);
  EXPECT_EQ(chosen.manifest.id.step, 20U) << "the newest that was durable";
  expect_bytes(chosen);
  expect_nothing_lost_without_fast_tier();
}

TEST_F(FaultMatrix, Row38StaleLock) {
  ASSERT_TRUE(train_is_killed({.slow_options = ",fail=write/rank-0:kill@#1"}));
  bool there = false;
  for (const auto& entry : std::filesystem::directory_iterator(fast_root() / "locks")) {
    there = true;
    std::ofstream(entry.path()) << "held by process 1 of another boot\n";
  }
  EXPECT_TRUE(there) << "a lock's file outlives its holder";
  expect_nothing_lost();
}

TEST_F(FaultMatrix, Row44DrainingProcessKilled) {
  const Outcome left = train({.steps = {20, 40},
                              .slow_options = ",fail=publish/drain.:eio@1.0",
                              .finalize = std::chrono::nanoseconds(1)});
  ASSERT_EQ(left.saves.size(), 2U) << left.errors_text();
  EXPECT_TRUE(train_is_killed({.steps = {}, .slow_options = ",fail=write/rank-0:kill@#3"}));
  EXPECT_TRUE(train_is_killed({.steps = {}, .slow_options = ",fail=write/rank-0:kill@#1"}));
  expect_nothing_lost();
  EXPECT_EQ(whole_steps(slow()), (std::vector<uint64_t>{20, 40}));
}

}  // namespace
}  // namespace penstock
