#include "miniapps/pipeline/training.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/training_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kMs = 1'000'000;

StepTimes step(uint64_t epoch, int64_t handed_ms, int64_t begin_ms, int64_t deadline_ms, int64_t end_ms) {
  return {.epoch = epoch,
          .payload_bytes = 1000,
          .handed_ns = handed_ms * kMs,
          .begin_ns = begin_ms * kMs,
          .deadline_ns = deadline_ms * kMs,
          .end_ns = end_ms * kMs,
          .nominal_ns = (deadline_ms - begin_ms) * kMs,
          .busy_ns = (deadline_ms - begin_ms) * kMs,
          .next_may_begin_ns = deadline_ms * kMs};
}

TEST(Figures, WallTimeIsWaitsAndStepsAndTheLastOvershoot) {
  TrainingRun run;
  run.batch = 8;
  run.steps = {step(0, 50, 50, 150, 151), step(0, 151, 150, 250, 250), step(0, 290, 290, 390, 393)};
  const TrainingFigures f = figures(run, 100ms);
  EXPECT_DOUBLE_EQ(f.wall_s, 0.393);
  EXPECT_DOUBLE_EQ(f.first_batch_s, 0.050);
  EXPECT_DOUBLE_EQ(f.input_wait_s, 0.050 + 0.0 + 0.040);
  EXPECT_NEAR(f.wall_s, f.input_wait_s + 3 * 0.1 + 0.003, 1e-12);
  EXPECT_EQ(f.samples, 24);
  EXPECT_EQ(f.payload_bytes, 3000);
}

TEST(Figures, UtilizationExcludesTheFirstStep) {
  TrainingRun run;
  run.steps = {step(0, 9000, 9000, 9100, 9100), step(0, 9100, 9100, 9200, 9200),
               step(0, 9300, 9300, 9400, 9400)};
  const TrainingFigures f = figures(run, 100ms);
  ASSERT_TRUE(f.utilization);
  EXPECT_NEAR(*f.utilization, 2 * 0.1 / 0.3, 1e-12);
}

TEST(Figures, UtilizationIsAtMostOneIfTheFirstStepEndsLate) {
  TrainingRun run;
  run.steps = {step(0, 0, 0, 100, 104), step(0, 104, 100, 200, 200), step(0, 200, 200, 300, 300)};
  const TrainingFigures f = figures(run, 100ms);
  ASSERT_TRUE(f.utilization);
  EXPECT_DOUBLE_EQ(*f.utilization, 1.0);
}

TEST(Figures, TimeBetweenStepsIsNeitherWaitingNorComputing) {
  TrainingRun run;
  run.steps = {step(0, 50, 50, 150, 150), step(0, 150, 150, 250, 250), step(0, 1260, 1260, 1360, 1360)};
  run.steps[2].observer_ns = 1000 * kMs;
  run.observer_after_ns = 500 * kMs;
  const TrainingFigures f = figures(run, 100ms);
  EXPECT_DOUBLE_EQ(f.wall_s, 1.360 + 0.5);
  EXPECT_NEAR(f.observer_s, 1.5, 1e-12);
  EXPECT_NEAR(f.input_wait_s, 0.050 + 0.010, 1e-12);
  EXPECT_NEAR(f.wall_s, f.input_wait_s + 3 * 0.1 + f.barrier_s + f.observer_s, 1e-12);
  EXPECT_NEAR(f.barrier_s, 0, 1e-12);
  ASSERT_TRUE(f.utilization && f.utilization_dlio);
  EXPECT_NEAR(*f.utilization, 0.2 / 0.210, 1e-12);
  EXPECT_NEAR(*f.utilization_dlio, 0.2 / 0.210, 1e-12);
}

TEST(Figures, DlioAveragesItsEpochs) {
  TrainingRun run;
  run.steps = {step(0, 50, 50, 150, 150),   step(0, 150, 150, 250, 250), step(0, 350, 350, 450, 450),
               step(1, 450, 450, 550, 550), step(1, 550, 550, 650, 650), step(2, 700, 700, 800, 800)};
  const TrainingFigures f = figures(run, 100ms);
  ASSERT_TRUE(f.utilization_dlio);
  EXPECT_NEAR(*f.utilization_dlio, (200.0 / 300.0 + 100.0 / 100.0) / 2, 1e-12)
      << "an epoch of one step has no AU";
}

