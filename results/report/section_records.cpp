// Everything that was measured: byte series, commands without a section of their own, and every record with
// its verdict.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/peer_cells.hpp"
#include "results/cells/saving_cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/record/statistics.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;

constexpr std::size_t kIntervals = 5;  // fewer make no picture
constexpr std::size_t kLines = 8;      // in one chart of byte series; more cannot be told apart

std::string metric_text(const std::string& name, const Metric& metric, const Output& output) {
  const double value = metric.value();
  if (metric.unit == "B/s") return format_rate(value, output) + " " + std::string(rate_unit(output));
  if (metric.unit == "B") return format_bytes(value, output);
  if (metric.unit == "s") return format_seconds(value);
  if (metric.unit == "ns") return format_ms(value) + " ms";
  const bool fraction =
      name.find("utilization") != std::string::npos || name.find("fraction") != std::string::npos;
  if (fraction) return format_percent(value);
  if (metric.unit == "1/s") return format_number(value) + " /s";
  const bool count = metric.unit == "1" && value >= 0 && value < 1e15 && value == std::floor(value);
  if (count) return format_count(static_cast<std::uint64_t>(value));
  return format_number(value) + (metric.unit == "1" ? "" : " " + metric.unit);
}

// The text of the number that a record is about.
std::string main_value(const Record& record, const Output& output) {
  for (const char* name :
       {"payload_bytes_per_s", "samples_per_s", "checkpoint_block_s", "drain_bytes_per_s", "wall_s"})
    if (const Metric* metric = find_metric(record, name)) return metric_text(name, *metric, output);
  for (const auto& [name, metric] : record.metrics)
    if (find_metric(record, name) != nullptr) return metric_text(name, metric, output);
  return "-";
}

using SeriesByWork = std::map<std::string, std::vector<NamedSeries>>;

// Of the full intervals (the last may be cut short), the one that lies furthest below its series' median.
std::string unevenest(const SeriesByWork& charts) {
  double worst = 2;
  std::string name;
  std::size_t part = 0;
  std::size_t worst_part = 0;
  for (const auto& [common, rows] : charts) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double>& all = rows[i].series->values;
      const std::vector<double> full(all.begin(), all.end() - 1);
      const double middle = median(full);
      if (middle <= 0 || percentile(full, 0) / middle >= worst) continue;
      worst = percentile(full, 0) / middle;
      name = fmt::format("{} ({})", rows[i].label, common);
      worst_part = part + i / kLines;
    }
    part += (rows.size() + kLines - 1) / kLines;
  }
  if (name.empty()) return "";
  return answer_html(
      fmt::format("The least even series is that of {}: in its slowest interval {} of the median arrived.",
                  name, format_percent(worst)),
      group_anchor("time", worst_part));
}

std::string_view verdict_class(Verdict verdict) {
  if (verdict == Verdict::ok) return "good";
  return verdict_exit_code(verdict) == 0 ? "caution" : "failure";
}

}  // namespace

std::string verdict_html(Verdict verdict) {
  std::string words(verdict_name(verdict));
  std::replace(words.begin(), words.end(), '_', ' ');
  return fmt::format("<span class=\"verdict {}\">{}</span>", verdict_class(verdict), escape(words));
}

std::string cell_label(const Record& record) {
  std::string label;
  const auto add = [&](const std::string& word) {
    if (!word.empty()) label += (label.empty() ? "" : ", ") + word;
  };
  add(parameter_text(record, "app"));
  if (record.tiers.contains("data") || record.parameters.contains("tier")) add(tier_name(record));
  if (const std::string arm = parameter_text(record, "arm"); record.command == "checkpoint" && !arm.empty())
    add(fmt::format("{} {}", parameter_text(record, "payload"), saved_how(record, arm)));
  if (const auto threads = parameter_number(record, "threads"))
    add(fmt::format("{:.0f} thread{}", *threads, *threads == 1 ? "" : "s"));
  if (const auto prefetch = parameter_number(record, "prefetch"); prefetch && record.command == "train")
    add(fmt::format("prefetch {:.0f}", *prefetch));
  if (record.command == "read" || record.command == "train") add(cache_name(record));
  for (const auto& [key, value] : record.label) add(fmt::format("{}={}", key, value));
  return label.empty() ? record.command : label;
}

std::string series_section(const std::vector<Record>& records, PageState& state) {
  SeriesByWork charts;  // by what their lines have in common
  for (const Record& record : records) {
    const auto at = record.series.find("payload_bytes");
    if (at == record.series.end() || at->second.values.size() < kIntervals || at->second.interval_s <= 0)
      continue;
    std::string common = record.command + ", " + tier_name(record);
    if (const std::string cache = cache_name(record); !cache.empty()) common += ", " + cache;
    auto& rows = charts[common];
    rows.push_back({cell_label(record), rows.size(), &at->second});
  }
  if (charts.empty()) return "";
  std::string out = state.open_section(
      "time", "Over time", "What arrived in each interval: a burst that runs dry, a tail, or a steady rate.",
      unevenest(charts));
  std::size_t part = 0;
  for (const auto& [common, all] : charts)
    for (std::size_t from = 0; from < all.size(); from += kLines) {
      std::vector<NamedSeries> rows(
          all.begin() + static_cast<std::ptrdiff_t>(from),
          all.begin() + static_cast<std::ptrdiff_t>(std::min(from + kLines, all.size())));
      HtmlTable table(common + ": payload in each interval, " + std::string(rate_unit(state.output)),
                      {{"cell", Kind::words, ""},
                       {"lowest", Kind::number, ""},
                       {"median", Kind::number, ""},
                       {"highest", Kind::number, ""},
                       {"intervals", Kind::number, ""},
                       {"of", Kind::number, "the length of one interval"}});
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].colour = i;
        std::vector<double> rates;
        for (const double bytes : rows[i].series->values) rates.push_back(bytes / rows[i].series->interval_s);
        table.row({rows[i].label, format_rate(percentile(rates, 0), state.output),
                   format_rate(median(rates), state.output),
                   format_rate(percentile(rates, 100), state.output), std::to_string(rates.size()),
                   format_seconds(rows[i].series->interval_s)});
      }
      Chart chart = series_chart(rows, state.output);
      chart.title = common + ": payload over time";
      const std::string title = chart.title;
      out += part_html(
          part, group_anchor("time", part), title,
          "<div class=\"side-by-side\">\n" + state.place(std::move(chart)) + table.html() + "</div>\n");
      ++part;
    }
  return out + "</section>\n";
}

