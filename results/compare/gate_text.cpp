#include "results/compare/gate_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"

namespace penstock {
namespace {

std::string signed_percent(double fraction) {
  if (fraction == 0) return "0%";
  const double percent = 100 * fraction;
  return std::abs(percent) < 9.95 ? fmt::format("{:+.1f}%", percent) : fmt::format("{:+.0f}%", percent);
}

std::string p_text(const ComparedMetric& row) {
  if (row.is_exact_count) return "exact";
  if (!row.p) return "-";
  return *row.p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", *row.p);
}

std::string unsigned_percent(double fraction) {
  const std::string text = signed_percent(std::abs(fraction));
  return text.starts_with('+') ? text.substr(1) : text;
}

std::string smallest_detectable_change_text(const ComparedMetric& row) {
  return row.detectable ? unsigned_percent(*row.detectable) : "-";
}

std::string samples_text(const ComparedMetric& row) {
  if (row.metric.empty()) return "-";
  if (row.paired) return count_of(row.base_samples, "pair");
  return row.base_samples == row.candidate_samples
             ? std::to_string(row.base_samples)
             : fmt::format("{} and {}", row.base_samples, row.candidate_samples);
}

using Columns = std::vector<Table::Column>;
using Rows = std::vector<std::vector<std::string>>;

const Columns kGateColumns{
    {"cell", Align::left}, {"metric", Align::left}, {"base"}, {"candidate"}, {"change"}, {"p"}, {"would see"},
    {"samples"},           {"verdict", Align::left}};

Rows gate_rows(const Comparison& comparison, const Output& output) {
  Rows rows;
  for (const ComparedMetric& row : comparison.rows) {
    const bool has_figures = !row.unit.empty() && row.base_samples > 0 && row.candidate_samples > 0;
    rows.push_back({row.cell, row.metric.empty() ? "-" : row.metric,
                    has_figures ? format_metric(row.base, row.unit, output) : "-",
                    has_figures ? format_metric(row.candidate, row.unit, output) : "-", change_text(row),
                    p_text(row), smallest_detectable_change_text(row), samples_text(row), outcome_text(row)});
  }
  return rows;
}

const Columns kHistoryColumns{
    {"cell", Align::left},        {"metric", Align::left}, {"runs"}, {"before"}, {"after"}, {"p"},
    {"what changed", Align::left}};

Rows history_rows(const History& history, const Output& output) {
  Rows rows;
  for (const HistoryRow& row : history.rows) {
    const auto value = [&](double number) {
      return row.changed || row.suspected ? format_metric(number, row.unit, output) : "-";
    };
    rows.push_back({row.cell, row.metric, std::to_string(row.runs),
                    row.change ? value(row.change->median_before) : "-",
                    row.change ? value(row.change->median_after) : "-",
                    row.change ? fmt::format("{:.4f}", row.p) : "-", change_text(row)});
  }
  return rows;
}

std::string table_text(const Columns& columns, const Rows& rows) {
  Table table(columns);
  for (const std::vector<std::string>& row : rows) table.row(row);
  return table.text();
}

// Escapes text for a cell of a Markdown table or an item of a list.
std::string escape_markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
    } else if (c == '<') {
      out += "&lt;";
    } else {
      if (c == '|' || c == '*' || c == '_' || c == '`' || c == '[' || c == ']' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string markdown_table(const Columns& columns, const Rows& rows) {
  std::string out = "|";
  for (const Table::Column& column : columns) out += " " + column.title + " |";
  out += "\n|";
  for (const Table::Column& column : columns) out += column.align == Align::left ? " --- |" : " ---: |";
  out += "\n";
  for (const std::vector<std::string>& row : rows) {
    out += "|";
    for (const std::string& cell : row) out += fmt::format(" {} |", escape_markdown(cell));
    out += "\n";
  }
  return out;
}

std::string markdown_list(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "- " + escape_markdown(line) + "\n";
  return out.empty() ? out : "\n" + out;
}

// The largest change for the worse that some cell would not have shown belongs to the conclusion.
std::string no_regression_text(const Comparison& comparison) {
  double largest = 0;
  for (const ComparedMetric& row : comparison.rows) {
    if (row.outcome != GateOutcome::same || row.is_exact_count) continue;
    if (!row.detectable) return "No regression found; how small a loss would have been seen is unknown.";
    largest = std::max(largest, *row.detectable);
  }
  if (largest == 0) return "No regression.";
  return fmt::format("No regression found; a loss below {} may not have been seen.",
                     unsigned_percent(largest));
}

std::string conclusion_text(const Comparison& comparison) {
  switch (comparison.exit_code()) {
    case 0:
      return no_regression_text(comparison);
    case 1:
      return "Regression.";
    case 3:
      return "Inconclusive: too few samples for a decision.";
    case 4:
      return "Missing or failed: the candidate lacks what the base has.";
    default:
      return "Incomparable: the two sides were not measured alike.";
  }
}

constexpr std::string_view kHistoryAdvice =
    "Advisory: runs of many days differ in more than the program; a gate runs both sides in turn.";

}  // namespace

std::string format_metric(double value, const std::string& unit, const Output& output) {
  if (!std::isfinite(value)) return "-";
  if (unit == "B/s") return fmt::format("{} {}", format_rate(value, output), rate_unit(output));
  if (unit == "B" && value >= 1e5) return format_bytes(value, output);
  if (unit == "s") return format_seconds(value);
  if (unit == "ns") return format_seconds(value / 1e9);
  if (unit == "1") return format_number(value, output);
  return fmt::format("{} {}", format_number(value, output), unit == "1/s" ? "/s" : unit);
}

std::string change_text(const ComparedMetric& row) {
  if (row.metric.empty() || row.base_samples == 0 || row.candidate_samples == 0) return "-";
  if (!row.change) return row.base == 0 && row.candidate != 0 ? "from 0" : "-";
  if (!row.interval) return signed_percent(*row.change);
  return fmt::format("{} ({} to {})", signed_percent(*row.change), signed_percent(row.interval->low),
                     signed_percent(row.interval->high));
}

std::string outcome_text(const ComparedMetric& row) {
  const std::string text(names_of(row.outcome).text);
  return row.reason.empty() ? text : text + ": " + row.reason;
}

std::string summary_text(const Comparison& comparison, const CompareSettings& settings) {
  std::string text;
  for (size_t i = 0; i < kOutcomes.size(); ++i) {
    const auto outcome = static_cast<GateOutcome>(i);
    const size_t count = comparison.count(outcome);
    if (count == 0) continue;
    const bool has_plural = outcome == GateOutcome::regression;
    text += text.empty() ? "" : ", ";
    text += has_plural ? count_of(count, kOutcomes[i].name)
                       : fmt::format("{} {}", count,
                                     outcome == GateOutcome::same ? "without a change" : kOutcomes[i].name);
  }
  if (comparison.tested_metrics == 0) return text + ".";
  return text +
         fmt::format(
             ". {} tested: a change counts if p over all of them is at most {:.3g} and the change is at "
             "least {:.3g}%. That needs {} a side.",
             comparison.tested_metrics, settings.alpha, 100 * settings.least_effect,
             count_of(comparison.least_samples, "sample"));
}

std::string comparison_text(const Comparison& comparison, const CompareSettings& settings,
                            const Output& output) {
  std::string text = table_text(kGateColumns, gate_rows(comparison, output)) + "\n" +
                     summary_text(comparison, settings) + "\n";
  for (const std::string& remark : comparison.remarks) text += remark + "\n";
  return text + conclusion_text(comparison) + "\n";
}

std::string comparison_markdown(const Comparison& comparison, const CompareSettings& settings,
                                const Output& output) {
  return "### " + conclusion_text(comparison) + "\n\n" + escape_markdown(summary_text(comparison, settings)) +
         "\n\n" + markdown_table(kGateColumns, gate_rows(comparison, output)) +
         markdown_list(comparison.remarks);
}

std::string change_text(const HistoryRow& row) {
  if (!row.change) return fmt::format("{}; {} are needed", count_of(row.runs, "run"), kLeastHistoryValues);
  if (!row.changed && !row.suspected) return "no change";
  const double median_before = row.change->median_before;
  const std::string change_by =
      median_before == 0 ? "from 0" : signed_percent(row.change->median_after / median_before - 1);
  const std::string_view direction =
      row.changed ? (row.is_worse ? "WORSE" : "better") : (row.is_worse ? "perhaps worse" : "perhaps better");
  return fmt::format("{}: {} since run {} of {} ({})", direction, change_by, row.change->index + 1, row.runs,
                     row.first_changed_run);
}

std::string history_text(const History& history, const Output& output) {
  std::string text = table_text(kHistoryColumns, history_rows(history, output)) + "\n";
  for (const std::string& remark : history.remarks) text += remark + "\n";
  return text + std::string(kHistoryAdvice) + "\n";
}

std::string history_markdown(const History& history, const Output& output) {
  return "### History\n\n" + markdown_table(kHistoryColumns, history_rows(history, output)) +
         markdown_list(history.remarks) + "\n" + std::string(kHistoryAdvice) + "\n";
}

}  // namespace penstock
