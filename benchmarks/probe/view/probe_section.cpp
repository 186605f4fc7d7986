// The section "Tier probe" of the report page: reads, writes and metadata, each with a table of all tiers and
// charts against the depth.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "benchmarks/probe/view/probe_parts.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/text.hpp"
#include "results/record/statistics.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;

// The heading of a record's column: "disk, 2 clients".
std::vector<std::string> probe_columns(const RecordList& records) {
  std::vector<std::string> names;
  for (const Record* const record : records) {
    const auto clients = verdicts::threads_of(*record);
    std::string name = tier_name(*record);
    if (clients) name += *clients == 1 ? ", 1 client" : fmt::format(", {} clients", *clients);
    if (const auto ranks = whole_number(*record, "ranks", 2))
      name += fmt::format(" a rank, {} ranks", *ranks);
    if (const std::string labels = label_text(*record); !labels.empty()) name += ", " + labels;
    names.push_back(std::move(name));
  }
  return names;
}

// A figure with a bar that compares it with the highest of its row, and how much its repeats differ.
Markup probe_cell(const Metric* metric, double highest, size_t colour, const Output& output) {
  if (metric == nullptr) return text("-");
  const double difference = spread(metric->samples);
  std::string note = metric->samples.size() < 2 ? "one repeat" : "spread " + format_percent(difference);
  std::string html = escape(probe_text(*metric, output)) + "<small> " + escape(note) + "</small>";
  if (difference > kNoisySpread) html += " <span class=\"mark\">noisy</span>";
  html += fmt::format(
      "<span class=\"meter colour-{}\" aria-hidden=\"true\"><i style=\"width:{:.1f}%\"></i></span>",
      colour % 7, highest > 0 ? 100 * metric->value() / highest : 0.0);
  return {std::move(html)};
}

std::string probe_table_html(const std::string& title, const std::vector<std::string>& probes,
                             const RecordList& records, PageState& state) {
  std::vector<HtmlTable::Column> columns{{"probe", Kind::words}, {"unit", Kind::words}};
  std::vector<std::string> sheet_columns{"probe", "unit"};
  for (const std::string& name : probe_columns(records)) {
    columns.push_back(
        {name, Kind::number, "median of the repeats; the bar compares it with the fastest of its row"});
    for (const char* const part : {"", ": lowest", ": highest"}) sheet_columns.push_back(name + part);
  }
  HtmlTable table(title, columns);
  std::vector<std::vector<std::string>> sheet;
  for (const std::string& probe : probes) {
    double highest = 0;
    for (const Record* const record : records)
      if (const Metric* const metric = probe_metric(*record, probe))
        highest = std::max(highest, metric->value());
    std::vector<Markup> row{text(probe_title(probe)), text(probe_unit(probe, state.output))};
    std::vector<std::string> sheet_row{
        probe, probe_metric(*records[0], probe) == nullptr ? "" : probe_metric(*records[0], probe)->unit};
    for (const Record* const record : records) {
      const Metric* const metric = probe_metric(*record, probe);
      row.push_back(probe_cell(metric, highest, colour_of(state.tiers, tier_name(*record)), state.output));
      sheet_row.push_back(metric == nullptr ? "" : plain_number(metric->value()));
      sheet_row.push_back(metric == nullptr ? "" : plain_number(percentile(metric->samples, 0)));
      sheet_row.push_back(metric == nullptr ? "" : plain_number(percentile(metric->samples, 100)));
    }
    table.row(std::move(row));
    sheet.push_back(std::move(sheet_row));
  }
  if (table.empty()) return "";
  table.set_class_and_button("probes", state.add_sheet(title, std::move(sheet_columns), std::move(sheet)));
  return table.html();
}

// A chart of the probes that differ only in their depth.
Chart depth_chart(const std::vector<std::string>& probes, const RecordList& records, PageState& state) {
  Chart chart;
  std::string title = probe_title(probes.front());
  title = title.substr(0, title.rfind(", depth"));
  chart.title = title + " against depth";
  chart.summary = chart.title + ", a line for each tier and number of clients; the table has the numbers";
  chart.x_label = "depth";
  chart.y_label = probe_unit(probes.front(), state.output);
  chart.x_is_log2 = true;
  for (const std::string& probe : probes) chart.x.push_back(double(*probe_depth(probe)));
  const std::vector<std::string> names = probe_columns(records);
  std::map<std::string, size_t> lines_of_tier;
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string tier = tier_name(*records[i]);
    ChartSeries series{
        names[i], colour_of(state.tiers, tier), Stroke(lines_of_tier[tier]++ % 4), true, {}, {}, {}};
    for (const std::string& probe : probes) {
      const Metric* const metric = probe_metric(*records[i], probe);
      const double unit = metric != nullptr && metric->unit == "B/s" ? chart_unit(state.output) : 1;
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
    if (std::any_of(series.y.begin(), series.y.end(), [](const auto& value) { return value.has_value(); }))
      chart.series.push_back(std::move(series));
  }
  return chart;
}

std::string depth_charts(const std::vector<std::string>& probes, const RecordList& records,
                         PageState& state) {
  std::map<std::string, std::vector<std::string>> families;
  for (const std::string& probe : probes)
    if (probe_depth(probe)) families[probe.substr(0, probe.rfind('.'))].push_back(probe);
  std::string html;
  for (const auto& [family, members] : families)
    if (members.size() > 1) html += state.add_chart(depth_chart(members, records, state));
  return html.empty() ? "" : "<div class=\"charts\">\n" + html + "</div>\n";
}

}  // namespace

std::string probe_section(std::span<const Record> records, PageState& state) {
  const RecordList probes = probe_records(records);
  if (probes.empty()) return "";
  std::string out = state.open_section(
      "probe", "Tier probe",
      "Each probe works on its own temporary files. Writes include the time until the data are durable. A "
      "bar compares a figure with the fastest of its row; a noisy one has repeats that differ by more than "
      "20%.",
      state.answers({"probe.read.sequential.", "probe.write.sequential.", "probe.metadata.create"}));
  size_t index = 0;
  constexpr NamedText kParts[] = {{"read.", "Reads"}, {"write.", "Writes"}, {"metadata.", "Metadata"}};
  const std::vector<std::string> names = probe_names(probes);
  for (const auto& [start, title] : kParts) {
    std::vector<std::string> found;
    for (const std::string& name : names)
      if (name.starts_with(start)) found.push_back(name);
    if (found.empty()) continue;
    std::string body = depth_charts(found, probes, state);
    body += probe_table_html(std::string(title), found, probes, state);
    out += part_html(index, group_anchor("probe", index), title, body);
    ++index;
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
