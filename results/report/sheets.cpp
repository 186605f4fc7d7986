#include "results/report/sheets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "io_backends/core/csv_field.hpp"
#include "io_backends/core/text.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

constexpr size_t kMostNameChars = 120;
// The names of the tables of records. `report --to csv` writes them into the same folder.
constexpr std::string_view kTableNames[] = {"records", "repeats"};

void add_line(std::string& out, const std::vector<std::string>& fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) out += ',';
    out += csv_field(fields[i]);
  }
  out += "\r\n";
}

std::string value_at(const std::vector<std::optional<double>>& values, size_t i) {
  return i < values.size() && values[i] && std::isfinite(*values[i]) ? plain_number(*values[i]) : "";
}

std::string range_at(const ChartSeries& series, size_t i) {
  if (i >= series.low.size() || !series.low[i]) return "";
  return std::string(range_text(i < series.is_interval.size() && series.is_interval[i]));
}

}  // namespace

std::string csv_text(const Sheet& sheet) {
  std::string out;
  add_line(out, sheet.columns);
  for (const auto& row : sheet.rows) add_line(out, row);
  return out;
}

std::string file_name_part(std::string_view words) {
  std::string out;
  while (!words.empty()) {
    std::string_view word = take_part(words, ' ');
    while (word.ends_with('/')) word.remove_suffix(1);
    const size_t slash = word.rfind('/');
    // Of a path its last part remains, because it differs between machines. "MiB/s" is no path.
    if (slash != std::string_view::npos && word.substr(slash + 1, 1) != "s") word.remove_prefix(slash + 1);
    if (!out.empty() && out.back() != '-') out += '-';
    for (const char c : word) {
      const char lower = lower_case(c);
      if ((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9'))
        out += lower;
      else if (!out.empty() && out.back() != '-')
        out += '-';
    }
  }
  out.resize(std::min(out.size(), kMostNameChars));
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

std::string sheet_name(std::string_view title, std::span<const Sheet> others) {
  std::string name = file_name_part(title);
  if (name.empty()) name = "table";
  const auto is_taken = [&](const std::string& wanted) {
    return std::find(std::begin(kTableNames), std::end(kTableNames), wanted) != std::end(kTableNames) ||
           std::any_of(others.begin(), others.end(),
                       [&](const Sheet& other) { return other.name == wanted; });
  };
  std::string unique = name;
  for (int number = 2; is_taken(unique); ++number) unique = fmt::format("{}-{}", name, number);
  return unique;
}

std::string plain_number(double value) {
  return fmt::format("{}", value);
}

Sheet chart_sheet(const Chart& chart) {
  Sheet sheet{chart.id, file_name_part(chart.title), {chart.x_label}, {}, true};
  for (const ChartSeries& series : chart.series) {
    sheet.columns.push_back(fmt::format("{} ({})", series.label, chart.y_label));
    if (series.low.empty()) continue;
    for (const char* end : {"low", "high", "range"}) sheet.columns.push_back(series.label + ": " + end);
  }
  for (size_t i = 0; i < chart.x.size(); ++i) {
    std::vector<std::string> row{plain_number(chart.x[i])};
    for (const ChartSeries& series : chart.series) {
      row.push_back(value_at(series.y, i));
      if (series.low.empty()) continue;
      row.push_back(value_at(series.low, i));
      row.push_back(value_at(series.high, i));
      row.push_back(range_at(series, i));
    }
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

std::string csv_button(const Sheet& sheet) {
  return fmt::format(
      "<button type=\"button\" class=\"csv script-only\" data-csv=\"{}\" data-file=\"{}.csv\" title=\"save "
      "these numbers "
      "as CSV\">CSV</button>",
      escape(sheet.id), escape(sheet.name));
}

}  // namespace penstock::report
