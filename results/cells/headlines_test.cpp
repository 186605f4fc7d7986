#include "results/cells/headlines.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

constexpr MetricInfo kRate{"rate", "1/s", Better::higher, "repeat", kHeadline};
constexpr MetricInfo kDone{"done", "1", Better::neither, "run", kHeadline};
constexpr MetricInfo kTimes{"times.*.s", "s", Better::lower};
constexpr MetricInfo kTable[] = {kTimes, kDone, kRate};

Record record_of(const std::vector<MetricInfo>& metrics, const std::string& command = "read") {
  Record record;
  record.command = command;
  for (const MetricInfo& metric : metrics) add_sample(record, metric, "x", 1);
  return record;
}

Record unmarked(Record record) {
  for (auto& [name, metric] : record.metrics) metric.headline = false;
  return record;
}

// The metrics of the first record that count as headlines if all records are added.
std::vector<std::string> headlines(const std::vector<Record>& records, Commands commands) {
  Headlines all(metrics_of(records[0].command, commands));
  for (const Record& record : records) all.add(record);
  std::vector<std::string> names;
  for (const auto& [name, metric] : records[0].metrics)
    if (all.contains(name)) names.push_back(name);
  return names;
}

using Names = std::vector<std::string>;

TEST(MetricInfo, AFamilyMatchesNamesWithTextInPlaceOfTheStar) {
  EXPECT_EQ(kTimes.with("open"), "times.open.s");
  EXPECT_TRUE(kTimes.matches("times.open.s"));
  EXPECT_TRUE(kTimes.matches("times.a.b.s"));
  EXPECT_FALSE(kTimes.matches("times.s")) << "the two dots are two";
  EXPECT_FALSE(kTimes.matches("times.open.ns2"));
  EXPECT_EQ(kRate.with("open"), "rate");
  EXPECT_FALSE(kRate.matches("rate2"));
  EXPECT_TRUE((MetricInfo{"*", "1"}).matches("anything"));
}

TEST(Headlines, AreTheMetricsThatRecordsMark) {
  const Record record = record_of({kRate, kDone, kTimes});
  EXPECT_EQ(headlines({record}, known_commands()), (Names{"done", "rate"})) << "not what read's table says";
}

TEST(Headlines, OfRecordsWithoutMarksComeFromTheTable) {
  Record old = read_cell("disk", 1, "cold", 1);
  old.metrics["calls.pread"] = {"1", Better::neither, "repeat", {3}};
  EXPECT_EQ(headlines({old}, known_commands()), (Names{"calls.pread", "payload_bytes_per_s"}));
  EXPECT_EQ(headlines({old}, {}).size(), 3U) << "nothing is known of the command: all";
}

TEST(Headlines, OfOldAndNewRecordsAreJoined) {
  const Record old = read_cell("disk", 1, "cold", 1);
  Record fresh = old;
  fresh.metrics["samples_per_s"].headline = true;
  EXPECT_EQ(headlines({old, fresh}, known_commands()), (Names{"payload_bytes_per_s", "samples_per_s"}));
  EXPECT_EQ(headlines({old, fresh}, {}), Names{"samples_per_s"});
}

TEST(Headlines, OfImportedRecordsWithoutMarksComeFromTheToolsTable) {
  Record kept = record_of({kRate}, "google_benchmark");
  kept = unmarked(kept);
  kept.metrics["real_time_s"] = {"s", Better::lower, "repeat", {1}};
  EXPECT_EQ(headlines({kept}, {}), Names{"real_time_s"});
  Record fio = unmarked(record_of({kRate}, "fio"));
  fio.metrics["errors"] = {"1", Better::lower, "run", {1}};
  EXPECT_EQ(headlines({fio}, {}), Names{"errors"});
}

TEST(FirstMetric, IsTheFirstOfTheTableThatHasADirection) {
  const Record record = record_of({kRate, kDone, kTimes});
  EXPECT_EQ(first_metric(record, kTable), "times.x.s");
  EXPECT_EQ(first_metric(record_of({kRate, kDone}), kTable), "rate");
  EXPECT_EQ(first_metric(record, {}), "rate") << "a headline";
  EXPECT_EQ(first_metric(unmarked(record_of({kRate, kTimes})), {}), "rate");
  EXPECT_EQ(first_metric(record_of({kDone}), kTable), "");
}

TEST(DeclaredMetrics, MatchTheTableInNameAndAttributes) {
  const Record record = record_of({kRate, kTimes});
  EXPECT_TRUE(is_declared("times.x.s", record.metrics.at("times.x.s"), kTable));
  EXPECT_FALSE(is_declared("rate", unmarked(record).metrics.at("rate"), kTable));
  EXPECT_FALSE(is_declared("other", record.metrics.at("rate"), kTable));
}

}  // namespace
}  // namespace penstock
