#include "miniapps/checkpoint_subcommands/view/saving_charts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"
#include "results/report/page_testing.hpp"

namespace penstock::report {
namespace {

Record saved(const std::string& arm, std::vector<double> block_s) {
  Record record = saving_cell(arm, 0, std::move(block_s));
  record.series["slow_bytes_written"] = {0.5, {0, 5e7, 2.5e7}};
  record.series["steps_ended"] = {0.5, {4, 0, 2}};
  if (arm != "direct") record.series["fast_bytes_written"] = {0.5, {1e8, 0}};
  return record;
}

TEST(Chart, SavesAreDrawnAsRatesOfBothTiersBelowTheSteps) {
  const std::vector<Record> records{saved("burst-buffer", {0.25})};
  const SavingRuns arm{"burst-buffer", {&records[0]}};
  EXPECT_DOUBLE_EQ(saving_length_s(arm), 1.5);
  std::vector<std::string> tiers;
  const SavingCharts charts = saving_charts(arm, 2, tiers, Output{.si_units = true});
  EXPECT_EQ(charts.rates.x, (std::vector<double>{0.5, 1, 1.5, 2}));
  EXPECT_EQ(charts.steps.x, charts.rates.x);
  EXPECT_TRUE(charts.steps.half_height);
  const Json rates = chart_json(charts.rates)["series"];
  ASSERT_EQ(rates.size(), 4U);
  EXPECT_EQ(rates[0]["y"].dump(), "[0.0,100.0,null,null]");
  EXPECT_EQ(rates[1]["label"], "disk: ceiling");
  EXPECT_EQ(rates[2]["y"].dump(), "[200.0,null,null,null]");
  EXPECT_EQ(chart_json(charts.steps)["series"][0]["y"].dump(), "[8.0,0.0,null,null]");
}

TEST(Chart, SavesWithAnInvalidIntervalAreNotDrawn) {
  Record record = saved("direct", {1});
  record.series["slow_bytes_written"].interval_s = 0;
  record.series["steps_ended"].interval_s = 1e300;
  std::vector<std::string> tiers;
  EXPECT_TRUE(saving_charts({"direct", {&record}}, 1e300, tiers, Output{}).rates.x.empty());
  EXPECT_TRUE(has(page_of({record}), "id=\"checkpoints\""));
}

}  // namespace
}  // namespace penstock::report
