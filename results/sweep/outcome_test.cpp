#include "results/sweep/outcome.hpp"

#include <gtest/gtest.h>

#include "io_backends/testing/testing.hpp"
#include "results/record/records_testing.hpp"
#include "results/sweep/runner.hpp"

namespace penstock {
namespace {

SweepSpec outcome_spec(const std::string& more) {
  auto spec = parse_sweep("name: s\ncommand: read\n" + more, "x.yaml");
  EXPECT_OK(spec);
  return *std::move(spec);
}

SweepRun run_of(const std::string& arm, std::optional<double> value, double seconds = 2) {
  SweepRun run;
  run.arm = arm;
  run.seconds = seconds;
  SweepFigure figure;
  figure.metric = "m";
  figure.unit = "1/s";
  figure.better = Better::higher;
  figure.value = value;
  if (!value) {
    figure.verdict = Verdict::failed;
    figure.reason = "broken";
  }
  run.figures.push_back(figure);
  return run;
}

// A history with one turn for each value, of the only cell of a sweep without a grid.
SweepHistory history_of(const std::vector<double>& values, const std::string& cell = "") {
  SweepHistory history;
  for (size_t i = 0; i < values.size(); ++i)
    history.add(SweepTurn{.cell = cell, .round = i, .runs = {run_of("", values[i])}});
  return history;
}

std::vector<SweepCell> outcome_cells(const SweepSpec& spec) {
  return *sweep_cells(spec);
}

bool first_cell_is_settled(const SweepSpec& spec, const SweepHistory& history) {
  const auto cells = outcome_cells(spec);
  return is_settled(spec, turns_of(history, cells[0]));
}

TEST(SweepUntil, StopsACellWhoseIntervalIsNarrow) {
  const SweepSpec spec = outcome_spec("until: {metric: m, interval: 5%}\n");
  EXPECT_FALSE(first_cell_is_settled(spec, history_of({100, 100, 100, 100, 100})))
      << "five turns say nothing";
  EXPECT_TRUE(first_cell_is_settled(spec, history_of({100, 101, 102, 101, 100, 99})));
  EXPECT_FALSE(first_cell_is_settled(spec, history_of({100, 101, 110, 101, 100, 99})))
      << "the whole range is the interval of six";
  EXPECT_TRUE(
      first_cell_is_settled(spec, history_of({100, 101, 110, 101, 100, 99, 100, 101, 100, 100, 99, 100})));
  EXPECT_FALSE(first_cell_is_settled(outcome_spec("repeats: 20\n"), history_of({1, 1, 1, 1, 1, 1, 1, 1})));
}

TEST(SweepUntil, WithArmsUsesTheirRatio) {
  const SweepSpec spec = outcome_spec("until: {metric: m, interval: 5%}\narms: {base: {}, new: {}}\n");
  SweepHistory drifting;
  SweepHistory apart;
  for (uint64_t i = 0; i < 8; ++i) {
    const double drift = 100.0 * double(i + 1);
    drifting.add(SweepTurn{"", i, {run_of("new", 1.1 * drift), run_of("base", drift)}});
    apart.add(SweepTurn{"", i, {run_of("base", 100), run_of("new", i % 2 == 0 ? 100 : 120)}});
  }
  EXPECT_TRUE(first_cell_is_settled(spec, drifting)) << "both drift alike";
  EXPECT_FALSE(first_cell_is_settled(spec, apart));
}

TEST(SweepUntil, AFailedCellIsNeverSettled) {
  const SweepSpec spec = outcome_spec("until: {metric: m, interval: 5%}\n");
  SweepHistory history;
  for (uint64_t i = 0; i < 8; ++i) history.add(SweepTurn{"", i, {run_of("", std::nullopt)}});
  EXPECT_FALSE(first_cell_is_settled(spec, history));
  EXPECT_EQ(sweep_exit_code(history), 1);
  EXPECT_EQ(sweep_exit_code(history_of({1})), 0);
}

TEST(SweepRows, HaveMediansIntervalsAndTheWorstVerdict) {
  const SweepSpec spec = outcome_spec("grid: {threads: [1, 2]}\n");
  const auto cells = outcome_cells(spec);
  SweepHistory history = history_of({5, 1, 3, 2, 4, 6}, "threads=2");
  history.add(SweepTurn{"threads=1", 0, {run_of("", 7)}});
  history.add(SweepTurn{"threads=1", 1, {run_of("", std::nullopt)}});
  history.add(SweepTurn{"threads=9", 1, {run_of("", 1)}});  // a cell that the grid does not have
  const auto rows = sweep_rows(spec, cells, history);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].cell->title, "threads 1");
  EXPECT_EQ(rows[0].turns, 2U);
  EXPECT_EQ(rows[0].values, std::vector<double>{7});
  EXPECT_FALSE(rows[0].interval);
  EXPECT_EQ(rows[0].verdict, Verdict::failed);
  EXPECT_EQ(rows[1].interval->low, 1);
  EXPECT_EQ(rows[1].interval->high, 6);
  const std::string table = sweep_table(rows, Output{});
  EXPECT_NE(table.find("threads 2"), std::string::npos);
  EXPECT_NE(table.find("failed"), std::string::npos);
  EXPECT_EQ(Json::parse(sweep_row_line(rows[1]))["median"], 3.5);
}

