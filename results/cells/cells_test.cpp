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

}  // namespace
}  // namespace penstock
