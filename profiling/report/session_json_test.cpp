#include "profiling/report/session_json.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "io_backends/core/json.hpp"
#include "io_backends/testing/testing.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/exporters/session_metrics.hpp"
#include "profiling/exporters/session_records.hpp"
#include "profiling/session/session_testing.hpp"
#include "results/cells/cells.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class SessionJsonTest : public testing::Test {
 protected:
  SessionJsonTest() {
    SessionBytes bytes(100);
    bytes.set_kernel(0, 4000);
    bytes.add_thread(100, 3000, 0);
    bytes.add_file("/data/a", 100, 2, 1000);
    bytes.add_file("/data/\"b\"\n\xff", 101, 1, 1000, PENSTOCK_STDIO);
    bytes.add(penstock_segment{.file = key_for_test("/data/a"),
                               .offset = 4096,
                               .length = 1000,
                               .begin_ticks = 1'000'002'000,
                               .end_ticks = 1'000'003'500,
                               .thread = 100,
                               .call = PENSTOCK_CALL_READ,
                               .layer = PENSTOCK_POSIX,
                               .failed = 0});
    bytes.add(penstock_span{1'000'001'000, 1'000'009'000, 3, 500, 1, 100, PENSTOCK_READ, 0, 0});
    bytes.write(folder_.path());
    const fs::path paths[] = {folder_.path()};
    session_ = open_session(paths).value();
  }
  std::string text_of_file(const fs::path& path) const {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  ScratchFolder folder_;
  Session session_;
};

TEST_F(SessionJsonTest, TheSessionLineHasTheDocumentedFields) {
  const FileSums sums(session_);
  std::string text;
  append_session_json(text, session_, summarise(session_, sums, {}));
  ASSERT_EQ(text.find('\n'), text.size() - 1);
  const auto line = Json::parse(text);
  EXPECT_EQ(line["kind"], "session");
  EXPECT_EQ(line["processes"], 1);
  EXPECT_EQ(line["files"], 2);
  EXPECT_EQ(line["bytes_read"], 3000);
  EXPECT_EQ(line["bytes_written"], 0);
  EXPECT_EQ(line["read_ops"], 3);
  EXPECT_EQ(line["write_ops"], 0);
  EXPECT_EQ(line["metadata_ops"], 4);
  EXPECT_EQ(line["wall_s"], 10);
  EXPECT_EQ(line["dropped"], 0);
  EXPECT_TRUE(line["io_s"].is_number());
  EXPECT_EQ(line["coverage"]["rchar"]["kernel"], 4000);
  EXPECT_EQ(line["coverage"]["rchar"]["seen"], 3000);
  EXPECT_DOUBLE_EQ(line["coverage"]["rchar"]["fraction"].get<double>(), 0.75);
  EXPECT_EQ(line["coverage"]["ring_bytes"], 0);
  EXPECT_EQ(line["coverage"]["mapped_bytes"], 0);
}

TEST_F(SessionJsonTest, AFileLineHasTheDocumentedFields) {
  const FileSums sums(session_);
  std::FILE* const out = std::tmpfile();
  ASSERT_OK(write_files_json(sums, {}, out));
  std::string text(size_t(std::ftell(out)), '\0');
  std::rewind(out);
  ASSERT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
  std::fclose(out);
  std::istringstream lines(text);
  std::map<std::string, Json> files;
  for (std::string line; std::getline(lines, line);) {
    const auto file = Json::parse(line);
    files[file["path"].get<std::string>()] = file;
  }
  ASSERT_EQ(files.size(), 2U);
  ASSERT_TRUE(files.contains("/data/\"b\"\n\\xff"));
  const auto& a = files.at("/data/a");
  for (const char* member : {"opens", "reads", "writes", "stats", "seeks", "syncs", "mmaps", "bytes_read",
                             "bytes_written", "read_time_s", "write_time_s", "meta_time_s",
                             "sequential_reads", "consecutive_reads", "first_ns", "last_ns", "processes"})
    EXPECT_TRUE(a[member].is_number()) << member;
  EXPECT_EQ(a["kind"], "file");
  EXPECT_EQ(a["read_sizes"]["0_100"], 2);
  EXPECT_EQ(a["read_sizes"]["1g_plus"], 0);
  EXPECT_EQ(a["layers"]["posix"]["bytes_read"], 2000);
  for (const char* layer : {"stdio", "mpiio", "hdf5"}) EXPECT_TRUE(a["layers"][layer].empty()) << layer;
  EXPECT_DOUBLE_EQ(a["read_time_s"].get<double>(), 2e-6);
  EXPECT_EQ(files.at("/data/\"b\"\n\\xff")["layers"]["stdio"]["reads"], 1);
}

