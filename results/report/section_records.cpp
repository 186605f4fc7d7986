// The sections that show all records: bytes over time, commands without a section of their own, and every
// record with its verdict.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/record/shared_metrics.hpp"
#include "results/record/statistics.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;

constexpr size_t kLeastIntervals = 5;     // a series of bytes over time with fewer intervals gets no chart
constexpr size_t kMostLinesPerChart = 8;  // with more lines than this, a reader could not tell them apart

std::string metric_text(const std::string& name, const Metric& metric, const Output& output) {
  const double value = metric.value();
  if (metric.unit != "1") return value_text(value, metric.unit, output);
  const bool is_fraction =
      name.find("utilization") != std::string::npos || name.find("fraction") != std::string::npos;
  if (is_fraction) return format_percent(value);
  const bool is_count = value >= 0 && value < 1e15 && value == std::floor(value);
  return is_count ? format_count(uint64_t(value), output) : format_number(value, output);
}

// The most important number of a record as text; "-" if it has none.
std::string main_value(const Record& record, const Output& output) {
  if (const Metric* const rate = throughput(record)) return metric_text("", *rate, output);
  if (const RecordView* const view = find_view(record.command))
    for (const MetricInfo& headline : view->headline)
      if (const Metric* const metric = find_metric(record, headline))
        return metric_text(std::string(headline.name), *metric, output);
  for (const auto& [name, metric] : record.metrics)
    if (find_metric(record, name) != nullptr) return metric_text(name, metric, output);
  return "-";
}

using SeriesByWork = std::map<std::string, std::vector<NamedSeries>>;

// A sentence about the most uneven series: the one whose slowest interval is furthest below its median. "" if
// there is no series.
std::string least_even_series(const SeriesByWork& charts) {
  double lowest_fraction = 2;
  std::string name;
  size_t parts_before = 0;
  size_t lowest_part = 0;
  for (const auto& [common, rows] : charts) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double> rates = rows[i].series->rates();
      const double middle = median(rates);
      if (middle <= 0 || percentile(rates, 0) / middle >= lowest_fraction) continue;
      lowest_fraction = percentile(rates, 0) / middle;
      name = fmt::format("{} ({})", rows[i].label, common);
      lowest_part = parts_before + i / kMostLinesPerChart;
    }
    parts_before += (rows.size() + kMostLinesPerChart - 1) / kMostLinesPerChart;
  }
  if (name.empty()) return "";
  return answer_html(
      fmt::format("The least even series is that of {}: its slowest interval has {} of the median rate.",
                  name, format_percent(lowest_fraction)),
      group_anchor("time", lowest_part));
}

}  // namespace

std::string value_text(double value, const std::string& unit, const Output& output) {
  if (unit == "B/s") return format_rate(value, output) + " " + std::string(rate_unit(output));
  if (unit == "B") return format_bytes(value, output);
  if (unit == "s") return format_seconds(value);
  if (unit == "ns") return format_ms(value, output) + " ms";
  return format_number(value, output) + (unit == "1" || unit.empty() ? ""
                                         : unit == "1/s"             ? " /s"
                                                                     : " " + unit);
}

std::string cell_label(const Record& record) {
  const RecordView* const view = find_view(record.command);
  std::vector<std::string> parts =
      view != nullptr ? view->labels(record) : std::vector<std::string>{threads_label(record)};
  if (record.tiers.contains("data") || record.parameters.contains("tier"))
    parts.insert(parts.begin(), tier_name(record));
  parts.insert(parts.begin(), parameter_text(record, "app"));
  for (const auto& [key, value] : record.label) parts.push_back(fmt::format("{}={}", key, value));
  std::erase(parts, "");
  return parts.empty() ? record.command : fmt::format("{}", fmt::join(parts, ", "));
}

std::string series_section(const std::vector<Record>& records, PageState& state) {
  SeriesByWork charts;  // what the lines of a chart have in common -> the records of its lines
  for (const Record& record : records) {
    const auto at = record.series.find(std::string(shared_metrics::kPayloadSeries));
    if (at == record.series.end() || at->second.values.size() < kLeastIntervals || at->second.interval_s <= 0)
      continue;
    std::string chart_key = record.command + ", " + tier_name(record);
    if (const std::string cache = requested_cache_state(record); !cache.empty()) chart_key += ", " + cache;
    auto& rows = charts[chart_key];
    rows.push_back({cell_label(record), rows.size(), &at->second});
  }
  if (charts.empty()) return "";
  std::string out = state.open_section(
      "time", "Over time",
      "The rate in each interval: whether it was steady, fell after a burst, or ended in a tail.",
      least_even_series(charts));
  size_t part_index = 0;
  for (const auto& [common, all] : charts)
    for (size_t from = 0; from < all.size(); from += kMostLinesPerChart) {
      std::vector<NamedSeries> rows(all.begin() + ptrdiff_t(from),
                                    all.begin() + ptrdiff_t(std::min(from + kMostLinesPerChart, all.size())));
      HtmlTable table(common + ": payload in each interval, " + std::string(rate_unit(state.output)),
                      {{"cell", Kind::words},
                       {"lowest"},
                       {"median"},
                       {"highest"},
                       {"intervals"},
                       {"of", Kind::number, "the length of one interval"}});
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].colour = i;
        const std::vector<double> rates = rows[i].series->rates();
        table.row({rows[i].label, format_rate(percentile(rates, 0), state.output),
                   format_rate(median(rates), state.output),
                   format_rate(percentile(rates, 100), state.output), std::to_string(rates.size()),
                   format_seconds(rows[i].series->interval_s)});
      }
      Chart chart = series_chart(rows, state.output);
      chart.title = common + ": payload over time";
      const std::string title = chart.title;
      out += part_html(part_index, group_anchor("time", part_index), title,
                       state.add_chart_with_table(std::move(chart), table));
      ++part_index;
    }
  return out + "</section>\n";
}

