#include "miniapps/train/view/waterfall.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"
#include "results/report/page_testing.hpp"

namespace penstock::report {
namespace {

Record training_record(int threads, int prefetch, double busy) {
  Record record = train_cell(prefetch, 1);
  record.id = std::to_string(threads) + "-" + std::to_string(prefetch);
  record.parameters["threads"] = threads;
  record.metrics["accelerator_utilization"] = {"1", Better::higher, "run", {busy}};
  return record;
}

TEST(Waterfall, FallsFromTheWallToWhatTheAcceleratorComputed) {
  Record record = training_record(4, 4, 0.5);
  const auto put = [&](const char* name, std::vector<double> samples) {
    record.metrics[name] = {"s", Better::lower, "run", std::move(samples)};
  };
  put("wall_s", {20});
  put("step_s", {5, 5, 5});  // jitter: longer than the mean time of the accelerators
  put("stage_busy_s.accelerator", {23.6});
  record.parameters["ranks"] = 2;
  put("lost_s.decode", {4});
  put("lost_s.read", {2});
  put("lost_s.straggler", {1});
  put("lost_s.queue", {0});
  put("checkpoint_block_s", {0.5, 0.7});
  const Waterfall fall = waterfall_of(record);
  EXPECT_DOUBLE_EQ(fall.computing_s, 11.8);
  ASSERT_EQ(fall.losses.size(), 4U) << "what took no time is left out";
  const char* const causes[] = {"opening and reading", "decoding", "other ranks at work",
                                "saving checkpoints"};
  const double seconds[] = {2, 4, 1, 1.2};
  double left = fall.wall_s;
  for (size_t i = 0; i < fall.losses.size(); ++i) {
    EXPECT_EQ(fall.losses[i].cause, causes[i]);
    EXPECT_NEAR(fall.losses[i].seconds, seconds[i], 1e-9);
    left -= fall.losses[i].seconds;
  }
  EXPECT_NEAR(left, fall.computing_s, 1e-9);
  EXPECT_TRUE(has(page_of({record}), "Where the time went, alexnet on disk with prefetch 4"));
  put("lost_s.barrier", {2});
  const auto barrier = [&] { return waterfall_of(record).losses[3].cause; };
  EXPECT_EQ(barrier(), "meeting at the barrier");
  record.parameters["accelerator"] = "emulated:step=5s,burn=cpu:0.5";
  EXPECT_EQ(barrier(), "meeting at the barrier, and longer steps");
  record.parameters["ranks"] = 1;
  EXPECT_EQ(barrier(), "steps that lacked processors");
  record.metrics.erase("accelerator_utilization");
  EXPECT_TRUE(waterfall_of(record).losses.empty()) << "without a step nothing is lost of it";
}

}  // namespace
}  // namespace penstock::report