TEST_F(SessionJsonTest, CsvHasARowForEachFile) {
  const FileSums sums(session_);
  const fs::path path = folder_.path() / "files.csv";
  auto file = WholeFile::create(path.string(), "the export");
  ASSERT_OK(file);
  ASSERT_OK(export_csv(sums, {}, *file));
  EXPECT_FALSE(fs::exists(path)) << "before it is whole";
  ASSERT_OK(file->publish());
  const std::string text = text_of_file(path);
  const std::string heading = text.substr(0, text.find('\n'));
  const size_t row = text.find("\n/data/a,file,2000,1,1,");
  ASSERT_NE(row, std::string::npos) << text;
  const std::string first = text.substr(row + 1, text.find('\n', row + 1) - row - 1);
  EXPECT_EQ(std::count(first.begin(), first.end(), ','), std::count(heading.begin(), heading.end(), ','));
  EXPECT_NE(text.find("\n\"/data/\"\"b\"\"\n\\xff\","), std::string::npos);
}

TEST_F(SessionJsonTest, ChromeGetsATrackForEachFileAndThread) {
  const FileSums sums(session_);
  const fs::path path = folder_.path() / "trace.json";
  auto file = WholeFile::create(path.string(), "the export");
  ASSERT_OK(file);
  const auto events = export_chrome(session_, sums, {}, *file);
  ASSERT_OK(events);
  EXPECT_EQ(*events, 3U);  // one call, which is on two tracks (file and thread), and one span
  ASSERT_OK(file->publish());
  const auto trace = Json::parse(text_of_file(path));
  std::vector<Json> calls;
  std::vector<std::string> tracks;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "posix") calls.push_back(event);
    if (event["name"] == "thread_name") tracks.push_back(event["args"]["name"].get<std::string>());
  }
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]["pid"], 100);
  EXPECT_EQ(calls[0]["tid"], 100);
  EXPECT_DOUBLE_EQ(calls[0]["ts"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(calls[0]["dur"].get<double>(), 1.5);
  EXPECT_EQ(calls[0]["args"]["file"], "/data/a");
  EXPECT_EQ(calls[0]["args"]["offset"], 4096);
  EXPECT_EQ(calls[1]["args"]["thread"], 100);
  EXPECT_NE(calls[1]["pid"], 100);
  EXPECT_EQ(tracks, std::vector<std::string>{"/data/a"});
}

TEST_F(SessionJsonTest, RecordsHaveDeclaredMetricsAndTheNamedTier) {
  const FileSums sums(session_);
  const auto tier = parse_named_tier("fast=/data/");
  ASSERT_OK(tier);
  EXPECT_EQ(tier->path, "/data");
  EXPECT_ERRC(Errc::invalid_argument, parse_named_tier("/data"));
  const std::vector<Record> records = records_of(session_, sums, {}, {*tier}, {"penstock"});
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].command, "profile");
  for (const auto& [name, metric] : records[0].metrics)
    EXPECT_TRUE(is_declared(name, metric, session_metrics::kAll)) << name;
  EXPECT_EQ(metric_value(records[0], "tier_bytes_read"), 3000);
  EXPECT_EQ(metric_value(records[0], "payload_bytes"), 500) << "what the program named as read";
  EXPECT_NEAR(metric_value(records[0], "payload_bytes_per_s").value(), 500 / 8e-6, 1);
  EXPECT_EQ(parameter_number(records[0], "threads"), 1);
  EXPECT_EQ(tier_name(records[0]), "fast");
}

