#include "profiling/report/session_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/report/session_report.hpp"
#include "profiling/report/session_text.hpp"
#include "results/report/frame.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock {
namespace {

using report::Chart;
using report::ChartSeries;
using report::HtmlTable;
using report::PageState;
using report::Stroke;

constexpr size_t kMostTableRows = 100;

std::string table_html(const std::string& caption, const Rows& rows) {
  if (rows.rows.empty()) return "";
  std::vector<HtmlTable::Column> columns;
  for (const std::string& title : rows.titles)
    columns.push_back({title, columns.empty() ? HtmlTable::Kind::words : HtmlTable::Kind::number, ""});
  HtmlTable table(caption, std::move(columns));
  for (const auto& row : rows.rows) table.row(row);
  const std::string not_shown = not_shown_text(rows);
  return table.html() + (not_shown.empty() ? "" : "<p>" + report::escape(not_shown) + "</p>\n");
}

std::string facts_html(const std::vector<Fact>& facts) {
  HtmlTable table("Session summary", {{"", HtmlTable::Kind::words}, {"", HtmlTable::Kind::words}});
  for (const Fact& fact : facts) table.row(std::vector<std::string>{fact.title, fact.text});
  return table.html();
}

Chart rate_chart(const SegmentFacts& segments, const Output& output) {
  const double unit = output.si_units ? 1e6 : 1048576.0;
  Chart chart;
  chart.title = "Bandwidth over time";
  chart.summary = "Bytes read and written in each interval since the session started";
  chart.x_label = "seconds";
  chart.y_label = rate_unit(output);
  for (size_t i = 0; i < segments.bytes_read.size(); ++i)
    chart.x.push_back(double(i + 1) * segments.interval_s);
  size_t colour = 0;
  for (const auto& [label, bytes] :
       {std::pair{"read", &segments.bytes_read}, std::pair{"written", &segments.bytes_written}}) {
    ChartSeries series{label, colour++, Stroke::solid, false, {}, {}, {}};
    for (const double value : *bytes) series.y.emplace_back(value / segments.interval_s / unit);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::string peak_html(const SegmentFacts& segments, const Output& output) {
  const auto peak_text = [&](const std::vector<double>& bytes) {
    const double peak = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
    return bytes_per_s_text(peak / segments.interval_s, output);
  };
  return "<p>" +
         report::escape(fmt::format("Busiest interval ({}): {} read, {} written.",
                                    format_seconds(segments.interval_s), peak_text(segments.bytes_read),
                                    peak_text(segments.bytes_written))) +
         "</p>\n";
}

std::string with_section_end(std::string section) {
  return section + "</section>\n";
}

}  // namespace

Result<void> write_session_page(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                Output output, const std::string& file) {
  PENSTOCK_ASSIGN(WholeFile page, WholeFile::create(file, "the report"));
  output.groups_digits = true;
  const SessionReport report = inspect_session(session, sums, filter, "all", kMostTableRows);
  const std::vector<Fact> facts = session_facts(session, report.summary, filter, output);
  PageState state;
  state.output = output;
  std::string body = with_section_end(state.open_section("findings", "Findings", "") + facts_html(facts));
  std::string time_section = state.open_section("time", "Over time", "");
  if (report.summary.segments) {
    time_section += state.add_chart(rate_chart(*report.summary.segments, output));
    time_section += peak_html(*report.summary.segments, output);
    if (report.summary.drops.segments > 0)
      time_section += "<p>" +
                      report::escape("The chart omits " + dropped_calls_text(report.summary.drops) +
                                     ", which were dropped.") +
                      "</p>\n";
  } else {
    time_section +=
        "<p>No timeline: calls were counted, not recorded individually. To record every call: <code>penstock "
        "profile run --trace</code>.</p>\n";
  }
  body += with_section_end(std::move(time_section));
  body += with_section_end(state.open_section("sizes", "Sizes", "") +
                           table_html("Sizes of calls, and of the files that were read or written",
                                      size_rows(report.summary, output)));
  body += with_section_end(
      state.open_section("places", "Places", "By mount (the current mounts of this machine) and by folder.") +
      table_html("Mounts", roll_up_rows("mount", report.mounts, output)) +
      table_html("Busiest folders, by bytes",
                 roll_up_rows("folder", report.rows, output, report.rows_not_shown)));
  body += with_section_end(state.open_section("files", "Files", "") +
                           table_html("Most bytes", file_rows(report.most_bytes, output)) +
                           table_html("Most time", file_rows(report.most_time, output)) +
                           table_html("Biggest", file_rows(report.biggest, output)));
  body += with_section_end(
      state.open_section("processes", "Processes", "") +
      table_html("Busiest processes, by bytes", process_rows(report.processes, kMostTableRows, output)));
  PENSTOCK_TRY(page.write(report::frame_page("I/O profile", {facts.front().text}, body, state)));
  return page.publish();
}

}  // namespace penstock
