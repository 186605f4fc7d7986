#include "results/cells/cells.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

TEST(Cells, TiersOfOneNameAreToldApartByWhatTheyAre) {
  const auto cell = [](const std::string& spec, int threads, double mib_per_s) {
    Record record = read_cell("root", threads, "warm", mib_per_s);
    record.tiers["data"]["spec"] = spec;
    return record;
  };
  std::vector<Record> records{cell("posix:/a", 1, 900), cell("/b", 2, 1800), cell("direct:/a", 1, 200),
                              cell("posix:/a,limit=50MB/s", 1, 47)};
  records.push_back(read_cell("root", 4, "warm", 1900));  // without a spec
  std::vector<Record*> all;
  for (Record& record : records) all.push_back(&record);
  distinguish_tiers(std::span(all).first(2));
  EXPECT_EQ(tier_name(records[0]), "root");
  EXPECT_EQ(tier_name(records[1]), "root");
  distinguish_tiers(all);
  EXPECT_EQ(tier_name(records[0]), "root (posix)");
  EXPECT_EQ(tier_name(records[1]), "root (posix)");
  EXPECT_EQ(tier_name(records[2]), "root (posix, direct=1)");
  EXPECT_EQ(tier_name(records[3]), "root (posix, limit=50MB/s)");
  EXPECT_EQ(tier_name(records[4]), "root");
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].find("root (posix)")->at.size(), 2U);
  EXPECT_EQ(groups[0].find("root (posix, direct=1)")->at.size(), 1U);
}

TEST(Cells, TrainingFromMemoryIsNotCalledCold) {
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

TEST(Cells, TrainingsByOtherThreadsAreListedFewestFirst) {
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

TEST(Cells, TheLatestOfRepeatedRunsCounts) {
  Record old = read_cell("disk", 1, "cold", 100);
  Record fresh = read_cell("disk", 1, "cold", 200);
  fresh.started = "2026-11-21T00:00:00Z";
  const std::vector<Record> records{fresh, old};
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].curves[0].at.at(1), &records[0]);
}

TEST(Cells, GroupsOfDifferentCorporaNameThemAndTheirSizes) {
  std::vector<Record> records{read_cell("disk", 1, "cold", 100), read_cell("disk", 1, "cold", 100)};
  records[0].corpus = {{"recipe", "imagenet"}, {"samples", 300}, {"checksum", "a"}};
  records[1].corpus = {{"recipe", "imagenet"}, {"samples", 128}, {"checksum", "b"}};
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].title, "cold, imagenet of 300 samples");
  EXPECT_EQ(groups[1].title, "cold, imagenet of 128 samples");
}

TEST(Cells, GroupsAreNamedByWhatDiffers) {
  Record sequential = read_cell("disk", 1, "cold", 100);
  sequential.parameters["order"] = "sequential";
  const auto groups = read_groups(std::vector<Record>{read_cell("disk", 1, "cold", 1), sequential});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].title, "cold, order shuffled");
  EXPECT_EQ(groups[1].title, "cold, order sequential");
}

TEST(Cells, WaitPerStepFromStepSamples) {
  Record record = train_cell(4, 0);
  record.metrics["input_wait_s"] = {"s", Better::lower, "step", {0.1, 0.3}};
  EXPECT_DOUBLE_EQ(*input_wait_per_step(record), 0.2);
}

}  // namespace
}  // namespace penstock
