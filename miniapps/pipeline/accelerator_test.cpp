#include "miniapps/pipeline/accelerator.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::unique_ptr<Accelerator> make(std::string_view text) {
  Result<std::unique_ptr<Accelerator>> made = make_accelerator(text);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().what);
  return made.ok() ? std::move(*made) : nullptr;
}

TEST(Accelerator, ParsesItsOptions) {
  EXPECT_EQ(make("none")->nominal_step(), 0ns);
  EXPECT_EQ(make("emulated:step=250us")->nominal_step(), 250us);
  for (const char* wrong :
       {"", "gpu", "emulted:step=1ms", "none:step=1ms", "emulated", "emulated:", "emulated:step=0",
        "emulated:step=10", "emulated:stp=10ms", "emulated:step=10ms,jitter=1", "emulated:step=25h",
        "emulated:step=10ms,jitter=10ms", "emulated:step=10ms,jitter=1ms,stdev=1ms",
        "emulated:step=10ms,stdev=1ms,distribution=even", "emulated:step=10ms,distribution=poisson",
        "emulated:step=10ms,burn=1", "emulated:step=10ms,burn=cpu:", "emulated:step=10ms,burn=cpu:0",
        "emulated:step=10ms,burn=cpu:1x"}) {
    const Result<std::unique_ptr<Accelerator>> made = make_accelerator(wrong);
    ASSERT_FALSE(made.ok()) << wrong;
    EXPECT_EQ(made.error().code, Errc::invalid_argument) << wrong;
  }
  EXPECT_NE(make_accelerator("emulted:step=1ms").error().what.find("emulated"), std::string::npos);
}

TEST(Accelerator, NoneIsNeverBusy) {
  const std::unique_ptr<Accelerator> none = make("none");
  Batch batch;
  const Result<Step> step = none->step(batch);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->begin, step->end);
  EXPECT_EQ(step->begin, step->deadline);
}

TEST(Accelerator, StepsFollowEachOtherWithoutAGapWhenTheBatchWasReady) {
  const std::unique_ptr<Accelerator> accelerator = make("emulated:step=2ms");
  Batch batch;
  batch.filled_at = Clock::now();
  const Result<Step> first = accelerator->step(batch);
  ASSERT_TRUE(first.ok());
  SteadyTime due = first->deadline;
  for (int i = 0; i < 20; ++i) {
    const Result<Step> step = accelerator->step(batch);
    ASSERT_TRUE(step.ok());
    EXPECT_EQ(step->begin, due) << "no drift, however late this thread woke up";
    EXPECT_EQ(step->deadline, due + 2ms);
    EXPECT_GE(step->end, step->deadline) << "a step is never cut short";
    due = step->deadline;
  }
}

TEST(Accelerator, ABatchThatComesLateBeginsLate) {
  const std::unique_ptr<Accelerator> accelerator = make("emulated:step=1ms");
  Batch batch;
  batch.filled_at = Clock::now();
  const Result<Step> first = accelerator->step(batch);
  ASSERT_TRUE(first.ok());
  batch.filled_at = first->deadline + 1ns;
  const SteadyTime handed = Clock::now();
  const Result<Step> second = accelerator->step(batch);
  ASSERT_TRUE(second.ok());
  EXPECT_GE(second->begin, handed);
}

TEST(Accelerator, WaitsWithoutUsingAProcessor) {
  const std::unique_ptr<Accelerator> accelerator = make("emulated:step=100ms");
  Batch batch;
  batch.filled_at = Clock::now();
  const double before = thread_seconds();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(accelerator->step(batch).ok());
  EXPECT_LT(thread_seconds() - before, 0.03) << "of 0.3 s of waiting";
}

TEST(Accelerator, OccupiesTheRequestedProcessors) {
  const std::unique_ptr<Accelerator> accelerator = make("emulated:step=100ms,burn=cpu:1");
  Batch batch;
  batch.filled_at = Clock::now();
  const double before = thread_seconds();
  for (int i = 0; i < 3; ++i) {
    const Result<Step> step = accelerator->step(batch);
    ASSERT_TRUE(step.ok());
    EXPECT_GE(step->end, step->deadline);
  }
  EXPECT_GT(thread_seconds() - before, 0.002) << "a sleeper's are 60 us";
  EXPECT_TRUE(make("emulated:step=1ms,burn=cpu:2.5")->step(batch).ok());
}

TEST(Accelerator, JitterIsDrawnBySeedAndStaysWithinItsBounds) {
  const auto steps = [](uint64_t seed) {
    const auto accelerator = make_accelerator("emulated:step=400us,jitter=300us", {.seed = seed}).value();
    EXPECT_EQ(accelerator->nominal_step(), 400us);
    Batch batch;
    batch.filled_at = Clock::now();
    std::vector<std::chrono::nanoseconds> all;
    for (int i = 0; i < 50; ++i) {
      const Step step = accelerator->step(batch).value();
      all.push_back(step.deadline - step.begin);
    }
    return all;
  };
  const auto first = steps(1);
  EXPECT_EQ(steps(1), first);
  EXPECT_NE(steps(2), first);
  EXPECT_GE(*std::min_element(first.begin(), first.end()), 100us);
  EXPECT_LE(*std::max_element(first.begin(), first.end()), 700us);
  EXPECT_LT(*std::min_element(first.begin(), first.end()), 250us);
  EXPECT_GT(*std::max_element(first.begin(), first.end()), 550us);
}