std::string other_section(const std::vector<Record>& records, PageState& state) {
  std::map<std::string, std::vector<const Record*>> by_command;
  for (const Record& record : records)
    if (record.command != "read" && record.command != "train" && !is_saving(record) && !is_peer(record) &&
        !record.metrics.empty())
      by_command[record.command].push_back(&record);
  if (by_command.empty()) return "";
  std::vector<std::string> counts;
  for (const auto& [command, found] : by_command)
    counts.push_back(fmt::format("{} ({} record{})", command, found.size(), found.size() == 1 ? "" : "s"));
  std::string out =
      state.open_section("other", "Also measured", "",
                         answer_html("What no other section speaks of: " + verdicts::enumerate(counts) + ".",
                                     "records", "the records"));
  for (const auto& [command, found] : by_command) {
    HtmlTable table(command, {{"what", Kind::words, ""},
                              {"metric", Kind::words, ""},
                              {"median", Kind::number, ""},
                              {"lowest", Kind::number, ""},
                              {"highest", Kind::number, ""},
                              {"samples", Kind::number, ""},
                              {"record", Kind::number, ""}});
    for (const Record* record : found)
      for (const auto& entry : record->metrics) {
        const std::string& name = entry.first;
        const Metric& metric = entry.second;
        if (find_metric(*record, name) == nullptr) continue;
        const auto of = [&](double value) {
          return metric_text(name, Metric{metric.unit, metric.better, metric.per, {value}}, state.output);
        };
        table.row({text(cell_label(*record)), text(name), text(metric_text(name, metric, state.output)),
                   text(of(percentile(metric.samples, 0))), text(of(percentile(metric.samples, 100))),
                   text(std::to_string(metric.samples.size())), state.record_link(*record)});
      }
    out += table.html();
  }
  return out + "</section>\n";
}

namespace {

constexpr std::size_t kRecordRows = 250;  // in one table of records; the others fold away

std::string usable_text(const std::vector<Record>& records) {
  const auto usable = static_cast<std::size_t>(std::count_if(records.begin(), records.end(), is_usable));
  std::map<Verdict, std::size_t> others;
  for (const Record& record : records)
    if (!is_usable(record)) ++others[record.verdict];
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : others) {
    std::string words(verdict_name(verdict));
    std::replace(words.begin(), words.end(), '_', ' ');
    parts.push_back(fmt::format("{} {}", count, words));
  }
  if (parts.empty())
    return records.size() == 1 ? "The one record has a number."
                               : fmt::format("All {} records have a number.", format_count(records.size()));
  return fmt::format("{} of {} records have a number; the others: {}.", format_count(usable),
                     format_count(records.size()), verdicts::enumerate(parts));
}

HtmlTable records_table(const std::string& title) {
  return HtmlTable(title, {{"record", Kind::number, ""},
                           {"started (UTC)", Kind::words, ""},
                           {"command", Kind::words, ""},
                           {"cell", Kind::words, ""},
                           {"measured", Kind::number, ""},
                           {"verdict", Kind::words, ""},
                           {"reason", Kind::words, ""},
                           {"file and line", Kind::words, ""},
                           {"raw", Kind::words, ""}});
}

void add_record(HtmlTable& table, const Record& record, const std::string& origin, std::size_t number,
                const Output& output) {
  table.row(
      {text(std::to_string(number)), text(record.started), text(record.command), text(cell_label(record)),
       is_usable(record) ? text(main_value(record, output)) : Markup{"<span class=\"none\">none</span>"},
       Markup{verdict_html(record.verdict)}, text(record.reason), text(origin),
       Markup{fmt::format("<button type=\"button\" class=\"show-record\" data-record=\"{}\" "
                          "aria-label=\"raw numbers of record {}\">show</button>",
                          number - 1, number)}},
      verdict_class(record.verdict) == "failure" ? "failed" : "", fmt::format("record-{}", number));
}

}  // namespace

std::string records_section(const std::vector<Record>& records, const std::vector<std::string>& origins,
                            PageState& state) {
  std::string out = state.open_section("records", "Every record",
                                       "One row for each measured cell, the failed ones too. The raw numbers "
                                       "are in this page and can be saved.",
                                       answer_html(usable_text(records), ""));
  out +=
      "<p class=\"script-only\"><button type=\"button\" id=\"save-records\">Save all records (JSON "
      "lines)</button></p>\n";
  for (std::size_t from = 0; from < records.size(); from += kRecordRows) {
    const std::size_t to = std::min(records.size(), from + kRecordRows);
    const std::string title =
        records.size() <= kRecordRows ? "Records" : fmt::format("Records {} to {}", from + 1, to);
    HtmlTable table = records_table(title);
    for (std::size_t i = from; i < to; ++i) add_record(table, records[i], origins[i], i + 1, state.output);
    out += from == 0
               ? table.html()
               : "<details class=\"part\"><summary>" + title + "</summary>\n" + table.html() + "</details>\n";
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
