#include "benchmarks/read/view/read_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "benchmarks/read/read_metrics.hpp"
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
  const auto baseline = metric_value(record, kBaselineRate);
  if (!bytes || !samples || !baseline || *samples <= 0) return std::nullopt;
  return *baseline * *bytes / *samples;
}

// Adds the series to the chart unless it has no values.
void keep_drawn(Chart& chart, ChartSeries series) {
  if (std::any_of(series.y.begin(), series.y.end(), [](const auto& value) { return value.has_value(); }))
    chart.series.push_back(std::move(series));
}

using Cells = std::map<std::uint64_t, const Record*>;

std::vector<const Cells*> cells_of(const ReadGroup& group) {
  std::vector<const Cells*> cells;
  for (const ReadCurve& curve : group.curves) cells.push_back(&curve.at);
  return cells;
}

std::vector<double> all_counts(const std::vector<const Cells*>& curves) {
  std::set<double> counts;
  for (const Cells* const cells : curves)
    for (const auto& [count, record] : *cells) counts.insert(static_cast<double>(count));
  return {counts.begin(), counts.end()};
}

const Record* record_at(const Cells& cells, double x) {
  const auto at = cells.find(static_cast<std::uint64_t>(x));
  return at == cells.end() ? nullptr : at->second;
}

// Adds the medians of the payload rate, with their bands.
void add_rates(ChartSeries& series, const std::vector<double>& xs, const Cells& cells, double unit) {
  for (const double x : xs) {
    const Record* const record = record_at(cells, x);
    const Metric* const metric = record == nullptr ? nullptr : find_metric(*record, kPayloadRate);
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

void add_curve(Chart& chart, const ReadCurve& curve, std::size_t colour, double unit) {
  ChartSeries rate{curve.tier, colour, Stroke::solid, true, {}, {}, {}};
  ChartSeries baseline{curve.tier + ": baseline", colour, Stroke::dashed, false, {}, {}, {}};
  ChartSeries ceiling{curve.tier + ": ceiling", colour, Stroke::dotted, false, {}, {}, {}};
  add_rates(rate, chart.x, curve.at, unit);
  const auto scaled = [&](std::optional<double> value) {
    return value ? std::optional<double>(*value / unit) : std::nullopt;
  };
  for (const double x : chart.x) {
    const Record* const record = record_at(curve.at, x);
    const bool drawn = record != nullptr && find_metric(*record, kPayloadRate) != nullptr;
    baseline.y.push_back(drawn ? scaled(baseline_bytes(*record)) : std::nullopt);
    ceiling.y.push_back(drawn ? scaled(metric_value(*record, kCeilingRate)) : std::nullopt);
  }
  for (ChartSeries* series : {&rate, &baseline, &ceiling}) keep_drawn(chart, std::move(*series));
}

constexpr double kFarCeiling = 5;

// Removes a ceiling far above all other values. It would compress the lines below it. True if one was
// removed.
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

// Peers have their own marks, after those of the first tiers.
constexpr std::size_t kPeerMark = 5;

std::vector<const PeerCurve*> peers_of(const ReadGroup& group, const std::vector<PeerCurve>& peers) {
  std::vector<const PeerCurve*> found;
  for (const PeerCurve& peer : peers)
    if (is_comparable(peer, group)) found.push_back(&peer);
  return found;
}

}  // namespace

Chart bandwidth_chart(const ReadGroup& group, const std::vector<PeerCurve>& peers,
                      std::vector<std::string>& tiers, const Output& output) {
  Chart chart = chart_against("threads", "Bandwidth", group.title, rate_unit(output));
  const std::vector<const PeerCurve*> compared = peers_of(group, peers);
  std::vector<const Cells*> cells = cells_of(group);
  for (const PeerCurve* const peer : compared) cells.push_back(&peer->at);
  chart.x = all_counts(cells);
  for (const ReadCurve& curve : group.curves)
    add_curve(chart, curve, colour_of(tiers, curve.tier), chart_unit(output));
  std::size_t mark = kPeerMark;
  for (const PeerCurve* const peer : compared) {
    ChartSeries series{peer->name, colour_of(tiers, peer->tier), Stroke::dash_dotted, true, {}, {}, {}};
    series.mark = mark++;
    add_rates(series, chart.x, peer->at, chart_unit(output));
    keep_drawn(chart, std::move(series));
  }
  if (drop_far_ceilings(chart, kFarCeiling))
    chart.title += fmt::format(" (ceilings more than {:.0f} times as high are left out)", kFarCeiling);
  chart.summary = chart.title + ", a line for each tier; the table next to it holds the numbers";
  return chart;
}

Chart ranks_chart(const ReadGroup& group, const Output& output) {
  Chart chart = chart_against("ranks", "Bandwidth", group.title, rate_unit(output));
  chart.summary =
      chart.title + ", a line for each tier and number of threads; the table next to it holds the numbers";
  chart.x = all_counts(cells_of(group));
  for (const ReadCurve& curve : group.curves) {
    ChartSeries series{curve.tier, chart.series.size(), Stroke::solid, true, {}, {}, {}};
    add_rates(series, chart.x, curve.at, chart_unit(output));
    keep_drawn(chart, std::move(series));
  }
  return chart;
}

Chart latency_chart(const ReadGroup& group, std::vector<std::string>& tiers) {
  Chart chart = chart_against("threads", "Latency", group.title, "ms");
  chart.logarithmic = true;
  chart.summary =
      chart.title + ", median and 99th percentile of each tier; the table next to it holds the numbers";
  chart.x = all_counts(cells_of(group));
  for (const ReadCurve& curve : group.curves) {
    const std::size_t colour = colour_of(tiers, curve.tier);
    ChartSeries middle{curve.tier + ": p50", colour, Stroke::solid, true, {}, {}, {}};
    ChartSeries tail{curve.tier + ": p99", colour, Stroke::dashed, true, {}, {}, {}};
    for (const double x : chart.x) {
      const Record* const record = record_at(curve.at, x);
      const auto value = [&](const MetricInfo& name) {
        const auto ns = record == nullptr ? std::nullopt : metric_value(*record, name);
        return ns ? std::optional<double>(*ns / 1e6) : std::nullopt;
      };
      middle.y.push_back(value(kLatencyP50));
      tail.y.push_back(value(kLatencyP99));
    }
    for (ChartSeries* series : {&middle, &tail}) keep_drawn(chart, std::move(*series));
  }
  return chart;
}

}  // namespace penstock::report