TEST(SessionRecords, RatesOfRepeatsExcludeTheTimeBetweenThem) {
  ScratchFolder folder;
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 1, 7000);
  bytes.add_file("/proc/self/status", 100, 1, 5000);
  bytes.add_file("/other/small", 100, 1, 10);
  const auto span = [&](int64_t begin, int64_t end, uint32_t repeat, uint32_t thread) {
    bytes.add(penstock_span{1'000'000'000 + begin, 1'000'000'000 + end, PENSTOCK_NO_NUMBER, 1000, repeat,
                            thread, PENSTOCK_READ, 0, 0});
  };
  span(0, 1000, 0, 100);
  span(0, 900, 0, 101);
  span(50'000, 52'000, 1, 100);
  span(50'000, 51'900, 1, 102);
  bytes.write(folder.path());
  const fs::path paths[] = {folder.path()};
  const Session session = open_session(paths).value();
  const FileSums sums(session);
  const std::vector<Record> all = records_of(session, sums, {}, {}, {"penstock"});
  ASSERT_EQ(all.size(), 1U) << "/proc is no tier";
  EXPECT_EQ(parameter_number(all[0], "threads"), 2);
  EXPECT_EQ(metric_value(all[0], "payload_bytes"), 4000);
  EXPECT_NEAR(metric_value(all[0], "wall_s").value(), 3e-6, 1e-12);
  const Metric* rate = find_metric(all[0], "payload_bytes_per_s");
  ASSERT_NE(rate, nullptr);
  ASSERT_EQ(rate->samples.size(), 2U);
  EXPECT_NEAR(rate->samples[0], 2e9, 1);
  EXPECT_NEAR(rate->samples[1], 1e9, 1);
  const std::vector<NamedTier> named{{"small", "/other"}};
  const std::vector<Record> only = records_of(session, sums, {}, named, {"penstock"});
  ASSERT_EQ(only.size(), 1U) << "what was named, however little it holds, and nothing else";
  EXPECT_EQ(only[0].parameters["tier"], "small");
}

TEST(SessionRecords, TheRateIsThatOfTheFolderThatNearlyAllIsReadFrom) {
  ScratchFolder folder;
  SessionBytes bytes(100);
  const auto add = [&](const std::string& path, uint32_t thread, uint64_t size, double from_s, double to_s) {
    penstock_counters counters = bytes.counters_of(path, thread, 1, size);
    const uint64_t ticks = counters.first_read_ticks;
    counters.first_read_ticks = ticks + uint64_t(from_s * 1e9);
    counters.last_read_ticks = ticks + uint64_t(to_s * 1e9);
    bytes.add(counters);
  };
  // A setting is read long before the data and a log long after, by the same thread.
  add("/usr/lib/ssl/openssl.cnf", 100, 12'000, 0, 0.1);
  for (int i = 0; i < 10; ++i) add("/data/photos/train/" + std::to_string(i) + "/a.jpg", 100, 100'000, 8, 10);
  add("/var/log/x", 100, 5'000, 20, 21);
  bytes.write(folder.path());
  const fs::path paths[] = {folder.path()};
  const Session session = open_session(paths).value();
  const FileSums sums(session);
  const std::vector<NamedTier> named{{"all", "/"}};
  const std::vector<Record> only = records_of(session, sums, {}, named, {"penstock"});
  ASSERT_EQ(only.size(), 1U);
  EXPECT_EQ(metric_value(only[0], "payload_bytes"), 1'017'000) << "every file of a tier that was named";
  const std::vector<Record> all = records_of(session, sums, {}, {}, {"penstock"});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].corpus["folder"], "/data/photos/train");
  EXPECT_EQ(metric_value(all[0], "payload_bytes"), 1'000'000);
  EXPECT_EQ(metric_value(all[0], "tier_bytes_read"), 1'017'000);
  EXPECT_NEAR(metric_value(all[0], "wall_s").value() * 10, metric_value(only[0], "wall_s").value(), 1.1);
}

TEST(SessionRecords, AMountThatWasOnlyWrittenToIsNoTierOfReading) {
  ScratchFolder folder;
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 1, 7000);
  penstock_counters written = bytes.counters_of("/dev/shm/torch_1", 100, 0, 0);
  written.bytes_written = 90'000;
  written.writes = 1;
  bytes.add(written);
  bytes.write(folder.path());
  const fs::path paths[] = {folder.path()};
  const Session session = open_session(paths).value();
  const std::vector<Record> records = records_of(session, FileSums(session), {}, {}, {"penstock"});
  ASSERT_FALSE(records.empty());
  for (const Record& record : records)
    EXPECT_GT(metric_value(record, "tier_bytes_read").value(), 0) << record.parameters;
}

TEST(JsonText, IsValidJsonForAnyName) {
  std::string out;
  append_json_text(out, "/plain/name");
  EXPECT_EQ(out, "\"/plain/name\"");
  out.clear();
  append_json_text(out, std::string_view("\x00\x1f\"\\\xc3\xa4\xff", 7));
  EXPECT_EQ(Json::parse(out).get<std::string>(), std::string("\x00\x1f\"\\\\\xc3\xa4", 7) + "\\xff");
}

}  // namespace
}  // namespace penstock
