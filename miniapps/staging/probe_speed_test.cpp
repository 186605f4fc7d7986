#include "miniapps/staging/probe_speed.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io_backends/decorators/wrapper.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class ProbeSpeed : public testing::Test {
 protected:
  ProbeSpeed() {
    fs::create_directories(slow());
    for (size_t i = 0; i < 40; ++i) {
      FileThatWasRead& file = work_.files.emplace_back();
      file.name = "file-" + std::to_string(100 + i);
      file.bytes = 1000 * (i + 1);
      file.request_bytes = double(file.bytes);
      std::ofstream(slow() / file.name, std::ios::binary) << std::string(file.bytes, 'x');
    }
  }
  fs::path slow() const { return folder_.path() / "slow"; }
  fs::path fast() const { return folder_.path() / "fast"; }

  static SpeedProbe brief() {
    SpeedProbe probe;
    probe.threads = {1, 2};
    probe.copy_threads = 2;
    probe.min_time = milliseconds(2);
    probe.repeats = 2;
    probe.log = probe.warn = [](std::string_view) {};
    return probe;
  }

  ScratchFolder folder_;
  SessionWork work_;
};

void expect_filled(const SpeedTable& table) {
  ASSERT_GT(table.sizes.size(), 1U);
  for (size_t i = 1; i < table.sizes.size(); ++i) EXPECT_GT(table.sizes[i], table.sizes[i - 1]);
  ASSERT_EQ(table.read_s.size(), table.threads.size());
  for (const auto& of_threads : table.read_s) {
    ASSERT_EQ(of_threads.size(), table.sizes.size());
    for (const auto& repeats : of_threads) {
      ASSERT_EQ(repeats.size(), 2U);
      for (const double seconds : repeats) EXPECT_GT(seconds, 0);
    }
  }
}

TEST_F(ProbeSpeed, MeasuresEachSizeAndLeavesNothing) {
  for (const bool cold : {true, false}) {
    Tier from = open_tier("slow=posix:" + slow().string(), kNoNamedTiers).value();
    Tier to = open_tier("fast=posix:" + fast().string(), kNoNamedTiers).value();
    SpeedProbe probe = brief();
    probe.cold = cold;
    const auto speeds = probe_speeds(from, to, work_, probe);
    ASSERT_OK(speeds);
    expect_filled(speeds->slow);
    expect_filled(speeds->fast);
    EXPECT_EQ(speeds->fast.write_s.size(), speeds->fast.sizes.size());
    EXPECT_TRUE(fs::is_empty(fast()));
  }
}

// A back end whose files cannot be dropped from the page cache, because their paths lead nowhere.
class LostPaths final : public BackendWrapper {
 public:
  using BackendWrapper::BackendWrapper;
  std::optional<fs::path> native_path(std::string_view name) const override {
    return fs::path("/no/such/folder") / name;
  }
};

