#include "miniapps/checkpoint/saving_figures.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock {
namespace {

CheckpointTimes burst(double save_begin_s, double fast_s, double durable_s) {
  return {.save_begin_s = save_begin_s,
          .block_s = fast_s,
          .fast_s = fast_s,
          .durable_s = durable_s,
          .drain_begin_s = save_begin_s + fast_s,
          .drain_s = durable_s - fast_s};
}

TEST(LostWork, CountsFromTheStartIfNothingWasSaved) {
  const LostWork lost = lost_work({}, 10, Failure::process, false);
  EXPECT_DOUBLE_EQ(lost.mean_s, 5);
  EXPECT_DOUBLE_EQ(lost.most_s, 10);
}

TEST(LostWork, CountsFromTheNewestSurvivingCheckpoint) {
  const std::vector<CheckpointTimes> times = {
      burst(4, 1, 3)};  // on the fast tier at 5, durable at 7; contains the work up to 4
  // Process failure: from 0 to 5 the lost work grows from 0 to 5, then until 10 from 1 to 6.
  const LostWork process = lost_work(times, 10, Failure::process, false);
  EXPECT_DOUBLE_EQ(process.mean_s, (12.5 + 17.5) / 10);
  EXPECT_DOUBLE_EQ(process.most_s, 6);
  const LostWork node = lost_work(times, 10, Failure::node, false);
  EXPECT_DOUBLE_EQ(node.mean_s, (24.5 + (3 + 6) / 2.0 * 3) / 10);
  EXPECT_DOUBLE_EQ(node.most_s, 7);
  EXPECT_DOUBLE_EQ(lost_work(times, 10, Failure::power, false).mean_s, process.mean_s);
  EXPECT_DOUBLE_EQ(lost_work(times, 10, Failure::power, true).mean_s, node.mean_s);
}

TEST(LostWork, CountsTheUnsavedWorkOfEarlierProcesses) {
  // The run resumed from the fast tier; 4.5 s of its work were in no durable checkpoint.
  const LostWork lost = lost_work({}, 3, Failure::node, false, 4.5);
  EXPECT_DOUBLE_EQ(lost.mean_s, 4.5 + 1.5);
  EXPECT_DOUBLE_EQ(lost.most_s, 7.5);
  // A save at 1 is durable at 2. Until then the lost work grows from 4.5 to 6.5, then from 1 to 2.
  const LostWork saved = lost_work(std::vector{burst(1, 0.5, 1)}, 3, Failure::node, false, 4.5);
  EXPECT_DOUBLE_EQ(saved.mean_s, (5.5 * 2 + 1.5) / 3);
  EXPECT_DOUBLE_EQ(saved.most_s, 6.5);
}

TEST(LostWork, OlderCheckpointsThatBecomeSafeLaterChangeNothing) {
  const std::vector<CheckpointTimes> times = {burst(4, 1, 1), burst(2, 1, 7)};
  EXPECT_DOUBLE_EQ(lost_work(times, 10, Failure::node, false).mean_s,
                   lost_work(std::vector{burst(4, 1, 1)}, 10, Failure::node, false).mean_s);
}

TEST(LostWork, IgnoresSkippedSaves) {
  const std::vector<CheckpointTimes> times = {{.save_begin_s = 5, .skipped = true}};
  EXPECT_DOUBLE_EQ(lost_work(times, 10, Failure::process, false).most_s, 10);
}

TEST(DrainOverlap, IsTheShareOfDrainTimeInWhichNoSaveBlocks) {
  // A drain from 1 to 11; the second save blocks the training from 6 to 8.
  std::vector<CheckpointTimes> times = {burst(0, 1, 11)};
  EXPECT_DOUBLE_EQ(*drain_overlap(times), 1);
  times.push_back({.save_begin_s = 6, .block_s = 2, .fast_s = 2.0});
  EXPECT_DOUBLE_EQ(*drain_overlap(times), 0.8);
  EXPECT_FALSE(
      drain_overlap(std::vector<CheckpointTimes>{{.save_begin_s = 6, .block_s = 2, .durable_s = 2.0}}));
}

TEST(StepInflation, ComparesStepsInADrainWithOthers) {
  const std::vector<CheckpointTimes> times = {burst(9, 1, 7)};  // drains from 10 to 16
  std::vector<Period> steps;
  for (int i = 0; i < 10; ++i) steps.push_back({i + 0.0, i + 0.8});
  for (int i = 10; i < 16; ++i) steps.push_back({i + 0.0, i + 0.88});
  EXPECT_NEAR(*step_inflation(steps, times), 1.1, 1e-9);
  EXPECT_FALSE(step_inflation(std::span(steps).first(12), times));
}

TEST(StepInflation, ComparesEachDrainWithTheGapsNextToIt) {
  // The machine gets slower all the time. During the first two drains, steps take a tenth longer than in the
  // gaps next to them.
  std::vector<CheckpointTimes> times;
  std::vector<Period> steps;
  for (int gap = 0; gap < 4; ++gap) {
    const double begin = 100.0 * gap;
    const double length = 1.0 + gap;
    for (int i = 0; i < 5; ++i) steps.push_back({begin + 8 * i, begin + 8 * i + length});
    if (gap == 3) break;
    times.push_back(burst(begin + 40, 0, 40));
    const double during = (length + 0.5) * (gap < 2 ? 1.1 : 1.5);
    for (int i = 0; i < 5; ++i) steps.push_back({begin + 41 + 7 * i, begin + 41 + 7 * i + during});
  }
  EXPECT_NEAR(*step_inflation(steps, times), 1.1, 1e-9);
}

TEST(StepInflation, IgnoresStepsAtTheEdgeOfADrain) {
  const std::vector<CheckpointTimes> times = {burst(9, 1, 5), burst(14, 0, 3)};  // one drain, from 10 to 17
  std::vector<Period> steps;
  for (int i = 0; i < 9; ++i) steps.push_back({i + 0.0, i + 1.0});
  steps.push_back({9.0, 10.1});
  for (int i = 0; i < 3; ++i) steps.push_back({10.1 + 2 * i, 12.1 + 2 * i});
  steps.push_back({16.9, 30});
  EXPECT_NEAR(*step_inflation(steps, times), 2, 1e-9);
}

TEST(CheckpointInterval, YoungAndDaly) {
  EXPECT_DOUBLE_EQ(young_interval_s(2, 3600), 120);
  // Daly's formula: the correction is small if the cost is small.
  EXPECT_NEAR(daly_interval_s(2, 3600), 120 * (1 + std::sqrt(2 / 7200.0) / 3 + 2 / 7200.0 / 9) - 2, 1e-9);
  EXPECT_DOUBLE_EQ(daly_interval_s(300, 100), 100);
}

}  // namespace
}  // namespace penstock