std::string other_section(const std::vector<Record>& records, PageState& state) {
  std::map<std::string, std::vector<const Record*>> by_command;
  const std::vector<const RecordView*> views = ordered_views();
  for (const Record& record : records) {
    const bool is_shown = std::any_of(views.begin(), views.end(),
                                      [&](const RecordView* view) { return view->has_row(record); });
    if (!is_shown && !record.metrics.empty()) by_command[record.command].push_back(&record);
  }
  if (by_command.empty()) return "";
  std::vector<std::string> command_counts;
  for (const auto& [command, found] : by_command)
    command_counts.push_back(fmt::format("{} ({})", command, count_of(found.size(), "record")));
  std::string out =
      state.open_section("other", "Also measured", "",
                         answer_html("Other measurements: " + verdicts::enumerate(command_counts) + ".",
                                     "records", "the records"));
  for (const auto& [command, found] : by_command) {
    HtmlTable table(command, {{"what", Kind::words},
                              {"metric", Kind::words},
                              {"median"},
                              {"lowest"},
                              {"highest"},
                              {"samples"},
                              {"record"}});
    for (const Record* record : found)
      for (const auto& entry : record->metrics) {
        const std::string& name = entry.first;
        const Metric& metric = entry.second;
        if (find_metric(*record, name) == nullptr) continue;
        const auto as_text = [&](double value) {
          return metric_text(name, Metric{metric.unit, metric.better, metric.per, {value}}, state.output);
        };
        table.row({text(cell_label(*record)), text(name), text(metric_text(name, metric, state.output)),
                   text(as_text(percentile(metric.samples, 0))),
                   text(as_text(percentile(metric.samples, 100))),
                   text(std::to_string(metric.samples.size())), state.record_link(*record)});
      }
    out += table.html();
  }
  return out + "</section>\n";
}

namespace {

// After this many records, the table is folded (it opens by a click).
constexpr size_t kMostRecordsPerTable = 250;

std::string usable_text(const std::vector<Record>& records, const Output& output) {
  const auto usable = size_t(std::count_if(records.begin(), records.end(), is_usable));
  std::map<Verdict, size_t> unusable_counts;
  for (const Record& record : records)
    if (!is_usable(record)) ++unusable_counts[record.verdict];
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : unusable_counts) {
    parts.push_back(fmt::format("{} {}", count, verdict_title(verdict)));
  }
  if (parts.empty())
    return records.size() == 1
               ? "The measurement succeeded."
               : fmt::format("All {} measurements succeeded.", format_count(records.size(), output));
  return fmt::format("{} of {} measurements succeeded; the others: {}.", format_count(usable, output),
                     format_count(records.size(), output), verdicts::enumerate(parts));
}

HtmlTable records_table(const std::string& title) {
  return HtmlTable(title, {{"record"},
                           {"started (UTC)", Kind::words},
                           {"command", Kind::words},
                           {"cell", Kind::words},
                           {"measured"},
                           {"verdict", Kind::words},
                           {"reason", Kind::words},
                           {"file and line", Kind::words},
                           {"raw", Kind::words}});
}

void add_record(HtmlTable& table, const Record& record, const std::string& origin, size_t number,
                const Output& output) {
  // "2026-11-20T09:30:00Z" without the letters; a text of another length may be anything.
  std::string started = record.started;
  if (started.size() == 20 && started[10] == 'T')
    started = started.substr(0, 10) + " " + started.substr(11, 8);
  table.row(
      {text(std::to_string(number)), Markup{escape(started), "nowrap"}, text(record.command),
       text(cell_label(record)),
       is_usable(record) ? text(main_value(record, output)) : Markup{"<span class=\"none\">none</span>"},
       Markup{verdict_html(record.verdict)}, text(record.reason), text(origin),
       Markup{fmt::format("<button type=\"button\" class=\"show-record\" data-record=\"{}\" "
                          "aria-label=\"show raw numbers of record {}\">show</button>",
                          number - 1, number)}},
      verdict_class(record.verdict) == "failure" ? "failed" : "", fmt::format("record-{}", number));
}

}  // namespace

std::string records_section(const std::vector<Record>& records, const std::vector<std::string>& origins,
                            PageState& state) {
  std::string out = state.open_section("records", "Every record",
                                       "One row for each measured cell, the failed ones too. The raw numbers "
                                       "are in this page and can be saved.",
                                       answer_html(usable_text(records, state.output), ""));
  out +=
      "<p class=\"script-only\"><button type=\"button\" id=\"save-records\">Save all records (JSON "
      "lines)</button></p>\n";
  for (size_t from = 0; from < records.size(); from += kMostRecordsPerTable) {
    const size_t to = std::min(records.size(), from + kMostRecordsPerTable);
    const std::string title =
        records.size() <= kMostRecordsPerTable ? "Records" : fmt::format("Records {} to {}", from + 1, to);
    HtmlTable table = records_table(title);
    for (size_t i = from; i < to; ++i) add_record(table, records[i], origins[i], i + 1, state.output);
    out += from == 0
               ? table.html()
               : "<details class=\"part\"><summary>" + title + "</summary>\n" + table.html() + "</details>\n";
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