TEST(SweepRows, ShowTheThroughputNextToAnotherMetric) {
  const SweepSpec spec = outcome_spec("");
  const auto cells = outcome_cells(spec);
  SweepHistory history;
  for (uint64_t i = 0; i < 3; ++i) {
    SweepRun run = run_of("", 10);
    run.figures[0].bytes_per_s = double(i + 1) * 100 * 1048576;
    history.add(SweepTurn{"", i, {run}});
  }
  const auto rows = sweep_rows(spec, cells, history);
  ASSERT_EQ(rows.size(), 1U);
  const std::string table = sweep_table(rows, Output{});
  EXPECT_NE(table.find("MiB/s"), std::string::npos) << table;
  EXPECT_NE(table.find("200.0"), std::string::npos) << table;
  EXPECT_DOUBLE_EQ(Json::parse(sweep_row_line(rows[0]))["throughput_bytes_per_s"].get<double>(), 200.0 * 1048576);
  history = history_of({1});
  EXPECT_EQ(sweep_table(sweep_rows(spec, cells, history), Output{}).find("MiB/s"), std::string::npos)
      << "no column without figures";
}

TEST(SweepFigures, UseTheCommandsMetricOrTheRequestedOne) {
  std::vector<StoredRecord> records(2);
  records[0].record = read_cell("fast", 1, "cold", 100);
  records[1].record = read_cell("disk", 1, "cold", 50);
  auto figures = figures_of(records, "", kReadMetrics);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].metric, "samples_per_s");
  EXPECT_DOUBLE_EQ(figures[0].bytes_per_s.value_or(0), 100.0 * 1048576);
  EXPECT_EQ(figures[0].label, "fast");
  EXPECT_EQ(figures[1].label, "disk");
  figures = figures_of(std::span(records).first(1), "payload_bytes_per_s", kReadMetrics);
  EXPECT_EQ(figures[0].label, "");
  EXPECT_FALSE(figures[0].bytes_per_s) << "the figure is the throughput itself";
  EXPECT_DOUBLE_EQ(*figures[0].value, 100.0 * 1048576);
  EXPECT_FALSE(figures_of(records, "nothing", kReadMetrics)[0].value);
  records[0].record.verdict = Verdict::not_cold;
  EXPECT_FALSE(figures_of(records, "", kReadMetrics)[0].value) << "its number may not be used";
}

TEST(SweepFigures, AreAllHeadlinesIfTheFirstMetricIsOne) {
  static constexpr MetricInfo kTable[] = {{"reads", "B/s", Better::higher, "repeat", kHeadline},
                                          {"writes", "B/s", Better::higher, "repeat", kHeadline},
                                          {"files", "1", Better::higher, "repeat", kHeadline},
                                          {"family.*", "B/s", Better::higher, "repeat", kHeadline}};
  std::vector<StoredRecord> records(1);
  for (const char* const name : {"reads", "writes", "files", "family.a"})
    records[0].record.metrics[name] = {"B/s", Better::higher, "repeat", {1}, true};
  const auto figures = figures_of(records, "", kTable);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].metric, "reads");
  EXPECT_EQ(figures[1].metric, "writes");
}

TEST(SweepTimesTest, UsesTheCellsMedianThenTheMedianOfAllThenTheExpectedTime) {
  auto cells = outcome_cells(outcome_spec("grid: {threads: [1, 2]}\n"));
  const auto contains = [](const TimeRange& range, double seconds) {
    return range.low_s <= seconds && seconds <= range.high_s && range.high_s < 1.5 * range.low_s;
  };
  SweepTimes none{SweepHistory{}};
  cells[0].expected = {3, 4};
  EXPECT_EQ(none.turn(cells[0]).high_s, 4);
  SweepHistory history;
  for (uint64_t i = 0; i < 3; ++i)
    history.add(SweepTurn{"threads=1", i, {run_of("a", 1, 1.0 + double(i)), run_of("b", 1, 10)}});
  SweepTimes times(history);
  cells[0].expected = {100, 100};
  EXPECT_TRUE(contains(times.turn(cells[0]), 12)) << "both arms, one after the other";
  cells[1].expected = {3, 3};
  EXPECT_TRUE(contains(times.turn(cells[1]), 12));
  cells[1].expected = {100, 100};
  EXPECT_TRUE(contains(times.turn(cells[1]), 100));
  times.add(SweepTurn{"threads=2", 0, {run_of("a", 1, 5)}});
  EXPECT_TRUE(contains(times.turn(cells[1]), 5));
  EXPECT_EQ(rough_duration(0.2), "1 s");
  EXPECT_EQ(rough_duration(130), "3 min");
  EXPECT_EQ(rough_duration(7300), "2 h 2 min");
}

TEST(SweepTurnsLeft, CountsTurnsThatAreNeitherDoneNorSettled) {
  SweepWork work;
  work.spec = outcome_spec("grid: {threads: [1, 2]}\nrepeats: 10\nuntil: {metric: m, interval: 5%}\n");
  work.cells = outcome_cells(work.spec);
  EXPECT_EQ(turns_left(work, SweepHistory{}), 20U);
  EXPECT_EQ(turns_left(work, history_of({1, 9}, "threads=1")), 18U);
  EXPECT_EQ(turns_left(work, history_of({1, 1, 1, 1, 1, 1}, "threads=1")), 10U);
}

}  // namespace
}  // namespace penstock
