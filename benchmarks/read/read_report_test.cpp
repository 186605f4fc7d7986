#include "benchmarks/read/read_report.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_sweep.hpp"
#include "datagen/objects/scripted_backend.hpp"

namespace penstock {
namespace {

class ReadReport : public testing::Test {
 protected:
  ReadReport() : corpus_{.tier = {}, .manifest = scripted_files(backend_, 3), .name = "data", .scan = {}} {
    corpus_.tier.name = "disk";
    RepeatFigures repeat;
    repeat.tally.samples = 10;
    repeat.tally.bytes = 1000;
    repeat.tally.wall_s = 1;
    repeat.tally.elapsed_s = 2;
    repeat.cache.client_data = "cold";
    repeat.read_call_bytes = 2000;
    repeat.device_bytes = 2000;
    cell_.repeats.push_back(std::move(repeat));
    cell_.baseline_samples_per_s = {20};
  }
  Record record() const {
    Trial trial;
    record_cell(cell_, cell_, corpus_.tier, corpus_.manifest, 5000, trial);
    return trial.record();
  }
  std::string heading() const {
    const Record row = record();
    return read_heading(corpus_, {&row, 1}, Output{});
  }
  std::string table() const {
    const Record row = record();
    return read_table(corpus_, {&row, 1}, Output{});
  }

  ScriptedBackend backend_;
  Corpus corpus_;
  ReadCell cell_;
};

TEST_F(ReadReport, EveryMetricIsInTheTableOfTheCommand) {
  cell_.repeats.front().tally.due_samples = 12;
  cell_.repeats.front().tally.due_within_s = 1;
  cell_.repeats.front().tally.stonewall_bytes = 500;
  cell_.repeats.front().tally.latency_ns.add(5);
  cell_.repeats.front().tally.late_ns.add(5);
  cell_.repeats.front().tally.ranks = {{500, 1}, {500, 2}};
  cell_.repeats.front().tally.calls[CallKind::read].ns.add(5);
  cell_.ceiling_bytes_per_s = 1e9;
  const Record row = record();
  EXPECT_EQ(row.parameters["rank_bytes_least"], 1) << "the first of three files";
  EXPECT_EQ(row.parameters["rank_bytes_most"], 5) << "the two others";
  EXPECT_GT(row.metrics.size(), 25U);
  for (const auto& [name, metric] : row.metrics)
    EXPECT_TRUE(is_declared(name, metric, read_metrics::kAll)) << name;
}

TEST_F(ReadReport, OldRecordsAreComparedByTheSameMetrics) {
  std::vector<std::string_view> names;
  for (const MetricInfo& metric : read_metrics::kAll)
    if (metric.headline) names.push_back(metric.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"payload_bytes_per_s", "errors", "calls.*"}));
}

TEST_F(ReadReport, BytesReadInTheRampCountForTheDeviceFraction) {
  EXPECT_EQ(record().cache["device_bytes_fraction"], 1.0);
}

TEST_F(ReadReport, WithoutADeviceOfThisMachineThereIsNoDeviceFraction) {
  for (RepeatFigures& repeat : cell_.repeats) repeat.cache.client_data = "none";
  EXPECT_FALSE(record().cache.contains("device_bytes_fraction"));
  EXPECT_NE(heading().find("no client cache; server cache"), std::string::npos) << heading();
}

TEST_F(ReadReport, ARowShowsItsRatesAgainstTheBaseline) {
  EXPECT_NE(table().find("10.0"), std::string::npos);
  EXPECT_NE(table().find("0.50x"), std::string::npos);
}

// A table of cached reads shows their latencies in us: in ms they would be 0.000.
TEST_F(ReadReport, LatenciesHaveAUnitThatShowsThem) {
  Histogram& latencies = cell_.repeats.front().tally.latency_ns;
  for (const auto& [ns, unit] : {std::pair{500U, "p50 us"}, std::pair{5'000'000U, "p50 ms"}}) {
    latencies = Histogram();
    latencies.add(ns);
    EXPECT_NE(table().find(unit), std::string::npos) << table();
    EXPECT_NE(table().find(ns == 500 ? "0.50" : "5."), std::string::npos) << table();
  }
}

TEST_F(ReadReport, SpreadIsNextToTheRate) {
  cell_.repeats.push_back(cell_.repeats.front());
  cell_.repeats.back().tally.bytes = 1200;
  EXPECT_NE(table().find("spread"), std::string::npos);
  EXPECT_NE(table().find("18%"), std::string::npos) << table();
}

TEST_F(ReadReport, ColdMetadataAreReported) {
  EXPECT_EQ(heading().find("metadata"), std::string::npos);
  cell_.repeats.front().cache.client_data = "bypassed";
  cell_.repeats.front().cache.client_metadata = "cold";
  EXPECT_NE(heading().find("client data bypassed; client metadata cold"), std::string::npos) << heading();
}

TEST_F(ReadReport, TheScalingNoteAppearsOnlyIfRatiosNeedIt) {
  const auto note = [this](unsigned threads) {
    const Record first = record();
    ReadCell other = cell_;
    other.threads = threads;
    Trial trial;
    record_cell(other, cell_, corpus_.tier, corpus_.manifest, 5000, trial);
    const Record rows[] = {first, trial.record()};
    return scaling_note(rows);
  };
  EXPECT_EQ(note(cell_.threads + 1), "") << "one repeat is its own median";
  cell_.repeats.push_back(cell_.repeats.front());
  cell_.baseline_samples_per_s = {20, 20};
  EXPECT_EQ(note(cell_.threads), "") << "scaling is 1 by definition";
  EXPECT_TRUE(note(cell_.threads + 1).starts_with("scaling and baseline are medians"));
  cell_.baseline_samples_per_s.clear();
  EXPECT_TRUE(note(cell_.threads + 1).starts_with("scaling values are medians"));
}

TEST_F(ReadReport, AnEmulatedTierIsDescribedAsOne) {
  corpus_.tier.spec = "disk=posix:/p,limit=50MB/s";
  const Record row = record();
  EXPECT_NE(read_heading(corpus_, {&row, 1}, Output{}).find("disk: emulated (limit=50MB/s); "),
            std::string::npos);
}

TEST_F(ReadReport, AVerdictThatInvalidatesANumberReplacesIt) {
  cell_.judge(Verdict::not_cold, "9% is in the page cache");
  EXPECT_EQ(table().find("10.0"), std::string::npos);
  EXPECT_NE(table().find("not_cold"), std::string::npos);
  EXPECT_EQ(record().metrics.at("samples_per_s").samples.size(), 1U) << "the record keeps what was measured";
}

}  // namespace
}  // namespace penstock
