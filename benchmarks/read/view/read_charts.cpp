#include "benchmarks/read/view/read_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_report.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"

namespace penstock::report {
namespace {

using namespace read_metrics;

// The baseline in bytes per second. Records have it in samples per second, so it is multiplied by the cell's
// bytes per sample.
std::optional<double> baseline_bytes(const Record& record) {
  const auto bytes = metric_value(record, kPayloadRate);
  const auto samples = metric_value(record, kSampleRate);
  const Metric* const baseline = baseline_rate(record);
  if (!bytes || !samples || baseline == nullptr || *samples <= 0) return std::nullopt;
  return baseline->value() * *bytes / *samples;
}

// Adds the series to the chart unless it has no values.
void add_unless_empty(Chart& chart, ChartSeries series) {
  if (std::any_of(series.y.begin(), series.y.end(), [](const auto& value) { return value.has_value(); }))
    chart.series.push_back(std::move(series));
}

using RecordsByCount = std::map<uint64_t, const Record*>;

std::vector<const RecordsByCount*> cells_of(const ReadGroup& group) {
  std::vector<const RecordsByCount*> cells;
  for (const ReadCurve& curve : group.curves) cells.push_back(&curve.by_count);
  return cells;
}

std::vector<double> all_counts(const std::vector<const RecordsByCount*>& curves) {
  std::set<double> counts;
  for (const RecordsByCount* const cells : curves)
    for (const auto& [count, record] : *cells) counts.insert(double(count));
  return {counts.begin(), counts.end()};
}

const Record* record_at(const RecordsByCount& cells, double x) {
  const auto at = cells.find(uint64_t(x));
  return at == cells.end() ? nullptr : at->second;
}

// Adds a point for each record: the median of `rate` in units of `unit`, with the range of its repeats.
void add_rates(ChartSeries& series, const std::vector<double>& xs, const RecordsByCount& cells,
               const MetricInfo& rate, double unit) {
  for (const double x : xs) {
    const Record* const record = record_at(cells, x);
    const Metric* const metric = record == nullptr ? nullptr : find_metric(*record, rate);
    if (metric == nullptr) {
      for (auto* values : {&series.y, &series.low, &series.high}) values->push_back(std::nullopt);
      series.is_interval.push_back(false);
      continue;
    }
    const RepeatRange repeats = repeat_range(*metric);
    series.y.push_back(metric->value() / unit);
    series.low.push_back(repeats.range.low / unit);
    series.high.push_back(repeats.range.high / unit);
    series.is_interval.push_back(repeats.is_interval);
  }
}

// Adds the same line in samples per second, to which the reader can switch.
void add_sample_rates(Chart& chart, const ChartSeries& like, const RecordsByCount& cells) {
  ChartSeries series{like.label, like.colour, like.stroke, like.has_marks, {}, {}, {}};
  add_rates(series, chart.x, cells, kSampleRate, 1);
  if (std::none_of(series.y.begin(), series.y.end(), [](const auto& value) { return value.has_value(); }))
    return;
  const std::string unit = sample_rate_unit(*cells.begin()->second);
  if (chart.other_series.empty()) chart.other_y_label = unit;
  if (chart.other_y_label != unit) chart.other_y_label = "samples/s";
  chart.other_series.push_back(std::move(series));
}

void add_curve(Chart& chart, const ReadCurve& curve, size_t colour, double unit) {
  ChartSeries rate{curve.tier, colour, Stroke::solid, true, {}, {}, {}};
  ChartSeries baseline{curve.tier + ": baseline", colour, Stroke::dashed, false, {}, {}, {}};
  ChartSeries ceiling{curve.tier + ": ceiling", colour, Stroke::dotted, false, {}, {}, {}};
  add_rates(rate, chart.x, curve.by_count, kPayloadRate, unit);
  add_sample_rates(chart, rate, curve.by_count);
  const auto scaled = [&](std::optional<double> value) {
    return value ? std::optional<double>(*value / unit) : std::nullopt;
  };
  for (const double x : chart.x) {
    const Record* const record = record_at(curve.by_count, x);
    const bool has_rate = record != nullptr && find_metric(*record, kPayloadRate) != nullptr;
    baseline.y.push_back(has_rate ? scaled(baseline_bytes(*record)) : std::nullopt);
    ceiling.y.push_back(has_rate ? scaled(metric_value(*record, kCeilingRate)) : std::nullopt);
  }
  for (ChartSeries* series : {&rate, &baseline, &ceiling}) add_unless_empty(chart, std::move(*series));
}

constexpr double kFarCeilingRatio = 5;

// Removes each ceiling that is more than `most_times` times as high as the highest value of the lines that
// are no ceilings. It would make these lines flat. Returns true if it removed any.
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

Chart chart_against(std::string_view count, std::string_view what, const std::string& title,
                    std::string_view unit) {
  Chart chart;
  chart.title = fmt::format("{} against {}, {}", what, count, title);
  chart.x_label = count;
  chart.y_label = unit;
  chart.x_is_log2 = true;
  return chart;
}

// The marks (symbols in the chart) of other programs start with this number, so that they differ from the
// marks of the first tiers.
constexpr size_t kFirstPeerMark = 5;

std::vector<const PeerCurve*> peers_of(const ReadGroup& group, const std::vector<PeerCurve>& peers) {
  std::vector<const PeerCurve*> comparable;
  for (const PeerCurve& peer : peers)
    if (is_comparable(peer, group)) comparable.push_back(&peer);
  return comparable;
}

}  // namespace

Chart bandwidth_chart(const ReadGroup& group, const std::vector<PeerCurve>& peers,
                      std::vector<std::string>& tiers, const Output& output) {
  Chart chart = chart_against("threads", "Bandwidth", group.title, rate_unit(output));
  const std::vector<const PeerCurve*> shown_peers = peers_of(group, peers);
  std::vector<const RecordsByCount*> cells = cells_of(group);
  for (const PeerCurve* const peer : shown_peers) cells.push_back(&peer->by_count);
  chart.x = all_counts(cells);
  for (const ReadCurve& curve : group.curves)
    add_curve(chart, curve, colour_of(tiers, curve.tier), chart_unit(output));
  size_t mark = kFirstPeerMark;
  for (const PeerCurve* const peer : shown_peers) {
    ChartSeries series{peer->name, colour_of(tiers, peer->tier), Stroke::dash_dotted, true, {}, {}, {}};
    series.mark = mark++;
    add_rates(series, chart.x, peer->by_count, kPayloadRate, chart_unit(output));
    add_unless_empty(chart, std::move(series));
  }
  if (drop_far_ceilings(chart, kFarCeilingRatio))
    chart.title += fmt::format(" (ceilings more than {:.0f} times as high are left out)", kFarCeilingRatio);
  chart.summary = chart.title + ", a line for each tier; the table next to it holds the numbers";
  return chart;
}

std::string sample_rate_unit(const Record& record) {
  if (!parameter_text(record, "block").empty()) return "IOPS";
  return corpus_text(record, "format") == "files" ? "files/s" : "samples/s";
}

Chart ranks_chart(const ReadGroup& group, std::string_view count, const Output& output) {
  Chart chart = chart_against(count, "Bandwidth", group.title, rate_unit(output));
  chart.summary =
      chart.title + ", a line for each tier and number of threads; the table next to it holds the numbers";
  chart.x = all_counts(cells_of(group));
  for (const ReadCurve& curve : group.curves) {
    ChartSeries series{curve.tier, chart.series.size(), Stroke::solid, true, {}, {}, {}};
    add_rates(series, chart.x, curve.by_count, kPayloadRate, chart_unit(output));
    add_sample_rates(chart, series, curve.by_count);
    add_unless_empty(chart, std::move(series));
  }
  return chart;
}

Chart latency_chart(const ReadGroup& group, std::vector<std::string>& tiers) {
  Chart chart = chart_against("threads", "Latency", group.title, "ms");
  chart.y_is_logarithmic = true;
  chart.summary =
      chart.title + ", median and 99th percentile of each tier; the table next to it holds the numbers";
  chart.x = all_counts(cells_of(group));
  for (const ReadCurve& curve : group.curves) {
    const size_t colour = colour_of(tiers, curve.tier);
    ChartSeries p50_series{curve.tier + ": p50", colour, Stroke::solid, true, {}, {}, {}};
    ChartSeries p99_series{curve.tier + ": p99", colour, Stroke::dashed, true, {}, {}, {}};
    for (const double x : chart.x) {
      const Record* const record = record_at(curve.by_count, x);
      const auto value = [&](const MetricInfo& name) {
        const auto ns = record == nullptr ? std::nullopt : metric_value(*record, name);
        return ns ? std::optional<double>(*ns / 1e6) : std::nullopt;
      };
      p50_series.y.push_back(value(kLatencyP50));
      p99_series.y.push_back(value(kLatencyP99));
    }
    for (ChartSeries* series : {&p50_series, &p99_series}) add_unless_empty(chart, std::move(*series));
  }
  return chart;
}

Chart distribution_chart(const ReadGroup& group, std::vector<std::string>& tiers) {
  constexpr MetricInfo kPoints[] = {kLatencyP10, kLatencyP25, kLatencyP50, kLatencyP75,
                                    kLatencyP90, kLatencyP95, kLatencyP99, kLatencyP999};
  Chart chart;
  chart.title = "Latency distribution, " + group.title;
  chart.x_label = "share of samples that took at most this long";
  chart.y_label = "ms";
  chart.x_is_log2 = true;  // faster samples / slower samples: about equal distances for 90%, 99% and 99.9%
  chart.y_is_logarithmic = true;
  chart.summary = chart.title + ", a line for each tier at its fastest thread count";
  std::vector<MetricInfo> points;
  for (const MetricInfo& point : kPoints)
    if (std::any_of(group.curves.begin(), group.curves.end(), [&](const ReadCurve& curve) {
          return std::any_of(curve.by_count.begin(), curve.by_count.end(),
                             [&](const auto& row) { return find_metric(*row.second, point) != nullptr; });
        }))
      points.push_back(point);
  if (points.size() < 3) return chart;
  for (const MetricInfo& point : points) {
    chart.x.push_back(point.percent / (100 - point.percent));
    chart.x_names.push_back(fmt::format("{}%", point.percent));
  }
  for (const ReadCurve& curve : group.curves) {
    const Record* best = nullptr;
    for (const auto& [threads, record] : curve.by_count)
      if (best == nullptr ||
          metric_value(*record, kPayloadRate).value_or(0) > metric_value(*best, kPayloadRate).value_or(0))
        best = record;
    ChartSeries series{curve.tier + ", " + threads_label(*best),
                       colour_of(tiers, curve.tier),
                       Stroke::solid,
                       true,
                       {},
                       {},
                       {}};
    for (const MetricInfo& point : points) {
      const auto ns = metric_value(*best, point);
      series.y.push_back(ns ? std::optional(*ns / 1e6) : std::nullopt);
    }
    add_unless_empty(chart, std::move(series));
  }
  return chart;
}

}  // namespace penstock::report