TEST(Figures, DlioExcludesTheStepsThatTheWorkloadNames) {
  TrainingRun run;
  run.steps = {step(0, 50, 50, 150, 150),   step(0, 150, 150, 250, 250), step(0, 350, 350, 450, 450),
               step(1, 500, 500, 600, 600), step(1, 600, 600, 700, 700), step(1, 900, 900, 1000, 1000)};
  EXPECT_NEAR(*figures(run, 100ms, {.first = 0}).utilization_dlio, (300.0 / 450 + 300.0 / 550) / 2, 1e-12);
  EXPECT_NEAR(*figures(run, 100ms, {.first = 0, .last = 2}).utilization_dlio, (100.0 / 150 + 100.0 / 150) / 2,
              1e-12);
  EXPECT_NEAR(*figures(run, 100ms, {.first = 2}).utilization_dlio, (100.0 / 200 + 100.0 / 300) / 2, 1e-12);
  EXPECT_FALSE(figures(run, 100ms, {.first = 2, .last = 1}).utilization_dlio) << "no step is left";
  EXPECT_FALSE(figures(run, 100ms, {.first = 0, .last = UINT64_MAX}).utilization_dlio);
}

TEST(Figures, DlioCountsAnOvershootAsComputing) {
  TrainingRun run;
  run.steps = {step(0, 0, 0, 100, 100), step(0, 100, 100, 200, 300)};
  const TrainingFigures f = figures(run, 100ms);
  EXPECT_DOUBLE_EQ(*f.utilization_dlio, 1.0) << "it takes the client's word for how long computing took";
  EXPECT_DOUBLE_EQ(*f.utilization, 0.5) << "we do not";
  EXPECT_DOUBLE_EQ(*f.step_overshoot, 0.5);
}

TEST(Figures, HaveNoUtilizationWithoutAnAccelerator) {
  TrainingRun run;
  run.batch = 4;
  run.steps = {step(0, 10, 10, 10, 10), step(0, 30, 30, 30, 30)};
  const TrainingFigures f = figures(run, 0ns);
  EXPECT_FALSE(f.utilization);
  EXPECT_FALSE(f.utilization_dlio);
  EXPECT_FALSE(f.step_overshoot);
  EXPECT_DOUBLE_EQ(f.input_wait_s, 0.030);
  EXPECT_DOUBLE_EQ(f.wall_s, 0.030);
}

TEST(Figures, HaveNoOvershootWithoutANominalStepTime) {
  TrainingRun run;
  run.steps = {step(0, 50, 50, 150, 150), step(0, 150, 150, 280, 280), step(0, 300, 320, 400, 400)};
  const TrainingFigures f = figures(run, 0ns);
  ASSERT_TRUE(f.utilization);
  EXPECT_NEAR(*f.utilization, (130.0 + 80.0) / 250.0, 1e-12);
  ASSERT_TRUE(f.utilization_dlio);
  EXPECT_NEAR(*f.utilization_dlio, (130.0 + 100.0) / 250.0, 1e-12);
  EXPECT_FALSE(f.step_overshoot);
  EXPECT_DOUBLE_EQ(f.input_wait_s, 0.050 + 0.0 + 0.040);
  EXPECT_DOUBLE_EQ(f.wall_s, 0.400);
}

TEST(Figures, AreZeroForARunWithoutSteps) {
  const TrainingFigures f = figures({}, 10ms);
  EXPECT_EQ(f.wall_s, 0);
  EXPECT_FALSE(f.utilization);
}

TEST(InputAlone, IsCalculatedFromAShorterRun) {
  TrainingRun alone;
  alone.steps = {step(0, 100, 100, 100, 100), step(0, 130, 130, 130, 130), step(0, 160, 160, 160, 160)};
  EXPECT_NEAR(input_alone_s(alone, 3), 0.160, 1e-12);
  EXPECT_NEAR(input_alone_s(alone, 101), 0.100 + 100 * 0.030, 1e-12);
  EXPECT_EQ(input_alone_s({}, 5), 0);
}

TEST(InputOverlap, IsTheHiddenShare) {
  EXPECT_DOUBLE_EQ(input_overlap(0.0, 10.0), 1.0);
  EXPECT_DOUBLE_EQ(input_overlap(10.0, 10.0), 0.0);
  EXPECT_DOUBLE_EQ(input_overlap(2.5, 10.0), 0.75);
  EXPECT_DOUBLE_EQ(input_overlap(1.0, 0.0), 0.0);
}

