#include "results/import/import_parts.hpp"
#include "results/import/import_testing.hpp"

namespace penstock {
namespace {

// The JSON of one phase, as elbencho 3.1 writes it: every value is text.
std::string elbencho_phase(const std::string& phase, const std::string& last_done,
                           const std::string& threads = "2") {
  return R"({"phase_type":")" + phase +
         R"(","phase_id":"x","label":"night","iso_start_date":"2026-11-30T21:22:27.983+0100","config":{"path_type":"file",)"
         R"("paths":"1","hosts":"1","threads":")" +
         threads +
         R"(","file_size":"67108864","block_size":"16384","direct_io":"true","random_offsets":"true","io_depth":"4",)"
         R"("version":"3.1-9","command":"\"elbencho\" \"-t\" \"2\" \"-w\" \"--limitread\" \"10m\" \"--jsonfile\" \"out/a.json\" \"\/data\/p\/file\" "},)"
         R"("first_done":{"elapsed_time_ms":"255","bytes\/s":"74462232"},"last_done":{)" +
         last_done + "}}\n";
}

constexpr const char* kReadFigures =
    R"("elapsed_time_ms":"284","iops":"4220","bytes\/s":"69150253","bytes":"19660800")";

TEST(Elbencho, APhaseBecomesARecord) {
  const auto records = imported_records(elbencho_phase("READ", kReadFigures));
  ASSERT_EQ(records.size(), 1U);
  const Record& record = records[0];
  EXPECT_EQ(record.command, "elbencho");
  EXPECT_EQ(record.label.at("peer"), "elbencho-3.1-9");
  EXPECT_EQ(record.label.at("label"), "night");
  EXPECT_EQ(record.started, "2026-11-30T20:22:27Z");
  EXPECT_EQ(record.parameters.at("operation"), "read");
  EXPECT_EQ(record.parameters.at("block"), 16384U);
  EXPECT_EQ(record.parameters.at("threads"), 2U);
  EXPECT_EQ(record.parameters.at("depth"), 4U);
  EXPECT_EQ(record.parameters.at("file_size"), 67108864U);
  EXPECT_EQ(record.parameters.at("random"), true);
  EXPECT_EQ(record.parameters.at("tier"), "/data/p/file");
  EXPECT_EQ(record.parameters.at("options"), "--limitread 10m");
  EXPECT_EQ(record.cache.at("client_data"), "bypassed");
  EXPECT_EQ(record.cache.at("server"), "unknown");
  EXPECT_EQ(samples_of_metric(record, "payload_bytes_per_s"), std::vector{69150253.0});
  EXPECT_EQ(samples_of_metric(record, "stonewall_bytes_per_s"), std::vector{74462232.0});
  EXPECT_EQ(samples_of_metric(record, "ops_per_s"), std::vector{4220.0});
  EXPECT_EQ(samples_of_metric(record, "payload_bytes"), std::vector{19660800.0});
  EXPECT_EQ(samples_of_metric(record, "wall_s"), std::vector{0.284});
  EXPECT_EQ(record.verdict, Verdict::ok);
}

TEST(Elbencho, ANegativeFigureIsUnknown) {
  Record record;
  imported::add_if_known(record, imported::kPayloadRate, -5.0);
  EXPECT_TRUE(record.metrics.empty());
  imported::add_if_known(record, imported::kPayloadRate, 0.0);
  EXPECT_FALSE(record.metrics.empty());
}

TEST(Elbencho, SecretsOfTheCommandLineAreHidden) {
  EXPECT_EQ(
      imported::command_arguments("elbencho --s3key ID --s3secret=WORD --S3.session-token T --s3key -w"),
      (std::vector<std::string>{"elbencho", "--s3key", "***", "--s3secret=***", "--S3.session-token", "***",
                                "--s3key", "-w"}));
}

TEST(Elbencho, IterationsAreSamplesAndOtherWorkIsAnotherRecord) {
  const std::string slower =
      R"("elapsed_time_ms":"0","iops":"2110","bytes\/s":"34575126","bytes":"19660800")";
  const auto records =
      imported_records(elbencho_phase("READ", kReadFigures) + elbencho_phase("READ", slower) +
                       elbencho_phase("READ", kReadFigures, "4"));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(samples_of_metric(records[0], "payload_bytes_per_s"), (std::vector{69150253.0, 34575126.0}));
  EXPECT_FALSE(records[0].metrics.contains("wall_s")) << "0 ms is unknown, and a half-known metric is none";
  EXPECT_EQ(records[1].parameters.at("threads"), 4U);
}

