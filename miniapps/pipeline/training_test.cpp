#include "miniapps/pipeline/training.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace penstock {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMs = 1'000'000;

StepTimes step(std::uint64_t epoch, std::int64_t handed_ms, std::int64_t begin_ms, std::int64_t deadline_ms,
               std::int64_t end_ms) {
  return {.epoch = epoch,
          .payload_bytes = 1000,
          .handed_ns = handed_ms * kMs,
          .begin_ns = begin_ms * kMs,
          .deadline_ns = deadline_ms * kMs,
          .end_ns = end_ms * kMs};
}

TEST(Figures, WallIsWaitingAndStepsAndTheLastOvershoot) {
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

TEST(Figures, UtilizationLeavesTheFirstStepOutOnBothSides) {
  TrainingRun run;
  run.steps = {step(0, 9000, 9000, 9100, 9100), step(0, 9100, 9100, 9200, 9200),
               step(0, 9300, 9300, 9400, 9400)};
  const TrainingFigures f = figures(run, 100ms);
  ASSERT_TRUE(f.utilization);
  EXPECT_NEAR(*f.utilization, 2 * 0.1 / 0.3, 1e-12);
}

TEST(Figures, DlioAveragesItsEpochs) {
  TrainingRun run;
  run.steps = {step(0, 50, 50, 150, 150),   step(0, 150, 150, 250, 250), step(0, 350, 350, 450, 450),
               step(1, 450, 450, 550, 550), step(1, 550, 550, 650, 650), step(2, 700, 700, 800, 800)};
  const TrainingFigures f = figures(run, 100ms);
  ASSERT_TRUE(f.utilization_dlio);
  EXPECT_NEAR(*f.utilization_dlio, (200.0 / 300.0 + 100.0 / 100.0 + 0.0) / 3, 1e-12);
}

TEST(Figures, DlioCountsAnOvershootAsComputing) {
  TrainingRun run;
  run.steps = {step(0, 0, 0, 100, 100), step(0, 100, 100, 200, 300)};
  const TrainingFigures f = figures(run, 100ms);
  EXPECT_DOUBLE_EQ(*f.utilization_dlio, 1.0) << "it takes the client's word for how long computing took";
  EXPECT_DOUBLE_EQ(*f.utilization, 0.5) << "we do not";
  EXPECT_DOUBLE_EQ(*f.step_overshoot, 0.5);
}

TEST(Figures, SayNothingOfAnAcceleratorThatIsNotThere) {
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

TEST(Figures, OfARunThatNeverSteppedAreZero) {
  const TrainingFigures f = figures({}, 10ms);
  EXPECT_EQ(f.wall_s, 0);
  EXPECT_FALSE(f.utilization);
}

TEST(InputAlone, IsScaledFromAShorterRun) {
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

// Batches out of nothing, and an end or an error after some.
class ScriptedInput final : public Stage<const Batch*> {
 public:
  ScriptedInput(int batches, std::optional<Error> then) : left_(batches), then_(std::move(then)) {
    batch_.index = {1, 2, 3};
    batch_.length = {10, 20, 30};
  }
  Result<const Batch*> next() override {
    if (left_-- > 0) return static_cast<const Batch*>(&batch_);
    if (then_) return *then_;
    return static_cast<const Batch*>(nullptr);
  }
  std::vector<StageTally> times() const override { return {}; }

 private:
  int left_;
  std::optional<Error> then_;
  Batch batch_;
};

TEST(RunTraining, CountsStepsAndBytesToTheEnd) {
  ScriptedInput input(5, std::nullopt);
  Result<std::unique_ptr<Accelerator>> none = make_accelerator("none");
  std::vector<std::uint64_t> seen;
  const TrainingRun run = run_training(input, **none, std::chrono::steady_clock::now(),
                                       [&](std::uint64_t number, const Batch& batch) -> Result<bool> {
                                         EXPECT_EQ(batch.samples(), 3U);
                                         seen.push_back(number);
                                         return true;
                                       });
  EXPECT_FALSE(run.failure);
  EXPECT_EQ(run.steps.size(), 5U);
  EXPECT_EQ(run.steps.front().payload_bytes, 60U);
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(RunTraining, KeepsWhatWasMeasuredBeforeAnError) {
  ScriptedInput input(2, make_error(Errc::io, "gone"));
  Result<std::unique_ptr<Accelerator>> none = make_accelerator("none");
  const TrainingRun run = run_training(input, **none, std::chrono::steady_clock::now(), {});
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->what, "gone");
  EXPECT_EQ(run.steps.size(), 2U);
}

TEST(RunTraining, EndsWhenItsWatcherFails) {
  ScriptedInput input(9, std::nullopt);
  Result<std::unique_ptr<Accelerator>> none = make_accelerator("none");
  const TrainingRun run = run_training(
      input, **none, std::chrono::steady_clock::now(),
      [](std::uint64_t, const Batch&) -> Result<bool> { return make_error(Errc::no_space, "full"); });
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.steps.size(), 1U);
}

TEST(RunTraining, EndsWhenItsWatcherHasEnough) {
  ScriptedInput input(9, std::nullopt);
  Result<std::unique_ptr<Accelerator>> none = make_accelerator("none");
  const TrainingRun run =
      run_training(input, **none, std::chrono::steady_clock::now(),
                   [](std::uint64_t step, const Batch&) -> Result<bool> { return step < 3; });
  EXPECT_FALSE(run.failure);
  EXPECT_EQ(run.steps.size(), 4U);
}

}  // namespace
}  // namespace penstock