TEST(RunTraining, CountsStepsAndBytesToTheEnd) {
  ScriptedInput input(5);
  std::vector<uint64_t> seen;
  ScriptedObserver observer;
  observer.after = [&](uint64_t number, const Batch& batch) -> Result<bool> {
    EXPECT_EQ(batch.samples(), 3U);
    seen.push_back(number);
    return true;
  };
  const TrainingRun run = run_observed(input, *no_accelerator(), observer);
  EXPECT_FALSE(run.failure);
  EXPECT_EQ(run.steps.size(), 5U);
  EXPECT_EQ(run.steps.front().payload_bytes, 60U);
  EXPECT_EQ(seen, (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

TEST(RunTraining, KeepsWhatWasMeasuredBeforeAnError) {
  ScriptedInput input(2, make_error(Errc::io, "gone"));
  const TrainingRun run = run_training(input, *no_accelerator(), std::chrono::steady_clock::now(), {});
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->what, "gone");
  EXPECT_EQ(run.steps.size(), 2U);
}

TEST(RunTraining, EndsWhenItsObserverFails) {
  ScriptedInput input(9);
  ScriptedObserver observer;
  observer.after = [](uint64_t, const Batch&) -> Result<bool> { return make_error(Errc::no_space, "full"); };
  const TrainingRun run = run_observed(input, *no_accelerator(), observer);
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.steps.size(), 1U);
}

TEST(RunTraining, EndsAfterAllObserversHaveSeenTheStep) {
  ScriptedInput input(9);
  ScriptedObserver first;
  first.after = [](uint64_t step, const Batch&) -> Result<bool> { return step < 3; };
  uint64_t seen = 0;
  ScriptedObserver second;
  second.after = [&](uint64_t, const Batch&) -> Result<bool> { return ++seen > 0; };
  StepObserver* const observers[] = {&first, &second};
  const TrainingRun run = run_training(input, *no_accelerator(), std::chrono::steady_clock::now(), observers);
  EXPECT_FALSE(run.failure);
  EXPECT_EQ(run.steps.size(), 4U);
  EXPECT_EQ(seen, 4U);
}

TEST(BetweenSteps, ObserversAreCalledBeforeEachStepAndAfterTheLast) {
  ScriptedInput input(3);
  const auto accelerator = make_accelerator("emulated:step=1ms").value();
  std::vector<std::pair<uint64_t, bool>> calls;
  ScriptedObserver observer;
  observer.before = [&](uint64_t step, const Batch* next) -> Result<bool> {
    calls.emplace_back(step, next != nullptr);
    if (step != 1 && next != nullptr) return false;
    std::this_thread::sleep_for(3ms);
    return true;
  };
  const TrainingRun run = run_observed(input, *accelerator, observer);
  EXPECT_FALSE(run.failure);
  EXPECT_EQ(calls, (std::vector<std::pair<uint64_t, bool>>{{0, true}, {1, true}, {2, true}, {3, false}}));
  ASSERT_EQ(run.steps.size(), 3U);
  EXPECT_EQ(run.steps[0].observer_ns, 0);
  EXPECT_GE(run.steps[1].observer_ns, 3 * kMs);
  EXPECT_GE(run.steps[1].begin_ns, run.steps[0].end_ns + 3 * kMs) << "no step begins before it is over";
  EXPECT_EQ(run.steps[2].observer_ns, 0);
  EXPECT_GE(run.observer_after_ns, 3 * kMs);
}

TEST(BetweenSteps, AnErrorEndsTheRun) {
  ScriptedInput input(3);
  ScriptedObserver observer;
  observer.before = [](uint64_t step, const Batch*) -> Result<bool> {
    if (step == 2) return make_error(Errc::io, "no validation");
    return false;
  };
  const TrainingRun run = run_observed(input, *no_accelerator(), observer);
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->code, Errc::io);
  EXPECT_EQ(run.steps.size(), 2U);
}

TEST(Collectives, RunWhenDueAndCountForThePreviousStep) {
  ScriptedInput input(4);
  const auto accelerator = make_accelerator("emulated:step=1ms").value();
  std::vector<uint64_t> held;
  ScriptedObserver observer;
  observer.due_after = [](uint64_t steps) { return steps % 2 == 0; };
  observer.held = [&](uint64_t steps) -> Result<void> {
    held.push_back(steps);
    std::this_thread::sleep_for(3ms);
    return success();
  };
  const TrainingRun run = run_observed(input, *accelerator, observer);
  EXPECT_FALSE(run.failure);
  EXPECT_EQ(held, (std::vector<uint64_t>{2, 4}));
  ASSERT_EQ(run.steps.size(), 4U);
  EXPECT_EQ(run.steps[1].observer_ns, 0);
  EXPECT_GE(run.steps[2].observer_ns, 3 * kMs);
  EXPECT_EQ(run.steps[2].collective_ns, run.steps[2].observer_ns);
  EXPECT_GE(run.steps[2].begin_ns, run.steps[1].end_ns + 3 * kMs) << "no step begins before it is over";
  EXPECT_EQ(run.steps[3].observer_ns, 0);
  EXPECT_GE(run.observer_after_ns, 3 * kMs);
}

TEST(Collectives, AnErrorEndsTheRun) {
  ScriptedInput input(4);
  ScriptedObserver observer;
  observer.due_after = [](uint64_t steps) { return steps == 3; };
  observer.held = [](uint64_t) -> Result<void> { return make_error(Errc::no_space, "full"); };
  const TrainingRun run = run_observed(input, *no_accelerator(), observer);
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->code, Errc::no_space);
  EXPECT_EQ(run.steps.size(), 3U);
}

}  // namespace
}  // namespace penstock