TEST(Accelerator, StepTimesHaveTheMeanAndDeviationOfTheirDistribution) {
  for (const char* distribution : {"normal", "gamma"})
    for (const double deviation_us : {10.0, 50.0}) {
      const auto accelerator = make_accelerator(fmt::format("emulated:step=50us,stdev={}us,distribution={}",
                                                            deviation_us, distribution),
                                                {.seed = 4})
                                   .value();
      Batch batch;
      batch.filled_at = Clock::now();
      constexpr int kSteps = 1000;
      double sum = 0;
      double squares = 0;
      for (int i = 0; i < kSteps; ++i) {
        const Step step = accelerator->step(batch).value();
        const double us = double((step.deadline - step.begin).count()) * 1e-3;
        EXPECT_GT(us, 0);
        sum += us;
        squares += us * us;
      }
      // A normal distribution that is folded at 0 is as its formula says: mean 58.3 and deviation 40 for
      // 50, 50.
      const bool is_folded = deviation_us == 50 && distribution == std::string("normal");
      const double mean = is_folded ? 58.3 : 50;
      const double deviation = is_folded ? 40 : deviation_us;
      EXPECT_NEAR(sum / kSteps, mean, 5) << distribution << deviation_us;
      EXPECT_NEAR(std::sqrt(squares / kSteps - sum * sum / kSteps / kSteps), deviation, deviation / 8)
          << distribution << deviation_us;
    }
}

TEST(Accelerator, StepTimesStayWithinTheirBounds) {
  for (const char* text : {"emulated:step=1ns,stdev=1h,distribution=gamma",
                           "emulated:step=10ms,stdev=100ms,distribution=poisson"}) {
    const auto accelerator = make_accelerator(text, {.seed = 4}).value();
    Batch batch;
    batch.filled_at = Clock::now();
    const Step step = accelerator->step(batch).value();
    EXPECT_EQ(step.deadline - step.begin, 1ns) << text;
  }
  simulate_interrupt(SIGINT);  // ends a long step at once; a short one does not notice it
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto accelerator = make_accelerator("emulated:step=24h,stdev=2000000h", {.seed = seed}).value();
    Batch batch;
    batch.filled_at = Clock::now();
    EXPECT_FALSE(accelerator->step(batch).ok()) << seed;
  }
  simulate_interrupt(0);
}

TEST(Accelerator, SeveralDrawTheirOwnJitterAndEndWithTheSlowest) {
  const auto group = [](uint64_t first, uint64_t count) {
    return make_accelerator("emulated:step=300us,jitter=200us",
                            {.seed = 3, .count = count, .first_number = first, .total_count = 5})
        .value();
  };
  const auto all = group(0, 5);
  std::vector<std::unique_ptr<Accelerator>> single;
  for (uint64_t i = 0; i < 5; ++i) single.push_back(group(i, 1));
  Batch batch;
  for (int i = 0; i < 10; ++i) {
    std::chrono::nanoseconds longest{0};
    std::chrono::nanoseconds sum{0};
    for (const auto& one : single) {
      const Step step = one->step(batch).value();
      EXPECT_EQ(step.busy, step.deadline - step.begin);
      longest = std::max(longest, step.busy);
      sum += step.busy;
    }
    const Step step = all->step(batch).value();
    EXPECT_EQ(step.deadline - step.begin, longest);
    EXPECT_EQ(step.busy, sum / 5);
  }
}

TEST(Accelerator, BeginsNoSoonerThanAllRanksHaveEnded) {
  const std::unique_ptr<Accelerator> accelerator = make("emulated:step=1ms");
  Batch batch;
  batch.filled_at = Clock::now();
  const Step first = accelerator->step(batch).value();
  const SteadyTime together = first.deadline + 3ms;
  accelerator->set_step_end(together);
  EXPECT_EQ(accelerator->step(batch).value().begin, together);
}

TEST(Accelerator, StopsWaitingAndBurningWhenInterrupted) {
  for (const char* text : {"emulated:step=10h", "emulated:step=10h,burn=cpu:2"}) {
    const std::unique_ptr<Accelerator> accelerator = make(text);
    simulate_interrupt(2);
    Batch batch;
    const Result<Step> step = accelerator->step(batch);
    simulate_interrupt(0);
    ASSERT_FALSE(step.ok()) << text;
    EXPECT_EQ(step.error().code, Errc::interrupted) << text;
  }
}

}  // namespace
}  // namespace penstock
