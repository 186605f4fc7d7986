#include "results/report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "results/report/html.hpp"
#include "results/statistics.hpp"
#include "results/table.hpp"

namespace penstock::report {
namespace {

Json numbers_json(const std::vector<std::optional<double>>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(value && std::isfinite(*value) ? Json(*value) : Json());
  return list;
}

const char* stroke_name(Stroke stroke) {
  switch (stroke) {
    case Stroke::solid:
      return "solid";
    case Stroke::dashed:
      return "dashed";
    case Stroke::dotted:
      break;
  }
  return "dotted";
}

double unit_of(const Output& output) {
  return output.si_units ? 1e6 : 1048576.0;
}

// Samples are counted, payload is bytes: a baseline in samples/s is drawn by this cell's own bytes a sample.
std::optional<double> baseline_bytes(const Record& record) {
  const auto bytes = metric_value(record, "payload_bytes_per_s");
  const auto samples = metric_value(record, "samples_per_s");
  const auto baseline = metric_value(record, "baseline_samples_per_s");
  if (!bytes || !samples || !baseline || *samples <= 0) return std::nullopt;
  return *baseline * *bytes / *samples;
}

bool any(const std::vector<std::optional<double>>& values) {
  return std::any_of(values.begin(), values.end(), [](const auto& value) { return value.has_value(); });
}

std::vector<double> thread_counts(const ReadGroup& group) {
  std::set<double> counts;
  for (const ReadCurve& curve : group.curves)
    for (const auto& [threads, record] : curve.at) counts.insert(static_cast<double>(threads));
  return {counts.begin(), counts.end()};
}

void add_curve(Chart& chart, const ReadCurve& curve, std::size_t colour, double unit) {
  ChartSeries rate{curve.tier, colour, Stroke::solid, true, {}, {}, {}};
  ChartSeries baseline{curve.tier + ": baseline", colour, Stroke::dashed, false, {}, {}, {}};
  ChartSeries ceiling{curve.tier + ": ceiling", colour, Stroke::dotted, false, {}, {}, {}};
  const auto scaled = [&](std::optional<double> value) {
    return value ? std::optional<double>(*value / unit) : std::nullopt;
  };
  for (const double x : chart.x) {
    const auto cell = curve.at.find(static_cast<std::uint64_t>(x));
    const Metric* metric =
        cell == curve.at.end() ? nullptr : find_metric(*cell->second, "payload_bytes_per_s");
    if (metric == nullptr) {
      for (auto* values : {&rate.y, &rate.low, &rate.high, &baseline.y, &ceiling.y})
        values->push_back(std::nullopt);
      continue;
    }
    rate.y.push_back(metric->value() / unit);
    rate.low.push_back(percentile(metric->samples, 0) / unit);
    rate.high.push_back(percentile(metric->samples, 100) / unit);
    baseline.y.push_back(scaled(baseline_bytes(*cell->second)));
    ceiling.y.push_back(scaled(metric_value(*cell->second, "ceiling_bytes_per_s")));
  }
  for (ChartSeries* series : {&rate, &baseline, &ceiling})
    if (any(series->y)) chart.series.push_back(std::move(*series));
}

constexpr double kFarCeiling = 5;

// A ceiling far above all that was read would squash the lines below it.
bool drop_far_ceilings(Chart& chart, double most_times) {
  double highest = 0;
  for (const ChartSeries& series : chart.series)
    if (series.stroke != Stroke::dotted)
      for (const auto& value : series.y) highest = std::max(highest, value.value_or(0));
  return std::erase_if(chart.series, [&](const ChartSeries& series) {
           return series.stroke == Stroke::dotted &&
                  std::any_of(series.y.begin(), series.y.end(),
                              [&](const auto& value) { return value.value_or(0) > most_times * highest; });
         }) > 0;
}

}  // namespace

Json chart_json(const Chart& chart) {
  Json series = Json::array();
  for (const ChartSeries& one : chart.series)
    series.push_back(Json{{"label", one.label},
                          {"colour", one.colour},
                          {"stroke", stroke_name(one.stroke)},
                          {"marks", one.marks},
                          {"y", numbers_json(one.y)},
                          {"low", numbers_json(one.low)},
                          {"high", numbers_json(one.high)}});
  return Json{{"id", chart.id},
              {"title", chart.title},
              {"x_label", chart.x_label},
              {"y_label", chart.y_label},
              {"x_doubles", chart.x_doubles},
              {"low", chart.low},
              {"logarithmic", chart.logarithmic},
              {"x", chart.x},
              {"series", series}};
}

std::string chart_html(const Chart& chart) {
  return "<figure class=\"chart\" id=\"" + escape(chart.id) + "\"><figcaption>" + escape(chart.title) +
         "</figcaption>\n<div class=\"plot\" tabindex=\"0\" role=\"img\" aria-label=\"" +
         escape(chart.summary) + "\"></div>\n<div class=\"legend\"></div>\n</figure>\n";
}

std::size_t colour_of(std::vector<std::string>& tiers, const std::string& tier) {
  const auto at = std::find(tiers.begin(), tiers.end(), tier);
  if (at != tiers.end()) return static_cast<std::size_t>(at - tiers.begin());
  tiers.push_back(tier);
  return tiers.size() - 1;
}

Chart bandwidth_chart(const ReadGroup& group, std::vector<std::string>& tiers, const Output& output) {
  Chart chart;
  chart.title = "Bandwidth against threads, " + group.title;
  chart.x_label = "threads";
  chart.y_label = rate_unit(output);
  chart.x_doubles = true;
  chart.x = thread_counts(group);
  for (const ReadCurve& curve : group.curves)
    add_curve(chart, curve, colour_of(tiers, curve.tier), unit_of(output));
  if (drop_far_ceilings(chart, kFarCeiling))
    chart.title += fmt::format(" (ceilings more than {:.0f} times as high are left out)", kFarCeiling);
  chart.summary = chart.title + ", a line for each tier; the table beside it holds the numbers";
  return chart;
}

Chart latency_chart(const ReadGroup& group, std::vector<std::string>& tiers) {
  Chart chart;
  chart.title = "Latency against threads, " + group.title;
  chart.x_label = "threads";
  chart.y_label = "ms";
  chart.x_doubles = true;
  chart.logarithmic = true;
  chart.summary =
      chart.title + ", median and 99th percentile of each tier; the table beside it holds the numbers";
  chart.x = thread_counts(group);
  for (const ReadCurve& curve : group.curves) {
    const std::size_t colour = colour_of(tiers, curve.tier);
    ChartSeries middle{curve.tier + ": p50", colour, Stroke::solid, true, {}, {}, {}};
    ChartSeries tail{curve.tier + ": p99", colour, Stroke::dashed, true, {}, {}, {}};
    for (const double x : chart.x) {
      const auto cell = curve.at.find(static_cast<std::uint64_t>(x));
      const auto value = [&](std::string_view name) {
        const auto ns = cell == curve.at.end() ? std::nullopt : metric_value(*cell->second, name);
        return ns ? std::optional<double>(*ns / 1e6) : std::nullopt;
      };
      middle.y.push_back(value("latency_ns_p50"));
      tail.y.push_back(value("latency_ns_p99"));
    }
    for (ChartSeries* series : {&middle, &tail})
      if (any(series->y)) chart.series.push_back(std::move(*series));
  }
  return chart;
}

Chart series_chart(const std::vector<NamedSeries>& rows, const Output& output) {
  Chart chart;
  chart.title = "Payload over time";
  chart.x_label = "seconds";
  chart.y_label = rate_unit(output);
  chart.summary = "Bytes delivered in each interval of the measurement; the table beside it summarises them";
  std::set<double> times;
  for (const NamedSeries& row : rows)
    for (std::size_t i = 0; i < row.series->values.size(); ++i)
      times.insert(static_cast<double>(i + 1) * row.series->interval_s);
  chart.x.assign(times.begin(), times.end());
  for (const NamedSeries& row : rows) {
    ChartSeries line{row.label, row.colour, Stroke::solid, row.series->values.size() < 40, {}, {}, {}};
    line.y.resize(chart.x.size());
    for (std::size_t i = 0; i < row.series->values.size(); ++i) {
      const double time = static_cast<double>(i + 1) * row.series->interval_s;
      const auto at = std::lower_bound(chart.x.begin(), chart.x.end(), time) - chart.x.begin();
      line.y[static_cast<std::size_t>(at)] = row.series->values[i] / row.series->interval_s / unit_of(output);
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

namespace {

constexpr const char* kSavingSeries[] = {"slow_bytes_written", "fast_bytes_written", "steps_ended"};

const Series* series_of(const Record& record, const char* name) {
  const auto at = record.series.find(name);
  return at == record.series.end() || at->second.values.size() < 2 || at->second.interval_s <= 0 ||
                 !std::isfinite(at->second.interval_s)
             ? nullptr
             : &at->second;
}

// A line of `series` a second, divided by `unit`; a point at the end of each interval of the chart.
ChartSeries line_of(std::string label, std::size_t colour, const Series& series, double unit,
                    std::size_t points) {
  ChartSeries line{std::move(label), colour, Stroke::solid, false, {}, {}, {}};
  for (const double value : series.values) line.y.emplace_back(value / series.interval_s / unit);
  line.y.resize(points);
  return line;
}

void add_ceiling(Chart& chart, const SavingRuns& arm, const char* metric, const std::string& tier,
                 std::size_t colour, double unit) {
  const auto ceiling = metric_value(arm.first(), metric);
  if (!ceiling || !ceilings_hold(arm.runs)) return;
  chart.series.push_back({tier + ": at best",
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
  for (const char* const name : kSavingSeries)
    if (const Series* const series = series_of(arm.first(), name))
      longest = std::max(longest, static_cast<double>(series->values.size()) * series->interval_s);
  return longest;
}

SavingCharts saving_charts(const SavingRuns& arm, double until_s, std::vector<std::string>& tiers,
                           const Output& output) {
  SavingCharts charts;
  const Record& record = arm.first();
  const Series* const slow = series_of(record, "slow_bytes_written");
  if (slow == nullptr) return charts;
  const std::string of =
      arm.runs.size() > 1 ? fmt::format(" (the first of {} runs)", arm.runs.size()) : std::string();
  charts.rates.title = "Written, saved " + saved_how(record, arm.arm) + of;
  charts.rates.summary = charts.rates.title + ", a line for each tier, and above it the steps";
  charts.rates.y_label = rate_unit(output);
  charts.rates.x_label = charts.steps.x_label = "seconds";
  constexpr double kMostPoints = 100000;
  const auto fits = static_cast<std::size_t>(std::min(until_s / slow->interval_s + 0.5, kMostPoints));
  const std::size_t points = std::max(slow->values.size(), fits);
  for (std::size_t i = 0; i < points; ++i)
    charts.rates.x.push_back(static_cast<double>(i + 1) * slow->interval_s);
  const auto add = [&](const Series& series, std::string_view role, const char* ceiling) {
    const std::string tier = role_name(record, role);
    const std::size_t colour = colour_of(tiers, tier);
    charts.rates.series.push_back(line_of(tier, colour, series, unit_of(output), points));
    add_ceiling(charts.rates, arm, ceiling, tier, colour, unit_of(output));
  };
  add(*slow, "checkpoint", "ceiling_bytes_per_s.slow");
  if (const Series* const fast = series_of(record, "fast_bytes_written"))
    add(*fast, "burst_buffer", "ceiling_bytes_per_s.fast");
  const Series* const steps = series_of(record, "steps_ended");
  if (steps == nullptr) return charts;
  charts.steps.title = "Steps, saved " + saved_how(record, arm.arm) + of;
  charts.steps.summary = charts.steps.title + ": where a save holds it there are none";
  charts.steps.y_label = "steps/s";
  charts.steps.low = true;
  charts.steps.x = charts.rates.x;
  charts.steps.series.push_back(line_of("steps", 2, *steps, 1, points));
  return charts;
}

}  // namespace penstock::report