TEST_F(ProbeSpeed, FilesThatStayInThePageCacheAreWarnedOfOnce) {
  for (const bool cold : {true, false}) {
    Tier from = open_tier("slow=posix:" + slow().string(), kNoNamedTiers).value();
    Tier to = open_tier("fast=posix:" + fast().string(), kNoNamedTiers).value();
    from.facts.memory = to.facts.memory = false;
    from.backend = std::make_unique<LostPaths>(std::move(from.backend));
    std::vector<std::string> warnings;
    SpeedProbe probe = brief();
    probe.cold = cold;
    probe.warn = [&](std::string_view text) { warnings.emplace_back(text); };
    ASSERT_OK(probe_speeds(from, to, work_, probe));
    ASSERT_EQ(warnings.size(), cold ? 1U : 0U);
    if (!cold) continue;
    EXPECT_NE(warnings[0].find("'/no/such/folder/file-1"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("tier 'slow'"), std::string::npos) << warnings[0];
  }
}

TEST_F(ProbeSpeed, ALatencyIsSeen) {
  Tier from = open_tier("slow=posix:" + slow().string() + ",latency=3ms", kNoNamedTiers).value();
  Tier to = open_tier("fast=mem:probe-speed-test", kNoNamedTiers).value();
  SpeedProbe probe = brief();
  probe.cold = false;
  const auto speeds = probe_speeds(from, to, work_, probe);
  ASSERT_OK(speeds);
  for (const auto& repeats : speeds->slow.read_s[0])
    for (const double seconds : repeats) EXPECT_GE(seconds, 3e-3);
}

TEST_F(ProbeSpeed, SaysWhatItCannotMeasure) {
  Tier from = open_tier("slow=posix:" + slow().string(), kNoNamedTiers).value();
  Tier full = open_tier("fast=posix:" + fast().string() + ",capacity=1MB", kNoNamedTiers).value();
  EXPECT_ERRC(Errc::no_space, probe_speeds(from, full, work_, brief()), "--speeds");
  Tier to = open_tier("fast=posix:" + fast().string(), kNoNamedTiers).value();
  fs::remove(slow() / "file-100");
  EXPECT_ERRC(Errc::not_found, probe_speeds(from, to, work_, brief()));
  SessionWork empty;
  empty.files.push_back({.name = "file-101"});
  EXPECT_ERRC(Errc::not_found, probe_speeds(from, to, empty, brief()), "empty");
}

TEST(ProbeThreads, AreOneTheRootAndTheMost) {
  EXPECT_EQ(probe_threads(1), (std::vector<unsigned>{1}));
  EXPECT_EQ(probe_threads(2), (std::vector<unsigned>{1, 2}));
  EXPECT_EQ(probe_threads(16), (std::vector<unsigned>{1, 4, 16}));
}

Record record_of(const std::string& spec, unsigned threads, double files_per_s, double bytes_per_s) {
  Record record;
  record.command = "tiers";
  record.parameters = {{"threads", threads}};
  record.tiers["data"] = {{"spec", spec}};
  record.metrics["read.small_files.112k.1.ops_per_s"] = {
      "1/s", Better::higher, "repeat", {files_per_s, files_per_s}};
  record.metrics["read.sequential.1m.1.bytes_per_s"] = {
      "B/s", Better::higher, "repeat", {bytes_per_s, bytes_per_s}};
  record.metrics["write.sequential.1m.1.bytes_per_s"] = {"B/s", Better::higher, "repeat", {1e8}};
  record.metrics["metadata.create.ops_per_s"] = {"1/s", Better::higher, "repeat", {1000}};
  return record;
}

TEST(RecordedSpeeds, ComeFromRecordsOfTheSameTiers) {
  Tier slow = open_tier("slow=mem:recorded-slow", kNoNamedTiers).value();
  Tier fast = open_tier("fast=mem:recorded-fast", kNoNamedTiers).value();
  const std::vector<Record> records{
      record_of("slow=mem:recorded-slow", 4, 400, 2e8), record_of("slow=mem:recorded-slow", 1, 100, 1e8),
      record_of("fast=mem:recorded-fast", 1, 10'000, 1e9), record_of("other=mem:x", 1, 1, 1)};
  const auto speeds = recorded_speeds(slow, fast, records);
  ASSERT_OK(speeds);
  EXPECT_EQ(speeds->slow.threads, (std::vector<unsigned>{1, 4}));
  EXPECT_DOUBLE_EQ(speeds->slow.read_s[0][0][0], 0.01);
  const LineFit line = fit_line(speeds->slow, median_times(speeds->slow), 0);
  EXPECT_NEAR(line.bytes_per_s, 1e8, 1);
  EXPECT_NEAR(line.latency_s, 0.01 - 114688 / 1e8, 1e-6);
  EXPECT_EQ(speeds->fast.write_s.size(), 2U);
  std::vector<Record> with_seeks = records;
  with_seeks[1].metrics["read.random.4k.1.ops_per_s"] = {"1/s", Better::higher, "repeat", {40}};
  EXPECT_NEAR(recorded_speeds(slow, fast, with_seeks)->slow.read_s[0][0][0], 0.025 + 110592 / 1e8, 1e-9)
      << "the best of several loops is not one file after the other";
  EXPECT_ERRC(Errc::not_found, recorded_speeds(slow, fast, std::span(records).first(2)),
              "penstock tiers --probe --tier fast=");
}

}  // namespace
}  // namespace penstock
