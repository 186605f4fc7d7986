#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "io_backends/core/ranks/ranks_testing.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/training_testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

TrainingRun run_rank(Communicator& ranks, BatchSource& input, std::string_view accelerator,
                     ScriptedObserver observer = {}) {
  EXPECT_TRUE(ranks.barrier().ok());
  const SteadyTime start = std::chrono::steady_clock::now();
  const auto made = make_accelerator(accelerator).value();
  StepObserver* const observers[] = {&observer};
  return run_training(input, *made, start, observers, &ranks);
}

TEST(TrainingTogether, SplitsTheWaitIntoStragglerAndBarrier) {
  std::atomic<uint64_t> last{0};
  RankThreads::run(3, [&](Communicator& ranks) {
    ScriptedInput input(1);
    const TrainingRun run =
        run_rank(ranks, input, ranks.rank() == 1 ? "emulated:step=30ms" : "emulated:step=1ms");
    ASSERT_EQ(run.steps.size(), 1U);
    const StepTimes& step = run.steps.front();
    EXPECT_GE(step.straggler_ns, 0);
    EXPECT_GE(step.barrier_ns, 0);
    EXPECT_LE(step.straggler_ns + step.barrier_ns, step.next_may_begin_ns - step.end_ns);
    EXPECT_EQ(step.straggler_ns == 0, run.steps_arrived_last == 1) << "only the last one does not wait";
    last += run.steps_arrived_last;
  });
  EXPECT_EQ(last, 1U);
}

TEST(TrainingTogether, EndsWithTheRankThatEndsFirst) {
  RankThreads::run(3, [](Communicator& ranks) {
    ScriptedInput input(ranks.rank() == 2 ? 4 : 9);
    const TrainingRun run = run_rank(ranks, input, "emulated:step=1ms");
    EXPECT_EQ(run.steps.size(), 4U) << "rank " << ranks.rank();
    EXPECT_FALSE(run.failure);
  });
}

TEST(TrainingTogether, AnErrorOnOneRankEndsAllButOnlyThatRankHasIt) {
  RankThreads::run(2, [](Communicator& ranks) {
    ScriptedInput input(3, ranks.root() ? std::nullopt : std::optional(Error{Errc::io, 0, "gone"}));
    const TrainingRun run = run_rank(ranks, input, "none");
    EXPECT_EQ(run.steps.size(), 3U);
    EXPECT_EQ(run.failure.has_value(), !ranks.root());
  });
}

TEST(TrainingTogether, AnObserverOfOneRankEndsAllRanksOneStepLater) {
  RankThreads::run(2, [](Communicator& ranks) {
    ScriptedInput input(9);
    ScriptedObserver observer;
    observer.after = [&](uint64_t step, const Batch&) { return Result<bool>(!ranks.root() || step < 2); };
    const TrainingRun run = run_rank(ranks, input, "none", observer);
    EXPECT_EQ(run.steps.size(), 3U) << "rank " << ranks.rank();
  });
}

TEST(TrainingTogether, EverySecondOfWallTimeIsInOnePart) {
  RankThreads::run(3, [](Communicator& ranks) {
    ScriptedInput input(20);
    const TrainingRun run = run_rank(ranks, input, "emulated:step=2ms,jitter=1ms");
    const TrainingFigures f = figures(run, 2ms);
    double computed = 0;
    for (const StepTimes& step : run.steps) computed += double(step.busy_ns) * 1e-9;
    EXPECT_NEAR(f.wall_s, f.input_wait_s + computed + f.straggler_s + f.barrier_s, 1e-9);
    EXPECT_GE(f.straggler_s, 0);
    EXPECT_GE(f.barrier_s, 0);
    EXPECT_LE(*f.utilization, 1);
    for (size_t i = 1; i < run.steps.size(); ++i)
      EXPECT_GE(run.steps[i].begin_ns, run.steps[i - 1].next_may_begin_ns) << "nobody goes ahead";
  });
}

TEST(TrainingTogether, TheLastRankIsCountedStepByStep) {
  std::array<uint64_t, 2> last{};
  RankThreads::run(2, [&](Communicator& ranks) {
    ScriptedInput input(10);
    const TrainingRun run = run_rank(ranks, input, ranks.root() ? "emulated:step=1ms" : "emulated:step=15ms");
    last[size_t(ranks.rank())] = run.steps_arrived_last;
  });
  EXPECT_EQ(last[0] + last[1], 10U) << "one of both, each time";
}

// A collective call in which one rank is missing would never end.
TEST(TrainingTogether, NoRankStartsCollectiveWorkThatOneCannotJoin) {
  RankThreads::run(3, [](Communicator& ranks) {
    ScriptedInput input(9);
    std::vector<uint64_t> held;
    ScriptedObserver observer;
    observer.due_after = [](uint64_t steps) { return steps % 2 == 0; };
    observer.held = [&](uint64_t steps) {
      held.push_back(steps);
      return ranks.barrier();
    };
    observer.after = [&](uint64_t step, const Batch&) -> Result<bool> {
      if (ranks.rank() == 1 && step == 3) return make_error(Errc::io, "no log");
      return true;
    };
    const TrainingRun run = run_rank(ranks, input, "none", observer);
    EXPECT_EQ(held, std::vector<uint64_t>{2}) << "rank " << ranks.rank();
    EXPECT_EQ(run.steps.size(), 4U);
    EXPECT_EQ(run.failure.has_value(), ranks.rank() == 1);
  });
}

}  // namespace
}  // namespace penstock
