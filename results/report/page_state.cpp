#include "results/report/page_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "results/report/assets.hpp"

namespace penstock::report {
namespace {

constexpr size_t kUnfoldedParts = 4;
// How many ranges of record numbers ("1 to 25") one cell of a table shows.
constexpr size_t kMostRangesPerCell = 6;

const Sentence* first_of(const std::vector<Sentence>& sentences, std::string_view kind) {
  for (const Tone tone : {Tone::finding, Tone::caution})
    for (const Sentence& sentence : sentences)
      if (sentence.tone == tone && sentence.kind == kind) return &sentence;
  return nullptr;
}

}  // namespace

std::string PageState::add_chart(Chart chart) {
  chart.id = fmt::format("chart-{}", charts.size() + 1);
  Sheet sheet = chart_sheet(chart);
  sheet.name = sheet_name(chart.title, sheets);
  std::string out = chart_library_js.empty() ? "" : chart_html(chart, csv_button(sheet));
  charts.push_back(std::move(chart));
  sheets.push_back(std::move(sheet));
  return out;
}

std::string PageState::add_chart_with_table(Chart chart, const HtmlTable& table) {
  return "<div class=\"side-by-side\">\n" + (chart.series.empty() ? "" : add_chart(std::move(chart))) +
         table.html() + "</div>\n";
}

std::string PageState::add_sheet(std::string_view title, std::vector<std::string> columns,
                                 std::vector<std::vector<std::string>> rows) {
  const auto tables_before =
      std::count_if(sheets.begin(), sheets.end(), [](const Sheet& sheet) { return !sheet.is_of_chart; });
  sheets.push_back({fmt::format("table-{}", tables_before + 1), sheet_name(title, sheets), std::move(columns),
                    std::move(rows)});
  return csv_button(sheets.back());
}

std::string PageState::add_bars(const std::string& caption, const std::vector<Bar>& bars) {
  if (bars_html(caption, bars, "").empty()) return "";
  std::vector<std::string> columns{"bar"};
  for (const Segment& segment : bars.front().segments) columns.push_back(std::string(segment.label) + " (s)");
  std::vector<std::vector<std::string>> rows;
  for (const Bar& bar : bars) {
    rows.push_back({bar.label});
    for (const Segment& segment : bar.segments) rows.back().push_back(plain_number(segment.seconds));
  }
  return bars_html(caption, bars, add_sheet(caption, std::move(columns), std::move(rows)));
}

std::string PageState::open_section(std::string_view id, std::string_view title, std::string_view lead,
                                    const std::string& answer) {
  contents.emplace_back(id, title);
  std::string out = fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n", id, escape(title));
  out += answer;
  if (!lead.empty()) out += "<p class=\"lead\">" + escape(lead) + "</p>\n";
  return out;
}

std::string PageState::answers(std::initializer_list<std::string_view> kinds) const {
  std::string out;
  for (const std::string_view kind : kinds)
    if (const Sentence* const sentence = first_of(sentences, kind))
      out += answer_html(sentence->text, sentence->anchor);
  return out;
}

size_t PageState::number_of(const Record& record) const {
  return size_t(&record - first_record) + 1;
}

Markup PageState::record_link(const Record& record) const {
  return {fmt::format("<a href=\"#record-{0}\" aria-label=\"record {0}\">{0}</a>", number_of(record))};
}

std::string rate_or_dash(const std::optional<double>& bytes_per_s, const Output& output) {
  return bytes_per_s ? format_rate(*bytes_per_s, output) : "-";
}

std::string answer_html(std::string_view sentence, std::string_view anchor, std::string_view link_text) {
  std::string out = "<p class=\"answer\">" + sentence_html(sentence);
  if (!anchor.empty())
    out += " <a class=\"to\" href=\"#" + escape(anchor) + "\">" + escape(link_text) + "</a>";
  return out + "</p>\n";
}

std::string tile_html(std::string_view value, std::string_view unit, std::string_view label, size_t colour) {
  return fmt::format(
      "<li class=\"tile colour-{}\"><span class=\"tile-value\">{}<small>{}</small></span><span "
      "class=\"tile-label\">{}</span></li>\n",
      colour % 7, escape(value), escape(unit), escape(label));
}

std::string_view verdict_class(Verdict verdict) {
  if (verdict == Verdict::ok) return "good";
  return verdict_exit_code(verdict) == 0 ? "caution" : "failure";
}

std::string verdict_title(Verdict verdict) {
  std::string title(verdict_name(verdict));
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

std::string verdict_html(Verdict verdict) {
  return fmt::format("<span class=\"verdict {}\">{}</span>", verdict_class(verdict),
                     escape(verdict_title(verdict)));
}

std::string part_html(size_t index, std::string_view anchor, std::string_view title,
                      const std::string& body) {
  if (index < kUnfoldedParts) return "<h3 id=\"" + escape(anchor) + "\">" + escape(title) + "</h3>\n" + body;
  return "<details class=\"part\" id=\"" + escape(anchor) + "\"><summary>" + escape(title) + "</summary>\n" +
         body + "</details>\n";
}

std::string record_ranges_html(const std::vector<size_t>& numbers) {
  std::string out;
  size_t ranges_written = 0;
  const auto link = [](size_t number) { return fmt::format("<a href=\"#record-{0}\">{0}</a>", number); };
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (ranges_written++ == kMostRangesPerCell) return out + fmt::format(" and {} more", numbers.size() - i);
    if (!out.empty()) out += ", ";
    out += link(numbers[i]);
    if (end - i > 1) out += (end - i > 2 ? " to " : ", ") + link(numbers[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace penstock::report
