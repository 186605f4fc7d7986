#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "io_backends/core/text.hpp"
#include "results/compare/gate_text.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}
Json json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : Json();
}
Json interval_json(const std::optional<Interval>& interval) {
  return interval ? Json::array({json_number(interval->low), json_number(interval->high)}) : Json();
}

std::string line_of(const Json& json) {
  return one_line(json) + "\n";
}

Json settings_json(const CompareSettings& settings) {
  return Json{
      {"alpha", settings.alpha}, {"least_effect", settings.least_effect}, {"metrics", settings.metrics}};
}

// Escapes text for an XML element or attribute. A character that XML 1.0 does not allow becomes '?'.
std::string escape_xml(const std::string& text) {
  return with_escapes(text, [](char c) -> std::string_view {
    return c == '&'                               ? "&amp;"
           : c == '<'                             ? "&lt;"
           : c == '>'                             ? "&gt;"
           : c == '"'                             ? "&quot;"
           : c == '\n'                            ? "&#10;"
           : c == '\t'                            ? "&#9;"
           : c == '\r'                            ? "&#13;"
           : static_cast<unsigned char>(c) < 0x20 ? "?"
                                                  : "";
  });
}

// Describes a row of the comparison in one sentence.
std::string sentence(const ComparedMetric& row, const Output& output) {
  std::string text = outcome_text(row);
  if (row.metric.empty() || row.unit.empty()) return text;
  text += fmt::format("; {} in the base, {} in the candidate", format_metric(row.base, row.unit, output),
                      format_metric(row.candidate, row.unit, output));
  if (const std::string change = change_text(row); change != "-") text += ": " + change;
  if (row.p) text += fmt::format(", p {:.2g}", *row.p);
  return text;
}

std::string_view annotation_level(GateOutcome outcome) {
  const std::string_view element = names_of(outcome).junit;
  if (element == "failure" || element == "error") return "error";
  return element == "skipped" || outcome == GateOutcome::differs ? "warning" : "";
}

std::string escaped(std::string_view text, std::string_view characters) {
  std::string out;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos)
      out += fmt::format("%{:02X}", unsigned(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out;
}

// Replaces bytes that are not valid UTF-8. Such bytes occur in names of files and tiers.
std::string replace_invalid_utf8(const std::string& text) {
  return Json::parse(one_line(text)).get<std::string>();
}

std::string workflow_command(std::string_view level, std::string_view title, const std::string& text) {
  return fmt::format("::{} title={}::{}\n", level, github_property(title), github_value(text));
}

}  // namespace

std::string comparison_json(const Comparison& comparison, const CompareSettings& settings) {
  std::string text;
  for (const ComparedMetric& row : comparison.rows) {
    text += line_of(Json{{"kind", "row"},
                         {"cell", row.cell},
                         {"metric", row.metric},
                         {"unit", row.unit},
                         {"outcome", names_of(row.outcome).name},
                         {"reason", row.reason},
                         {"paired", row.paired},
                         {"exact", row.is_exact_count},
                         {"base_samples", row.base_samples},
                         {"candidate_samples", row.candidate_samples},
                         {"base", json_number(row.base)},
                         {"candidate", json_number(row.candidate)},
                         {"change", json_number(row.change)},
                         {"interval", interval_json(row.interval)},
                         {"p", json_number(row.p)},
                         {"detectable", json_number(row.detectable)}});
  }
  Json outcomes = Json::object();
  for (size_t i = 0; i < kOutcomes.size(); ++i)
    outcomes[std::string(kOutcomes[i].name)] = comparison.count(static_cast<GateOutcome>(i));
  return text + line_of(Json{{"kind", "summary"},
                             {"exit_code", comparison.exit_code()},
                             {"outcomes", outcomes},
                             {"tested", comparison.tested_metrics},
                             {"least_samples", comparison.least_samples},
                             {"settings", settings_json(settings)},
                             {"remarks", comparison.remarks}});
}

std::string history_json(const History& history, const CompareSettings& settings) {
  std::string text;
  for (const HistoryRow& row : history.rows) {
    Json json{{"kind", "series"},
              {"cell", row.cell},
              {"metric", row.metric},
              {"unit", row.unit},
              {"runs", row.runs},
              {"verdict", !row.change     ? "too few runs"
                          : row.changed   ? (row.is_worse ? "worse" : "better")
                          : row.suspected ? (row.is_worse ? "perhaps worse" : "perhaps better")
                                          : "no change"}};
    json["p"] = row.change ? json_number(row.p) : Json();
    json["p_alone"] = row.change ? json_number(row.change->p) : Json();
    json["before"] = row.change ? json_number(row.change->median_before) : Json();
    json["after"] = row.change ? json_number(row.change->median_after) : Json();
    json["at"] = row.change ? Json(row.change->index) : Json();
    json["since"] = row.changed || row.suspected ? Json(row.first_changed_run) : Json();
    text += line_of(json);
  }
  return text + line_of(Json{{"kind", "summary"},
                             {"exit_code", 0},
                             {"least_runs", kLeastHistoryValues},
                             {"settings", settings_json(settings)},
                             {"remarks", history.remarks}});
}

std::string comparison_junit(const Comparison& comparison, const CompareSettings& settings,
                             const Output& output) {
  std::string cases;
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;
  for (const ComparedMetric& row : comparison.rows) {
    const std::string_view element = names_of(row.outcome).junit;
    if (element == "failure") ++failures;
    if (element == "error") ++errors;
    if (element == "skipped") ++skipped;
    const std::string text = escape_xml(replace_invalid_utf8(sentence(row, output)));
    cases +=
        fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escape_xml(replace_invalid_utf8(row.cell)),
                    escape_xml(replace_invalid_utf8(row.metric.empty() ? "cell" : row.metric)));
    if (element.empty())
      cases += fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n", text);
    else
      cases += fmt::format(">\n      <{0} message=\"{1}\">{1}</{0}>\n    </testcase>\n", element, text);
  }
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                                         comparison.rows.size(), failures, errors, skipped);
  std::string summary = summary_text(comparison, settings) + "\n";
  for (const std::string& remark : comparison.remarks) summary += remark + "\n";
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite name=\"penstock compare\" "
      "{0}>\n"
      "{1}    <system-out>{2}</system-out>\n  </testsuite>\n</testsuites>\n",
      counts, cases, escape_xml(replace_invalid_utf8(summary)));
}

std::string comparison_annotations(const Comparison& comparison, const Output& output) {
  std::string text;
  for (const ComparedMetric& row : comparison.rows) {
    const std::string_view level = annotation_level(row.outcome);
    if (level.empty()) continue;
    text += workflow_command(level, row.cell + (row.metric.empty() ? "" : ": " + row.metric),
                             sentence(row, output));
  }
  return text;
}

std::string history_annotations(const History& history) {
  std::string text;
  for (const HistoryRow& row : history.rows)
    if (row.changed && row.is_worse)
      text += workflow_command("warning", row.cell + ": " + row.metric, change_text(row));
  return text;
}

std::string github_value(std::string_view text) {
  return escaped(text, "%\r\n");
}

std::string github_property(std::string_view text) {
  return escaped(text, "%\r\n:,");
}

}  // namespace penstock
