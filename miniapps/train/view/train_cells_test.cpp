#include "miniapps/train/view/train_cells.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

TEST(TrainCells, TrainingFromMemoryIsNotCalledCold) {
  Record fast = train_cell(4, 0.06);
  fast.parameters["cache"] = "cold";
  fast.cache = Json{{"client_data", "memory"}};
  Record disk = train_cell(4, 0.06);
  disk.tiers["data"]["name"] = "root";
  disk.parameters["cache"] = "cold";
  disk.cache = Json{{"client_data", "cold"}};
  const auto groups = train_groups(std::vector<Record>{fast, disk});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].title, "alexnet on disk, in memory (cold asked for)");
  EXPECT_EQ(groups[1].title, "alexnet on root, cache cold");
}

TEST(TrainCells, GroupsAreListedByAscendingThreads) {
  std::vector<Record> records;
  for (const auto& [app, threads] :
       {std::pair{"alexnet", 10}, {"stream", 1}, {"alexnet", 2}, {"alexnet", 1}, {"stream", 4}}) {
    records.push_back(train_cell(4, 0.06));
    records.back().parameters["app"] = app;
    records.back().parameters["threads"] = threads;
  }
  std::vector<std::string> titles;
  for (const TrainGroup& group : train_groups(records)) titles.push_back(group.title);
  EXPECT_EQ(titles, (std::vector<std::string>{"alexnet on disk, threads 1", "alexnet on disk, threads 2",
                                              "alexnet on disk, threads 10", "stream on disk, threads 1",
                                              "stream on disk, threads 4"}));
}

TEST(TrainCells, WaitPerStepFromStepSamples) {
  Record record = train_cell(4, 0);
  record.metrics["input_wait_s"] = {"s", Better::lower, "step", {0.1, 0.3}};
  EXPECT_DOUBLE_EQ(*input_wait_per_step(record), 0.2);
}

}  // namespace
}  // namespace penstock
