// The section that shows what changed between two sets of records, and which changes are significant.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;

constexpr size_t kMostRowsPerTable = 100;  // After this many rows, a table is folded (it opens by a click).

std::string signed_percent(double fraction) {
  const std::string size = format_percent(std::abs(fraction));
  return (fraction < 0 ? "\u2212" : "+") + size;
}

// Where a change is on a bar that reaches from -limit to +limit, in percent of the bar's width.
double bar_position(double change, double limit) {
  return 50 + 50 * std::clamp(change / limit, -1.0, 1.0);
}

// The HTML of a bar that shows a change: its interval, a mark at the change, and a line at "no change".
std::string change_bar(const ComparedMetric& row, double limit) {
  if (!row.change || !std::isfinite(*row.change)) return "";
  const double low = bar_position(row.interval ? row.interval->low : *row.change, limit);
  const double high = bar_position(row.interval ? row.interval->high : *row.change, limit);
  return fmt::format(
      "<span class=\"change {}\" aria-hidden=\"true\"><span class=\"none-at\"></span><span class=\"range\" "
      "style=\"left:{:.2f}%;width:{:.2f}%\"></span><span class=\"at\" style=\"left:{:.2f}%\"></span></span>",
      names_of(row.outcome).severity, low, std::max(0.0, high - low), bar_position(*row.change, limit));
}

double scale_limit(const std::vector<ComparedMetric>& rows) {
  double limit = 0.1;
  for (const ComparedMetric& row : rows) {
    if (!row.change || !std::isfinite(*row.change)) continue;
    limit = std::max(limit, std::abs(*row.change));
    if (row.interval && std::isfinite(row.interval->low) && std::isfinite(row.interval->high))
      limit = std::max({limit, std::abs(row.interval->low), std::abs(row.interval->high)});
  }
  return std::min(limit * 1.05, 2.0);
}

std::string change_text(const ComparedMetric& row) {
  if (row.metric.empty()) return row.cell;
  return row.change ? fmt::format("{} {} ({})", row.metric, signed_percent(*row.change), row.cell)
                    : fmt::format("{} ({})", row.metric, row.cell);
}

// Names the first two changes with this outcome, and tells how many more there are.
std::string first_changes(const Comparison& comparison, GateOutcome outcome) {
  std::vector<std::string> names;
  for (const ComparedMetric& row : comparison.rows)
    if (row.outcome == outcome) names.push_back(change_text(row));
  return verdicts::enumerate(names, 2);
}

std::string summary_sentence(const NamedComparison& one) {
  const Comparison& comparison = one.comparison;
  std::vector<std::string> parts;
  const auto add = [&](GateOutcome outcome, const char* outcome_text, bool with_names) {
    const size_t count = comparison.count(outcome);
    if (count > 0)
      parts.push_back(fmt::format("{} {}{}", count, outcome_text,
                                  with_names ? ": " + first_changes(comparison, outcome) : ""));
  };
  add(GateOutcome::regression, "worse", true);
  add(GateOutcome::better, "better", true);
  add(GateOutcome::missing, "missing", true);
  add(GateOutcome::failed, "failed", true);
  add(GateOutcome::inconclusive, "undecided for too few samples", false);
  add(GateOutcome::incomparable, "incomparable", false);
  add(GateOutcome::differs, "otherwise", true);
  add(GateOutcome::same, "without a difference that counts", false);
  add(GateOutcome::added, "new", false);
  return fmt::format("From {} to {}: {}.", one.base, one.candidate,
                     parts.empty() ? "nothing to compare" : fmt::format("{}", fmt::join(parts, "; ")));
}

std::vector<std::string> sheet_row(const ComparedMetric& row) {
  const auto number = [](std::optional<double> value) {
    return value ? plain_number(*value) : std::string();
  };
  return {row.cell,
          row.metric,
          row.unit,
          std::string(names_of(row.outcome).name),
          plain_number(row.base),
          plain_number(row.candidate),
          number(row.change),
          row.interval ? plain_number(row.interval->low) : "",
          row.interval ? plain_number(row.interval->high) : "",
          number(row.p),
          row.paired ? "paired" : "unpaired",
          row.reason};
}

// The text for p: "exact" for a count, and "-" for a change for the better, because p is the probability of a
// change for the worse.
std::string p_text(const ComparedMetric& row) {
  if (row.is_exact_count) return "exact";
  return row.p && row.outcome != GateOutcome::better ? fmt::format("{:.2g}", *row.p) : "-";
}

void add_row(HtmlTable& table, const ComparedMetric& row, double limit, const Output& output) {
  const bool has_base = row.base_samples > 0;
  const bool has_candidate = row.candidate_samples > 0;
  std::string remark = escape(row.reason);
  if (row.outcome == GateOutcome::same && row.detectable)
    remark += fmt::format("{}{} would have been found", remark.empty() ? "" : "; ",
                          format_percent(*row.detectable));
  table.row({text(row.cell), text(row.metric),
             Markup{fmt::format("<span class=\"verdict {}\">{}</span>", names_of(row.outcome).severity,
                                names_of(row.outcome).report_text)},
             text(has_base ? value_text(row.base, row.unit, output) : "-"),
             text(has_candidate ? value_text(row.candidate, row.unit, output) : "-"),
             text(row.change ? signed_percent(*row.change) : "-"),
             text(row.interval ? fmt::format("{} to {}", signed_percent(row.interval->low),
                                             signed_percent(row.interval->high))
                               : "-"),
             Markup{change_bar(row, limit)}, text(p_text(row)),
             text(fmt::format("{}, {}", row.base_samples, row.candidate_samples)), Markup{remark}});
}

