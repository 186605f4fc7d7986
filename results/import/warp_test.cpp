#include "results/import/import_testing.hpp"

namespace penstock {
namespace {

constexpr const char* kThroughput =
    R"("throughput": {"start_time": "2026-11-30T21:00:02+01:00", "errors": 0, "measure_duration_millis": 4000,
"bytes": 41943040, "objects": 40, "ops": 20, "segmented": {"segment_duration_millis": 1000}})";

std::string warp_segment(const std::string& median, const std::string& p99,
                         const std::string& size = "1048576") {
  return R"({"single_sized_requests": {"dur_median_millis": )" + median +
         R"(, "dur_90_millis": 5, "dur_99_millis": )" + p99 + R"(, "requests": 20, "obj_size": )" + size +
         R"(, "merged_entries": 1}})";
}

std::string warp_live(const std::string& segments, const std::string& more = R"("total_errors": 0)",
                      const std::string& final = "true") {
  return R"({"v": 2, "commandline": "warp get --host=s3-1:9000 --access-key=K --secret-key=S --quiet, q=true --no-color=true --duration=10s --obj.size=1MiB",
"final": )" +
         final + R"(, "warp_version": "1.6.1", "total": {}, "by_op_type": {"GET": {"concurrency": 8,
"start_time": "2026-11-30T21:00:00.5+01:00", "hosts": ["s3-1:9000", "s3-2:9000"], "clients": ["c1"], )" +
         more + ", " + kThroughput + R"(, "requests_by_client": {"c1": [)" + segments + "]}}}\n}\n";
}

TEST(Warp, ATypeOfOperationBecomesARecord) {
  const auto records = imported_records(warp_live(warp_segment("1.5", "9.25")));
  ASSERT_EQ(records.size(), 1U);
  const Record& record = records[0];
  EXPECT_EQ(record.command, "warp");
  EXPECT_EQ(record.label.at("peer"), "warp-1.6.1");
  EXPECT_EQ(record.started, "2026-11-30T20:00:00Z");
  EXPECT_EQ(record.parameters.at("benchmark"), "get");
  EXPECT_EQ(record.parameters.at("operation"), "GET");
  EXPECT_EQ(record.parameters.at("threads"), 8U);
  EXPECT_EQ(record.parameters.at("hosts"), 2U);
  EXPECT_EQ(record.parameters.at("clients"), 1U);
  EXPECT_EQ(record.parameters.at("block"), 1048576U);
  EXPECT_EQ(record.parameters.at("options"), "--duration=10s --obj.size=1MiB") << "neither hosts nor keys";
  EXPECT_EQ(record_line(record).find("secret"), std::string::npos);
  EXPECT_EQ(record.parameters.at("tier"), "s3-1:9000");
  EXPECT_EQ(samples_of_metric(record, "payload_bytes_per_s"), std::vector{10485760.0});
  EXPECT_EQ(samples_of_metric(record, "ops_per_s"), std::vector{5.0});
  EXPECT_EQ(samples_of_metric(record, "objects_per_s"), std::vector{10.0});
  EXPECT_EQ(samples_of_metric(record, "wall_s"), std::vector{4.0});
  EXPECT_EQ(samples_of_metric(record, "latency_ns_p50"), std::vector{1.5e6});
  EXPECT_EQ(samples_of_metric(record, "latency_ns_p99"), std::vector{9.25e6});
  EXPECT_EQ(record.cache.at("client_data"), "unknown");
  EXPECT_EQ(record.verdict, Verdict::ok);
}

TEST(Warp, PercentilesOfSegmentsAreNotThoseOfTheRun) {
  const auto records =
      imported_records(warp_live(warp_segment("1.5", "9.25") + "," + warp_segment("2.5", "8", "2048") +
                                 R"(, {"single_sized_requests": {"skipped": true}})"));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_FALSE(records[0].metrics.contains("latency_ns_p50"));
  EXPECT_EQ(samples_of_metric(records[0], "segment_latency_ns_p50"), (std::vector{1.5e6, 2.5e6}));
  EXPECT_FALSE(records[0].parameters.contains("block")) << "objects of several sizes";
}

TEST(Warp, ErrorsAndUnfinishedRunsAreVerdicts) {
  const auto errors = imported_records(warp_live(warp_segment("1", "2"), R"("total_errors": 3)"));
  EXPECT_EQ(errors.at(0).verdict, Verdict::degraded);
  EXPECT_EQ(samples_of_metric(errors[0], "errors"), std::vector{3.0});
  EXPECT_EQ(imported_records(warp_live("", R"("total_errors": 0)", "false")).at(0).verdict,
            Verdict::interrupted);
  const auto brief = imported_records(
      R"({"v": 2, "total": {}, "by_op_type": {"PUT": {"throughput": {"measure_duration_millis": 0, "bytes": 0}}}})");
  EXPECT_EQ(brief.at(0).verdict, Verdict::failed);
  EXPECT_TRUE(brief[0].metrics.empty());
}

TEST(Warp, TheFullAnalysisHasThePercentilesOfTheRun) {
  const auto records = imported_records(
      R"({"type": "mixed", "mixed": true, "operations": [{"type": "PUT", "hosts": 2, "clients": 1, "concurrency": 4,
"host_names": ["s3-1:9000"], "errors": 0, "start_time": "2026-11-30T20:00:00Z", )" +
      std::string(kThroughput) +
      R"(, "single_sized_requests": {"dur_median_millis": 3, "dur_90_millis": 4, "dur_99_millis": 6, "obj_size": 512}}]})");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].parameters.at("benchmark"), "mixed");
  EXPECT_EQ(records[0].parameters.at("operation"), "PUT");
  EXPECT_EQ(records[0].parameters.at("hosts"), 2U);
  EXPECT_EQ(records[0].parameters.at("tier"), "s3-1:9000");
  EXPECT_EQ(samples_of_metric(records[0], "latency_ns_p90"), std::vector{4e6});
}

TEST(Warp, UploadsBeforeTheMeasurementAreLeftOut) {
  std::string text = warp_live(warp_segment("1", "2"));
  text.replace(
      text.find("\"by_op_type\": {"), 15,
      R"("by_op_type": {"PUT": {"total_errors": 0, "throughput": {"measure_duration_millis": 0}}, )");
  const auto records = imported_records(text);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].parameters.at("operation"), "GET");
}

TEST(Warp, ItsPackedDataIsNamedWithWhatToDo) {
  EXPECT_NE(advice_on_foreign("\x28\xb5\x2f\xfdrest", "a.zst").find("warp analyze --json a.zst"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock
