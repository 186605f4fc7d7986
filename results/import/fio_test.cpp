#include <gtest/gtest.h>

#include <string>

#include "results/import/foreign.hpp"
#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

std::string file_of(const std::string& jobs, const std::string& more = "") {
  return R"({"fio version": "fio-3.33", "timestamp": 1700000000, )" + more + R"("jobs": [)" + jobs + "]\n}\n";
}

// The JSON of one direction of a job that ran for two seconds.
std::string stats(const std::string& name, double bytes_per_s, const std::string& more = "") {
  return '"' + name + R"(": {"io_bytes": )" + std::to_string(2 * bytes_per_s) +
         R"(, "io_kbytes": 1, "bw_bytes": )" + std::to_string(bytes_per_s) + R"(, "iops": )" +
         std::to_string(bytes_per_s / 4096) + R"(, "runtime": 2000, "total_ios": )" +
         std::to_string(2 * bytes_per_s / 4096) + more + "}";
}

std::string job(const std::string& options, const std::string& directions, const std::string& more = "") {
  return R"({"jobname": "it", "groupid": 0, "error": 0, "job options": {)" + options + "}, " + more +
         directions + "}";
}

std::vector<Record> records_of(const std::string& text) {
  const auto found = import_foreign(text);
  EXPECT_TRUE(found.has_value());
  if (!found) return {};
  EXPECT_TRUE(found->problems.empty());
  return found->records;
}

double value(const Record& record, const std::string& name) {
  const auto at = record.metrics.find(name);
  return at == record.metrics.end() ? -1 : at->second.value();
}

TEST(Fio, NumbersThatAreNotFiniteAreMissing) {
  for (const std::string word :
       {"nan", "-nan", "inf", "-inf", "NaN", "-Infinity", "nan(ind)", "-nan(0x7fff_1)"}) {
    const auto records =
        records_of(file_of(job(R"("rw": "read")", stats("read", 4096, R"(, "x": )" + word))));
    ASSERT_EQ(records.size(), 1U) << word;
    EXPECT_EQ(value(records[0], "payload_bytes_per_s"), 4096) << word;
  }
  std::string hostile = "{\n";
  for (int i = 0; i < 300'000; ++i) hostile += "nan(";
  EXPECT_FALSE(import_foreign(hostile + "\n}\n").has_value());
}

TEST(Fio, AJobBecomesARecord) {
  const auto records = records_of(file_of(
      job(R"("rw": "randread", "bs": "128k", "iodepth": "8", "numjobs": "4", "direct": "1", "ioengine": "io_uring", "group_reporting": "")",
          stats(
              "read", 40960000,
              R"(, "clat_ns": {"percentile": {"50.000000": 1000, "95.000000": 2000, "99.000000": 3000, "99.900000": 4000}})"),
          R"("job_start": 1699999990000, )"),
      R"("global options": {"directory": "/data/p"}, )"));
  ASSERT_EQ(records.size(), 1U);
  const Record& record = records[0];
  EXPECT_EQ(record.command, "fio");
  EXPECT_EQ(record.label.at("peer"), "fio-3.33");
  EXPECT_EQ(record.started, "2023-11-14T22:13:10Z");
  EXPECT_EQ(record.parameters.at("tier"), "/data/p");
  EXPECT_EQ(record.tiers.at("data").at("root"), "/data/p");
  EXPECT_EQ(record.parameters.at("threads"), 4U);
  EXPECT_EQ(record.parameters.at("depth"), 8U);
  EXPECT_EQ(record.parameters.at("block"), 131072U);
  EXPECT_EQ(record.parameters.at("direct"), true);
  EXPECT_EQ(record.parameters.at("ioengine"), "io_uring");
  EXPECT_EQ(record.parameters.at("rw"), "randread");
  EXPECT_EQ(record.parameters.at("operation"), "read");
  EXPECT_EQ(record.parameters.at("latency"), "clat");
  EXPECT_EQ(record.cache.at("client_data"), "bypassed");
  EXPECT_DOUBLE_EQ(value(record, "payload_bytes_per_s"), 40960000);
  EXPECT_DOUBLE_EQ(value(record, "ops_per_s"), 10000);
  EXPECT_DOUBLE_EQ(value(record, "wall_s"), 2);
  EXPECT_DOUBLE_EQ(value(record, "latency_ns_p50"), 1000);
  EXPECT_DOUBLE_EQ(value(record, "latency_ns_p999"), 4000);
  EXPECT_EQ(record.verdict, Verdict::ok);
}

TEST(Fio, EachDirectionIsARecordWithItsBlockSize) {
  const auto records =
      records_of(file_of(job(R"("rw": "randrw", "bs": "4k,16k")",
                             stats("read", 4096) + "," + stats("write", 8192) + "," + stats("trim", 0))));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].parameters.at("operation"), "read");
  EXPECT_EQ(records[0].parameters.at("block"), 4096U);
  EXPECT_EQ(records[1].parameters.at("operation"), "write");
  EXPECT_EQ(records[1].parameters.at("block"), 16384U);
  EXPECT_NE(records[0].id, records[1].id);
}

TEST(Fio, DirectionsThatWereCountedTogetherAreOneRecord) {
  const auto records = records_of(file_of(
      job(R"("rw": "randrw", "bs": "4k,16k", "unified_rw_reporting": "mixed")", stats("mixed", 8192))));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].parameters.at("operation"), "mixed");
  EXPECT_EQ(records[0].parameters.at("block"), "4k,16k");
  EXPECT_DOUBLE_EQ(value(records[0], "payload_bytes_per_s"), 8192);
}

TEST(Fio, ClonesAreOneRecordAndPercentilesAreMergedNeverAveraged) {
  const auto with = [](const std::string& latency) {
    return job(R"("rw": "read", "numjobs": "2")", stats("read", 4096, R"(, "clat_ns": {)" + latency + "}"));
  };
  const auto merged =
      records_of(file_of(with(R"("percentile": {"50.000000": 10}, "bins": {"10": 990, "20": 10})") + "," +
                         with(R"("percentile": {"50.000000": 90}, "bins": {"90": 900, "3000000000": 100})")));
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].parameters.at("threads"), 2U);
  EXPECT_DOUBLE_EQ(value(merged[0], "payload_bytes_per_s"), 8192);
  EXPECT_DOUBLE_EQ(value(merged[0], "ops_per_s"), 2);
  EXPECT_DOUBLE_EQ(value(merged[0], "latency_ns_p50"), 20);
  EXPECT_DOUBLE_EQ(value(merged[0], "latency_ns_p99"), 3e9) << "seconds, in ns";
  const auto apart = records_of(
      file_of(with(R"("percentile": {"50.000000": 10})") + "," + with(R"("percentile": {"50.000000": 90})")));
  ASSERT_EQ(apart.size(), 1U);
  EXPECT_FALSE(apart[0].metrics.contains("latency_ns_p50"));
  EXPECT_FALSE(apart[0].parameters.contains("latency"));
}

TEST(Fio, TheTotalLatencyIsUsedIfItIsReported) {
  const auto records = records_of(file_of(
      job(R"("rw": "read")",
          stats("read", 4096, R"(, "clat_ns": {"min": 1}, "lat_ns": {"percentile": {"50.000000": 7}})"))));
  EXPECT_DOUBLE_EQ(value(records.at(0), "latency_ns_p50"), 7);
  EXPECT_EQ(records[0].parameters.at("latency"), "lat");
}

TEST(Fio, EarlyVersionsCountInKibibytesAndMicroseconds) {
  const auto records = records_of(file_of(job(
      R"("filename": "/data/p/file")",
      R"("read": {"io_bytes": 2048, "bw": 1024, "iops": 3.5, "runtime": 2000, "total_ios": 7, "clat": {"percentile": {"50.000000": 90}}})")));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_DOUBLE_EQ(value(records[0], "payload_bytes_per_s"), 1048576);
  EXPECT_DOUBLE_EQ(value(records[0], "payload_bytes"), 2097152);
  EXPECT_DOUBLE_EQ(value(records[0], "ops_per_s"), 3.5);
  EXPECT_DOUBLE_EQ(value(records[0], "latency_ns_p50"), 90000);
  EXPECT_EQ(records[0].parameters.at("tier"), "/data/p/file");
}

TEST(Fio, FailuresAreVerdicts) {
  const auto records = records_of(file_of(
      R"({"jobname": "full", "groupid": 0, "error": 28, "job options": {"rw": "write"}, "write": {"io_bytes": 0, "total_ios": 0}},)" +
      job(R"("rw": "read")", stats("read", 4096), R"("total_err": 3, )")));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].verdict, Verdict::failed);
  EXPECT_NE(records[0].reason.find("No space left"), std::string::npos) << records[0].reason;
  EXPECT_TRUE(records[0].metrics.empty());
  EXPECT_EQ(records[0].parameters.at("operation"), "write");
  EXPECT_EQ(records[1].verdict, Verdict::degraded);
  EXPECT_DOUBLE_EQ(value(records[1], "errors"), 3);
}

TEST(Fio, NotesBeforeTheJsonAreSkippedAndClientsAreJobs) {
  const auto records =
      records_of("note: both iodepth >= 1 and synchronous I/O engine are selected\n" +
                 std::string(R"({"fio version": "fio-3.33", "client_stats": [)") +
                 job("", stats("write", 4096), R"("hostname": "node-1", )") +
                 R"(, {"jobname": "All clients", "write": {"io_bytes": 9, "total_ios": 9}}])" + "\n}\nbye\n");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].environment.at("host"), "node-1");
  EXPECT_EQ(records[0].started, "") << "it says no time";
}

TEST(Fio, ATierIsNamedAsInPenstocksRecords) {
  Record ours = read_cell("disk", 1, "cold", 100);
  ours.tiers["data"] = Json{{"name", "disk"}, {"root", "/data/p"}, {"mount_point", "/data"}};
  Record other = read_cell("root", 1, "cold", 100);
  other.tiers["data"] = Json{{"name", "root"}, {"root", "/other/p"}, {"mount_point", "/"}};
  for (const auto& [place, name] :
       {std::pair("/data/p/it.0.0", "disk"), std::pair("/data/p", "disk"), std::pair("/data/q", "disk"),
        std::pair("/datax/p", "/datax/p"), std::pair("/other/p/x", "root"), std::pair("/srv", "/srv")}) {
    auto records =
        records_of(file_of(job(R"("filename": ")" + std::string(place) + '"', stats("read", 4096))));
    Record* const all[] = {&ours, &other, &records.at(0)};
    name_foreign_tiers(all);
    EXPECT_EQ(records[0].parameters.at("tier"), name) << place;
    EXPECT_EQ(records[0].tiers.at("data").at("name"), name) << place;
  }
}

}  // namespace
}  // namespace penstock