HtmlTable changes_table(const std::string& title, const NamedComparison& one) {
  return HtmlTable(title,
                   {{"cell", Kind::words},
                    {"metric", Kind::words},
                    {"outcome", Kind::words},
                    {one.base, Kind::number, "the median"},
                    {one.candidate, Kind::number, "the median"},
                    {"change", Kind::number, "Hodges-Lehmann: the middle of all differences"},
                    {"95%", Kind::number, "95% confidence interval of the change"},
                    {"on one scale", Kind::words, "the line marks 0%"},
                    {"p", Kind::number, "of the worse direction, adjusted for how many metrics were tested"},
                    {"samples", Kind::number, "of either side"},
                    {"why", Kind::words}});
}

std::string comparison_html(const NamedComparison& one, PageState& state) {
  const std::vector<ComparedMetric>& rows = one.comparison.rows;
  const double limit = scale_limit(rows);
  const std::string title = fmt::format("From {} to {}", one.base, one.candidate);
  std::vector<std::vector<std::string>> sheet;
  for (const ComparedMetric& row : rows) sheet.push_back(sheet_row(row));
  const std::string button = state.add_sheet(title,
                                             {"cell", "metric", "unit", "outcome", "base", "candidate",
                                              "change", "low", "high", "p", "how", "reason"},
                                             std::move(sheet));
  std::string out;
  for (size_t from = 0; from < rows.size(); from += kMostRowsPerTable) {
    const size_t to = std::min(rows.size(), from + kMostRowsPerTable);
    HtmlTable table =
        changes_table(from == 0 ? title : fmt::format("{}, rows {} to {}", title, from + 1, to), one);
    for (size_t i = from; i < to; ++i) add_row(table, rows[i], limit, state.output);
    table.set_class_and_button("changes", from == 0 ? button : "");
    out += from == 0 ? table.html()
                     : fmt::format("<details class=\"part\"><summary>Rows {} to {}</summary>\n{}</details>\n",
                                   from + 1, to, table.html());
  }
  if (!one.comparison.remarks.empty()) {
    out += "<ul class=\"remarks\">\n";
    for (const std::string& remark : one.comparison.remarks) out += "<li>" + escape(remark) + "</li>\n";
    out += "</ul>\n";
  }
  return out;
}

// The regression with the largest change; nullptr if there is none.
const ComparedMetric* worst_row(const Comparison& comparison) {
  const ComparedMetric* worst = nullptr;
  const auto size = [](const ComparedMetric& row) { return std::abs(row.change.value_or(0)); };
  for (const ComparedMetric& row : comparison.rows)
    if (row.outcome == GateOutcome::regression && (worst == nullptr || size(row) > size(*worst)))
      worst = &row;
  return worst;
}

std::string regression_text(const NamedComparison& one) {
  const size_t count = one.comparison.count(GateOutcome::regression);
  return fmt::format("{} is worse than {} in {}{}: {}.", one.candidate, one.base, count_of(count, "metric"),
                     count == 1 ? "" : "; the largest change", change_text(*worst_row(one.comparison)));
}

}  // namespace

std::vector<std::string> comparison_bottom_line(const std::vector<NamedComparison>& comparisons,
                                                const Output& output) {
  for (const NamedComparison& one : comparisons) {
    const ComparedMetric* const worst = worst_row(one.comparison);
    if (worst == nullptr) continue;
    std::string amount =
        fmt::format("The median went from {} to {}", value_text(worst->base, worst->unit, output),
                    value_text(worst->candidate, worst->unit, output));
    if (worst->interval)
      amount += fmt::format("; with 95% confidence the change is {} to {}",
                            signed_percent(worst->interval->low), signed_percent(worst->interval->high));
    return {regression_text(one), amount + ".",
            worst->paired
                ? fmt::format("Find out what '{}' changes before you use it.", one.candidate)
                : "Look for what changed in between (below the table of section What changed), then measure "
                  "both in turn: only that excludes drift."};
  }
  return {};
}

void describe_regressions(const std::vector<NamedComparison>& comparisons, std::vector<Sentence>& out) {
  std::vector<Sentence> regressions;
  for (size_t i = 0; i < comparisons.size(); ++i)
    if (worst_row(comparisons[i].comparison) != nullptr)
      regressions.push_back(
          {Tone::finding, "regression", regression_text(comparisons[i]), group_anchor("changes", i)});
  out.insert(out.begin(), regressions.begin(), regressions.end());
}

std::string comparison_section(const std::vector<NamedComparison>& comparisons, PageState& state) {
  if (comparisons.empty()) return "";
  std::string answers;
  for (size_t i = 0; i < comparisons.size(); ++i)
    answers += answer_html(summary_sentence(comparisons[i]), group_anchor("changes", i));
  std::string out = state.open_section(
      "changes", "What changed",
      "A metric is worse or better only where the samples exclude chance and the change is "
      "large enough to matter. What is neither is not proven to be the same: the last "
      "column shows the smallest change that would have been found.",
      answers);
  for (size_t i = 0; i < comparisons.size(); ++i)
    out += part_html(i, group_anchor("changes", i),
                     fmt::format("{} against {}", comparisons[i].candidate, comparisons[i].base),
                     comparison_html(comparisons[i], state));
  return out + "</section>\n";
}

}  // namespace penstock::report
