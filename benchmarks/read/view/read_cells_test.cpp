#include "benchmarks/read/view/read_cells.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"
#include "results/record/records_testing.hpp"
#include "results/report/page_state.hpp"

namespace penstock {
namespace {

TEST(ReadCells, TiersOfOneNameAreCurvesOfTheirOwn) {
  std::vector<Record> records{read_cell("root", 1, "warm", 900), read_cell("root", 2, "warm", 1800),
                              read_cell("root", 1, "warm", 200)};
  const char* const specs[] = {"posix:/a", "/b", "direct:/a"};
  std::vector<Record*> all;
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].tiers["data"]["spec"] = specs[i];
    all.push_back(&records[i]);
  }
  distinguish_tiers(all);
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].find("root (posix)")->by_count.size(), 2U);
  EXPECT_EQ(groups[0].find("root (posix, direct=1)")->by_count.size(), 1U);
}

TEST(ReadCells, TheLatestOfRepeatedRunsCounts) {
  Record old = read_cell("disk", 1, "cold", 100);
  Record fresh = read_cell("disk", 1, "cold", 200);
  fresh.started = "2026-11-21T00:00:00Z";
  const std::vector<Record> records{fresh, old};
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].curves[0].by_count.at(1), &records[0]);
}

TEST(ReadCells, ATileHasTheBestRateOfAllGroupsOfItsTier) {
  std::vector<Record> records;
  for (const double rate : {411.0, 671.0, 602.0, 120.0}) {
    records.push_back(read_cell("pfs", 2, "cold", rate));
    records.back().parameters["ranks"] = int(records.size());
  }
  records.push_back(read_cell("pfs", 2, "warm", 9000));
  records.push_back(read_cell("shm", 2, "warm", 5000));
  report::PageState state;
  state.first_record = records.data();
  const std::vector<std::string> tiles = view_registry().find("read").value()->tiles(records, state);
  ASSERT_EQ(tiles.size(), 2U);
  EXPECT_NE(tiles[0].find(">671.0<"), std::string::npos) << tiles[0];
  EXPECT_NE(tiles[0].find("ranks 2"), std::string::npos) << tiles[0];
  EXPECT_NE(tiles[1].find("shm"), std::string::npos) << "a tier that was not read cold";
}

TEST(ReadCells, GroupsOfDifferentCorporaNameThemAndTheirSizes) {
  std::vector<Record> records{read_cell("disk", 1, "cold", 100), read_cell("disk", 1, "cold", 100)};
  records[0].corpus = {{"recipe", "imagenet"}, {"samples", 300}, {"checksum", "a"}};
  records[1].corpus = {{"recipe", "imagenet"}, {"samples", 128}, {"checksum", "b"}};
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].title, "cold, imagenet of 300 samples");
  EXPECT_EQ(groups[1].title, "cold, imagenet of 128 samples");
}

TEST(ReadCells, GroupsAreNamedByWhatDiffers) {
  Record sequential = read_cell("disk", 1, "cold", 100);
  sequential.parameters["order"] = "sequential";
  const auto groups = read_groups(std::vector<Record>{read_cell("disk", 1, "cold", 1), sequential});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].title, "cold, order shuffled");
  EXPECT_EQ(groups[1].title, "cold, order sequential");
}

TEST(ReadCells, RecordsThatDifferInAnyWorkAreAllShown) {
  std::vector<Record> records{read_cell("disk", 4, "cold", 100), read_cell("disk", 4, "cold", 200),
                              read_cell("disk", 4, "cold", 300)};
  records[1].parameters["verify"] = true;
  records[2].parameters["window"] = 64;
  std::set<const Record*> older;
  view_registry().find("read").value()->add_superseded(records, older);
  EXPECT_TRUE(older.empty());
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[1].title, "cold, verify");
  EXPECT_EQ(groups[2].title, "cold, window 64");
}

TEST(ReadCells, ASessionOfTheProfilerIsInAGroup) {
  Record session = read_cell("fast", 1, "cold", 100);
  session.command = "profile";
  const std::vector<Record> records{session};
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].curves[0].tier, "fast");
}

}  // namespace
}  // namespace penstock
