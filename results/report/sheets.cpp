#include "results/report/sheets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io_backends/core/csv_field.hpp"
#include "results/record/json_members.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

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
  return i < series.is_interval.size() && series.is_interval[i] ? "95% of the median" : "lowest to highest";
}

}  // namespace

std::string csv_text(const Sheet& sheet) {
  std::string out;
  add_line(out, sheet.columns);
  for (const auto& row : sheet.rows) add_line(out, row);
  return out;
}

std::string file_name_part(std::string_view words) {
  constexpr size_t kMostNameChars = 60;
  std::string out;
  for (const char c : words) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_letter || is_upper)
      out += is_upper ? char(c - 'A' + 'a') : c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
    if (out.size() >= kMostNameChars) break;
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

std::string plain_number(double value) {
  return fmt::format("{}", value);
}

Sheet chart_sheet(const Chart& chart) {
  Sheet sheet{chart.id, chart.id + "-" + file_name_part(chart.title), {chart.x_label}, {}, true};
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

Sheet records_sheet(const std::vector<StoredRecord>& records) {
  Sheet sheet{.id = {},
              .name = "records",
              .columns = {"file", "line", "started", "command", "tier", "metric", "unit", "value", "low",
                          "high", "samples", "verdict", "reason", "parameters"},
              .rows = {}};
  const auto number = [](double value) { return std::isfinite(value) ? plain_number(value) : std::string(); };
  for (const StoredRecord& stored : records) {
    const Record& record = stored.record;
    const std::vector<std::string> head{stored.file.string(), std::to_string(stored.line), record.started,
                                        record.command, member_text(record.parameters, "tier")};
    const std::vector<std::string> tail{std::string(verdict_name(record.verdict)), record.reason,
                                        one_line(record.parameters)};
    const auto add_row = [&](const std::vector<std::string>& middle) {
      std::vector<std::string> row = head;
      row.insert(row.end(), middle.begin(), middle.end());
      row.insert(row.end(), tail.begin(), tail.end());
      sheet.rows.push_back(std::move(row));
    };
    bool has_rows = false;
    for (const auto& [name, metric] : record.metrics) {
      if (metric.samples.empty()) continue;
      has_rows = true;
      const auto [low, high] = std::minmax_element(metric.samples.begin(), metric.samples.end());
      add_row({name, metric.unit, number(metric.value()), number(*low), number(*high),
               std::to_string(metric.samples.size())});
    }
    if (!has_rows) add_row({"", "", "", "", "", "0"});
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
