#include "results/record/work.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

TEST(Work, TheRecordsOwnListDecides) {
  Record record = read_cell("disk", 4, "cold", 100);
  record.work = {"threads", "cache"};
  EXPECT_TRUE(is_work(record, "threads"));
  EXPECT_FALSE(is_work(record, "order"));
  EXPECT_EQ(work_parameters(record), (std::vector<std::string>{"threads", "cache"}));
}

TEST(Work, TheCommandsTableDecidesForOlderRecords) {
  Record record = read_cell("disk", 4, "cold", 100);
  record.parameters["min_time_s"] = 2.0;
  record.parameters["ceiling_rung"] = "random";
  EXPECT_EQ(work_parameters(record), (std::vector<std::string>{"threads", "cache", "order"}));
  record.command = "of_another_version";
  EXPECT_TRUE(is_work(record, "min_time_s"));
}

TEST(Work, SurvivesWritingAndReading) {
  Record record = read_cell("disk", 4, "cold", 100);
  EXPECT_FALSE(record_from_json(to_json(record))->work.has_value());
  record.work = {"threads"};
  EXPECT_EQ(record_from_json(to_json(record))->work, record.work);
  Json broken = to_json(record);
  broken["work"] = "threads";
  EXPECT_FALSE(record_from_json(broken).ok());
}

TEST(Work, AFlagThatIsOffIsTheSameAsNone) {
  Record older = read_cell("disk", 4, "cold", 100);
  Record newer = older;
  newer.parameters["verify"] = false;
  newer.parameters["rate"] = nullptr;
  newer.work = {"threads", "cache", "order", "verify", "rate"};
  EXPECT_EQ(work_key(older, {}), work_key(newer, {}));
  EXPECT_FALSE(is_unknown(older, "verify"));
  EXPECT_TRUE(is_unknown(older, "rate"));
  EXPECT_FALSE(is_unknown(newer, "rate"));
  newer.parameters["verify"] = true;
  EXPECT_NE(work_key(older, {}), work_key(newer, {}));
}

}  // namespace
}  // namespace penstock
