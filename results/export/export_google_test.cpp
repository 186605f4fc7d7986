#include "results/export/export_google.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "results/import/foreign.hpp"
#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

Json export_json(std::vector<Record> records) {
  RecordSet set;
  for (Record& record : records)
    set.records.push_back({std::move(record), "runs/x.jsonl", set.records.size() + 1});
  return Json::parse(google_benchmark_json(set));
}

std::vector<Json> benchmarks_named(const Json& json, const std::string& name) {
  std::vector<Json> found;
  for (const Json& entry : json.at("benchmarks"))
    if (entry.at("name") == name) found.push_back(entry);
  return found;
}

TEST(ExportGoogle, RatesBecomeSecondsAndCountersAndSamplesRepetitions) {
  Record record = read_cell("disk", 4, "cold", 100);
  record.metrics["payload_bytes_per_s"].samples = {1048576, 2097152};
  const Json json = export_json({record});
  const auto found =
      benchmarks_named(json, "read/disk/threads:4/cache:cold/order:shuffled/payload_bytes_per_s");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at("real_time"), 1.0);
  EXPECT_EQ(found[1].at("real_time"), 0.5);
  EXPECT_EQ(found[1].at("cpu_time"), 0.5);
  EXPECT_EQ(found[1].at("time_unit"), "s");
  EXPECT_EQ(found[1].at("bytes_per_second"), 2097152.0);
  EXPECT_EQ(found[1].at("run_type"), "iteration");
  EXPECT_EQ(found[1].at("repetition_index"), 1);
  EXPECT_EQ(found[1].at("repetitions"), 2);
  EXPECT_EQ(found[1].at("threads"), 4);
  EXPECT_EQ(json.at("context").at("host_name"), "h");
}

TEST(ExportGoogle, TimesStayTimesAndMetricsWithoutDirectionAreLeftOut) {
  Record record = read_cell("disk", 1, "cold", 100);
  record.metrics = {{"wall_s", {"s", Better::lower, "run", {1.5}}},
                    {"latency_ns_p99", {"ns", Better::lower, "run", {2e6, std::nan("")}}},
                    {"payload_bytes", {"B", Better::neither, "run", {9}}},
                    {"ceiling_fraction", {"1", Better::higher, "run", {0.5}}}};
  const Json json = export_json({record});
  ASSERT_EQ(json.at("benchmarks").size(), 2U);
  EXPECT_EQ(json.at("benchmarks")[0].at("real_time"), 2e-3);
  EXPECT_EQ(json.at("benchmarks")[1].at("real_time"), 1.5);
}

TEST(ExportGoogle, RunsOfOneCellArePooledAndOtherCellsDistinguished) {
  Record other = read_cell("disk", 1, "cold", 100);
  other.parameters["stonewall_s"] = 0.5;
  const Json json =
      export_json({read_cell("disk", 1, "cold", 100), read_cell("disk", 1, "cold", 200), other});
  const std::string name = "read/disk/threads:1/cache:cold/order:shuffled";
  EXPECT_EQ(benchmarks_named(json, name + "/samples_per_s").size(), 2U);
  EXPECT_EQ(benchmarks_named(json, name + "/stonewall_s:0.5/samples_per_s").size(), 1U);
  Record labelled = read_cell("disk", 1, "cold", 100);
  labelled.label["disk"] = "new";
  EXPECT_EQ(
      benchmarks_named(export_json({labelled}), "read/disk/threads:1/cache:cold/order:shuffled/samples_per_s")
          .size(),
      1U)
      << "a label alone does not keep two files from being compared";
  EXPECT_EQ(benchmarks_named(export_json({labelled, read_cell("disk", 1, "cold", 100)}),
                             "read/disk/threads:1/cache:cold/order:shuffled/label.disk:new/samples_per_s")
                .size(),
            1U);
}

TEST(ExportGoogle, AFailedRecordIsAnErrorWithItsReason) {
  Record record = read_cell("disk", 1, "cold", 100);
  record.verdict = Verdict::failed;
  record.reason = "cannot open 'x'";
  const Json json = export_json({record});
  ASSERT_EQ(json.at("benchmarks").size(), 1U);
  EXPECT_EQ(json.at("benchmarks")[0].at("error_occurred"), true);
  EXPECT_EQ(json.at("benchmarks")[0].at("error_message"), "failed: cannot open 'x'");
}

// Writes the input of the end-to-end test that runs Google's compare.py: a read with five repeats, slowed
// down by the factor PENSTOCK_SLOWER.
TEST(ExportGoogle, WritesTheFileOfTheComparison) {
  const char* const path = std::getenv("PENSTOCK_EXPORT");
  if (path == nullptr) GTEST_SKIP() << "PENSTOCK_EXPORT names no file to write";
  const char* const given = std::getenv("PENSTOCK_SLOWER");
  const double slower = given == nullptr ? 1 : std::stod(given);
  Record record = read_cell("disk", 4, "cold", 100);
  record.metrics["payload_bytes_per_s"].samples.clear();
  record.metrics["wall_s"] = {"s", Better::lower, "repeat", {}};
  for (const double each : {1.0, 1.1, 0.9, 1.05, 0.95}) {
    record.metrics["payload_bytes_per_s"].samples.push_back(1e8 * each / slower);
    record.metrics["wall_s"].samples.push_back(each * slower);
  }
  RecordSet set;
  set.records.push_back({record, "x.jsonl", 1});
  std::ofstream file(path);
  file << google_benchmark_json(set);
  EXPECT_TRUE(file.flush().good());
}

TEST(ExportGoogle, CanBeImportedAgain) {
  RecordSet set;
  set.records.push_back({read_cell("disk", 2, "warm", 100), "x.jsonl", 1});
  const auto again = import_foreign(google_benchmark_json(set));
  ASSERT_TRUE(again.has_value());
  ASSERT_EQ(again->records.size(), 2U);
  const Metric& rate = again->records[0].metrics.at("payload_bytes_per_s");
  EXPECT_EQ(rate.samples, (std::vector<double>{100.0 * 1048576, 100.0 * 1048576, 100.0 * 1048576}));
}

}  // namespace
}  // namespace penstock
