#include "miniapps/checkpoint_subcommands/view/saving_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io_backends/core/cli/table.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "results/cells/cells.hpp"

namespace penstock::report {
namespace {

using namespace bench_metrics;

constexpr std::string_view kSavingSeries[] = {kSlowWritten, kFastWritten, kStepsEnded};

const Series* series_of(const Record& record, std::string_view name) {
  const auto found = record.series.find(std::string(name));
  return found == record.series.end() || found->second.values.size() < 2 || found->second.interval_s <= 0 ||
                 !std::isfinite(found->second.interval_s)
             ? nullptr
             : &found->second;
}

// Makes the chart's line of `series`: its rate in each interval, in `unit` per second. The line gets `points`
// points; those after the end of `series` are empty, and so is a last interval of unknown length.
ChartSeries line_of(std::string label, size_t colour, const Series& series, double unit, size_t points) {
  ChartSeries line{std::move(label), colour, Stroke::solid, false, {}, {}, {}};
  for (const double rate : series.rates()) line.y.emplace_back(rate / unit);
  line.y.resize(points);
  return line;
}

void add_ceiling(Chart& chart, const SavingRuns& arm, std::string_view part, const std::string& tier,
                 size_t colour, double unit) {
  const auto ceiling = metric_value(arm.first(), kCeilingOf.with(part));
  if (!ceiling || !ceilings_hold(arm.runs)) return;
  chart.series.push_back({tier + ": ceiling",
                          colour,
                          Stroke::dotted,
                          false,
                          std::vector<std::optional<double>>(chart.x.size(), *ceiling / unit),
                          {},
                          {}});
}

}  // namespace

double saving_length_s(const SavingRuns& arm) {
  double longest = 0;
  for (const std::string_view name : kSavingSeries)
    if (const Series* const series = series_of(arm.first(), name))
      longest = std::max(longest, double(series->values.size()) * series->interval_s);
  return longest;
}

SavingCharts saving_charts(const SavingRuns& arm, double until_s, std::vector<std::string>& tiers,
                           const Output& output) {
  SavingCharts charts;
  const Record& record = arm.first();
  const Series* const slow = series_of(record, kSlowWritten);
  if (slow == nullptr) return charts;
  const std::string run_note =
      arm.runs.size() > 1 ? fmt::format(" (the first of {} runs)", arm.runs.size()) : std::string();
  charts.rates.title = "Written, saved " + saved_how(record, arm.arm) + run_note;
  charts.rates.summary = charts.rates.title + ", a line for each tier, and above it the steps";
  charts.rates.y_label = rate_unit(output);
  charts.rates.x_label = charts.steps.x_label = "seconds";
  constexpr double kMostPoints = 100000;
  const auto interval_count = size_t(std::min(until_s / slow->interval_s + 0.5, kMostPoints));
  const size_t points = std::max(slow->values.size(), interval_count);
  for (size_t i = 0; i < points; ++i) charts.rates.x.push_back(double(i + 1) * slow->interval_s);
  const auto add = [&](const Series& series, std::string_view role, std::string_view ceiling) {
    const std::string tier = role_name(record, role);
    const size_t colour = colour_of(tiers, tier);
    charts.rates.series.push_back(line_of(tier, colour, series, chart_unit(output), points));
    add_ceiling(charts.rates, arm, ceiling, tier, colour, chart_unit(output));
  };
  add(*slow, "checkpoint", "slow");
  if (const Series* const fast = series_of(record, kFastWritten)) add(*fast, "burst_buffer", "fast");
  const Series* const steps = series_of(record, kStepsEnded);
  if (steps == nullptr) return charts;
  charts.steps.title = "Steps, saved " + saved_how(record, arm.arm) + run_note;
  charts.steps.summary = charts.steps.title + ": while a save blocks the training there are none";
  charts.steps.y_label = "steps/s";
  charts.steps.half_height = true;
  charts.steps.x = charts.rates.x;
  charts.steps.series.push_back(line_of("steps", 2, *steps, 1, points));
  return charts;
}

}  // namespace penstock::report
