#include "profiling/spans/timeline_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "io_backends/core/json.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class TimelineFileTest : public ::testing::Test {
 protected:
  // The whole file that is written for two ranks with the same spans.
  std::string written(const std::string& name, const std::vector<penstock_span>& spans) {
    const std::string path = (folder_ / name).string();
    auto file = TimelineFile::create(path, timeline_format(path).value()).value();
    EXPECT_TRUE(file.begin({.stage_names = {"decode", "resize"},
                            .object = [](uint64_t sample, std::string& scratch) -> std::string_view {
                              scratch = "a,\"b\"\xff/" + std::to_string(sample);
                              return scratch;
                            },
                            .start_ns = 1'000'000'000,
                            .wall_minus_span_ns = 1'700'000'000'000'000'000})
                    .ok());
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(file.begin_rank({rank, 4711 + rank, "host", {{7, "worker 0"}}}).ok());
      EXPECT_TRUE(file.add(spans).ok());
    }
    EXPECT_TRUE(file.close().ok());
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  void SetUp() override {
    std::string path = (fs::temp_directory_path() / "penstock-timeline-XXXXXX").string();
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

penstock_span read_span() {
  return {1'000'000'007, 1'250'000'010, 17, 4096, 2, 7, PENSTOCK_READ, 0, 0};
}

TEST_F(TimelineFileTest, CsvHasThePublishedColumnsAndExactTimes) {
  const std::string text = written(
      "run.csv", {read_span(),
                  {1'000'000'000, 1'000'000'000, 3, 0, 0, 7, PENSTOCK_TRAIN, 0, 0},
                  {1, 2, 17, 0, 0, 7, PENSTOCK_TRANSFORM, 1, 0},
                  {1, 2, PENSTOCK_NO_NUMBER, 0, PENSTOCK_NO_EPOCH, 7, PENSTOCK_WAIT, PENSTOCK_WAIT_ROOM, 0}});
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(
      line,
      "Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process ID,Current Thread");
  std::getline(lines, line);
  EXPECT_EQ(line,
            "2,0,File Read,\"sample 17 of a,\"\"b\"\"\xff/17\",1700000001.000000007,1700000001.250000010,"
            "0.250000003,4711,7");
  std::getline(lines, line);
  EXPECT_EQ(line, "0,0,Training Step,step 3,1700000001.000000000,1700000001.000000000,0.000000000,4711,7");
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, 11), "0,0,Resize,");
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, 20), "-1,0,Wait for Room,,");
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, 14), "2,1,File Read,");
  EXPECT_NE(line.find(",4712,7"), std::string::npos);
}

TEST_F(TimelineFileTest, ChromeGetsCompleteEventsInMicrosecondsAndNames) {
  penstock_span early = read_span();
  early.begin_ns = 999'999'999;  // before the run's time 0, because another rank's clock may differ
  const auto trace = Json::parse(written("run.json", {read_span(), early}));
  std::vector<Json> events, names;
  for (const auto& event : trace["traceEvents"]) (event["ph"] == "X" ? events : names).push_back(event);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["name"], "read");
  EXPECT_DOUBLE_EQ(events[0]["ts"].get<double>(), 0.007);
  EXPECT_DOUBLE_EQ(events[0]["dur"].get<double>(), 250000.003);
  EXPECT_DOUBLE_EQ(events[1]["ts"].get<double>(), -0.001);
  EXPECT_EQ(events[0]["args"]["sample"], 17);
  EXPECT_EQ(events[0]["args"]["epoch"], 2);
  EXPECT_EQ(events[0]["args"]["bytes"], 4096);
  EXPECT_EQ(events[0]["args"]["object"], "a,\"b\"\xEF\xBF\xBD/17");
  EXPECT_EQ(events[2]["pid"], 1);
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[0]["args"]["name"], "rank 0 (host, process 4711)");
  EXPECT_EQ(names[1]["tid"], 7);
  EXPECT_EQ(names[1]["args"]["name"], "worker 0");
}

TEST_F(TimelineFileTest, WithoutSpansTheFileIsStillValid) {
  EXPECT_EQ(Json::parse(written("run.json", {}))["traceEvents"].size(), 4U);
}

TEST_F(TimelineFileTest, SkipsUnknownComponents) {
  penstock_span later = read_span();
  later.component = 999;
  const std::string text = written("run.csv", {later});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(TimelineFileTest, ReportsThePathThatCannotBeWritten) {
  const auto file = TimelineFile::create((folder_ / "none" / "run.csv").string(), TimelineFormat::csv);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message().find("none/run.csv"), std::string::npos);
}

TEST(TimelineFormats, DependOnTheEndOfThePath) {
  EXPECT_EQ(timeline_format("a.csv").value(), TimelineFormat::csv);
  EXPECT_EQ(timeline_format("a.b/c.json").value(), TimelineFormat::chrome);
  EXPECT_EQ(timeline_format("a.txt").error().code, Errc::invalid_argument);
  EXPECT_EQ(timeline_format("csv").error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace penstock
