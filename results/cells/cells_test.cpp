#include "results/cells/cells.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

TEST(Cells, TiersWithTheSameNameAreDistinguishedByTheirOptions) {
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
}

TEST(Cells, ASpecOfAnotherVersionIsStillEmulatedAndNotTakenForAnotherTier) {
  EXPECT_EQ(emulation(Json{{"spec", "disk=posix:/a,limit=50MB/s"}}), "limit=50MB/s");
  EXPECT_EQ(emulation(Json{{"spec", "disk=posix:/a,limit=50MB/s,of_the_future=3,latency=2ms"}}),
            "limit=50MB/s, latency=2ms");
  EXPECT_EQ(emulation(Json{{"spec", "disk=posix:/a,of_the_future=3"}}), "");
  Record known = read_cell("disk", 1, "warm", 900);
  known.tiers["data"]["spec"] = "disk=posix:/a";
  Record unknown = read_cell("disk", 1, "warm", 900);
  unknown.tiers["data"]["spec"] = "disk=posix:/a,of_the_future=3";
  Record* const both[] = {&known, &unknown};
  distinguish_tiers(both);
  EXPECT_NE(tier_name(known), tier_name(unknown));
}

}  // namespace
}  // namespace penstock