TEST(Elbencho, AMixOfReadsAndWritesBecomesTwoRecords) {
  const auto records = imported_records(elbencho_phase(
      "RWMIX70",
      std::string(kReadFigures) +
          R"(,"rwmix_read":{"iops":"10185","bytes\/s":"166882611"},"latency":{"IO":{"avg_us":"1377",)"
          R"("rwmix_read":{"avg_us":"888"}}})"));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].parameters.at("operation"), "write");
  EXPECT_EQ(records[1].parameters.at("operation"), "read");
  EXPECT_EQ(records[1].parameters.at("phase"), "RWMIX70");
  EXPECT_EQ(samples_of_metric(records[0], "payload_bytes_per_s"), std::vector{69150253.0});
  EXPECT_EQ(samples_of_metric(records[1], "payload_bytes_per_s"), std::vector{166882611.0});
  EXPECT_EQ(samples_of_metric(records[0], "latency_ns_mean"), std::vector{1377e3});
  EXPECT_EQ(samples_of_metric(records[1], "latency_ns_mean"), std::vector{888e3});
  EXPECT_NE(records[0].id, records[1].id);
}

TEST(Elbencho, PercentilesAreTheUpperBoundsOfTheBuckets) {
  const auto records = imported_records(elbencho_phase(
      "READ",
      std::string(kReadFigures) +
          R"(,"latency":{"IO":{"avg_us":"70","histogram":{"buckets":[{"range":"9.5-11us","count":"50"},)"
          R"({"range":"76-91us","count":"49"},{"range":"9742-11585us","count":"1"}]}}})"));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(samples_of_metric(records[0], "latency_ns_p50"), std::vector{11e3});
  EXPECT_EQ(samples_of_metric(records[0], "latency_ns_p99"), std::vector{91e3});
  EXPECT_EQ(samples_of_metric(records[0], "latency_ns_p999"), std::vector{11585e3});
}

TEST(Elbencho, AMetadataPhaseHasItsEntriesAsOperations) {
  const auto records =
      imported_records(elbencho_phase("STAT", R"("elapsed_time_ms":"7","entries\/s":"2053")"));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(samples_of_metric(records[0], "ops_per_s"), std::vector{2053.0});
  EXPECT_TRUE(records[0].metrics.at("ops_per_s").headline);
}

constexpr const char* kCsvHeader =
    "ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,random,random "
    "aligned,IO depth,shared paths,truncate,operation,time ms [first],time ms [last],IOPS [last],MiB/s "
    "[first],MiB/s [last],IO lat us [avg],version,command\n";

TEST(Elbencho, CsvIsReadAsTheJsonWithWholeMebibytes) {
  const std::string row =
      R"(2026-11-30T21:22:41+0000,,file,1,1,2,,,67108864,1048576,0,0,,1,,0,READ,59,74,853,586,853,2001,2.3-1,"elbencho" "-r" "--csvfile" "e.csv" "/data/p/blk" )";
  const auto cut = import_foreign(kCsvHeader + row + "\n" + row);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->problems.size(), 1U) << "the last line may be truncated";
  const auto records = imported_records(kCsvHeader + row + "\n" + row + "\n");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].label.at("peer"), "elbencho-2.3-1");
  EXPECT_EQ(records[0].parameters.at("tier"), "/data/p/blk");
  EXPECT_EQ(records[0].parameters.at("direct"), false);
  EXPECT_FALSE(records[0].parameters.contains("dirs")) << "an empty field is unknown";
  EXPECT_EQ(records[0].cache.at("client_data"), "unknown");
  EXPECT_EQ(samples_of_metric(records[0], "payload_bytes_per_s"),
            (std::vector{853.0 * 1048576, 853.0 * 1048576}));
  EXPECT_EQ(samples_of_metric(records[0], "stonewall_bytes_per_s").at(0), 586.0 * 1048576);
  EXPECT_EQ(samples_of_metric(records[0], "latency_ns_mean").at(0), 2001e3);
  EXPECT_EQ(samples_of_metric(records[0], "wall_s").at(0), 0.074);
}

TEST(Elbencho, ARateOfZeroMebibytesIsUnknownAndACutRowIsNamed) {
  const auto found = import_foreign(
      std::string(kCsvHeader) +
      R"(2026-11-30T21:22:41+0000,,file,1,1,2,,,100,10,0,0,,1,,0,READ,59,0,7,0,0,,2.3-1,"elbencho" "/data/p/blk")" +
      "\n2026-11-30T21:22:41+0000,,file,1,1\n");
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->records.size(), 1U);
  EXPECT_FALSE(found->records[0].metrics.contains("payload_bytes_per_s"));
  EXPECT_FALSE(found->records[0].metrics.contains("wall_s"));
  EXPECT_EQ(samples_of_metric(found->records[0], "ops_per_s"), std::vector{7.0});
  ASSERT_EQ(found->problems.size(), 1U);
  EXPECT_NE(found->problems[0].find("line 3"), std::string::npos) << found->problems[0];
}

}  // namespace
}  // namespace penstock
