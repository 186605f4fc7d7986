#include "results/compare/history.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/compare/compare_testing.hpp"
#include "results/compare/gate_text.hpp"

namespace penstock {
namespace {

// Records of one run per day with these rates.
std::vector<Record> daily_records(const std::vector<double>& rates) {
  std::vector<Record> records;
  for (size_t i = 0; i < rates.size(); ++i) {
    Record record = run_of(rates[i], int(i));
    record.started = fmt::format("2026-{:02}-{:02}T03:00:00Z", 1 + i / 28, 1 + i % 28);
    records.push_back(record);
  }
  return records;
}

std::vector<double> rates_with_step(size_t n, size_t at, double after) {
  std::vector<double> rates = noise(n, 100, 1);
  for (size_t i = at; i < n; ++i) rates[i] *= after;
  return rates;
}

History history_of(const std::vector<Record>& records, CompareSettings settings = {}) {
  settings.commands = known_commands();
  auto history = inspect_history(set_of(records), settings);
  EXPECT_TRUE(history.ok());
  return history.ok() ? *history : History();
}

TEST(History, NamesTheRunThatChanged) {
  const History history = history_of(daily_records(rates_with_step(60, 40, 0.8)));
  ASSERT_EQ(history.rows.size(), 1U);
  const HistoryRow& row = history.rows[0];
  EXPECT_TRUE(row.changed);
  EXPECT_TRUE(row.is_worse);
  EXPECT_EQ(row.runs, 60U);
  EXPECT_EQ(row.change->index, 40U);
  EXPECT_EQ(row.first_changed_run, "2026-02-13T03:00:00Z, runs/x.jsonl");
  EXPECT_TRUE(change_text(row).starts_with("WORSE: -19% since run 41")) << change_text(row);
  EXPECT_NE(change_text(row).find("since run 41 of 60 (2026-02-13"), std::string::npos);
}

TEST(History, RunsAreSortedByTime) {
  std::vector<Record> records = daily_records(rates_with_step(60, 40, 0.8));
  std::swap(records.front(), records.back());
  std::swap(records[10], records[50]);
  EXPECT_EQ(history_of(records).rows[0].change->index, 40U);
}

TEST(History, ImprovementsAreNoWarningAndSmallChangesDoNotCount) {
  const HistoryRow better = history_of(daily_records(rates_with_step(60, 30, 1.2))).rows[0];
  EXPECT_TRUE(better.changed);
  EXPECT_FALSE(better.is_worse);
  EXPECT_FALSE(history_of(daily_records(rates_with_step(60, 30, 0.97))).rows[0].changed);
  EXPECT_TRUE(
      history_of(daily_records(rates_with_step(60, 30, 0.97)), {.least_effect = 0.01}).rows[0].changed);
}

TEST(History, FewRunsHaveNoVerdict) {
  const HistoryRow row = history_of(daily_records(rates_with_step(29, 15, 0.5))).rows[0];
  EXPECT_FALSE(row.change);
  EXPECT_FALSE(row.changed);
  EXPECT_EQ(change_text(row), "29 runs; 30 are needed");
}

TEST(History, UnusableRecordsDoNotCountAsRuns) {
  std::vector<Record> records = daily_records(rates_with_step(32, 16, 1));
  for (size_t i = 0; i < 5; ++i) records[i].verdict = Verdict::failed;
  EXPECT_EQ(history_of(records).rows[0].runs, 27U);
}

TEST(History, EveryMachineAndArmHasASeriesOfItsOwn) {
  std::vector<Record> records = daily_records(noise(80, 100, 1));
  for (size_t i = 0; i < 80; i += 2) {
    records[i].environment["host"] = "slow";
    records[i].metrics["payload_bytes_per_s"].samples[0] /= 10;
  }
  const History history = history_of(records);
  ASSERT_EQ(history.rows.size(), 2U);
  for (const HistoryRow& row : history.rows) {
    EXPECT_EQ(row.runs, 40U);
    EXPECT_FALSE(row.changed);
  }
  EXPECT_NE(history.rows[0].cell.find(" on h"), std::string::npos);
}

TEST(History, ANewParameterDoesNotBeginAnotherSeries) {
  std::vector<Record> records = daily_records(rates_with_step(60, 40, 0.8));
  for (size_t i = 40; i < 60; ++i) records[i].parameters["brand_new"] = 7;
  const History history = history_of(records);
  ASSERT_EQ(history.rows.size(), 1U);
  EXPECT_EQ(history.rows[0].runs, 60U);
  EXPECT_TRUE(history.rows[0].changed);
}

// A small p needs a long series. With hundreds of series, p must be smaller than series of this length can
// give.
TEST(History, AmongHundredsOfSeriesAChangeIsOnlySuspected) {
  constexpr uint64_t kSeries = 300;
  std::vector<Record> records;
  for (uint64_t series = 0; series < kSeries; ++series) {
    std::vector<double> rates = noise(100, 100, series);
    for (size_t i = 60; series == 17 && i < rates.size(); ++i) rates[i] *= 0.7;
    for (Record& record : daily_records(rates)) {
      record.parameters["threads"] = series + 1;
      records.push_back(std::move(record));
    }
  }
  const History history = history_of(records);
  ASSERT_EQ(history.rows.size(), kSeries);
  EXPECT_FALSE(history.rows[0].changed);
  EXPECT_TRUE(history.rows[0].suspected);
  EXPECT_TRUE(change_text(history.rows[0]).starts_with("perhaps worse: -3")) << change_text(history.rows[0]);
  EXPECT_EQ(history.rows[0].change->index, 60U);
  EXPECT_NE(history.rows[0].cell.find("threads 18"), std::string::npos) << history.rows[0].cell;
  EXPECT_FALSE(history.rows[1].suspected);
  ASSERT_EQ(history.remarks.size(), 1U);
  EXPECT_TRUE(history.remarks[0].starts_with("1 of 300 series would count as changed if tested alone"));
}

TEST(History, NeedsRecordsAndMetrics) {
  EXPECT_FALSE(inspect_history(set_of({}), {}).ok());
  EXPECT_FALSE(inspect_history(set_of(daily_records({1, 2})), {.metrics = {"nothing"}}).ok());
}

}  // namespace
}  // namespace penstock
