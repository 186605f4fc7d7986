// Formats a comparison. For people: a table with sentences on a terminal, and the same in Markdown. For
// programs: JSON lines, JUnit XML, and workflow commands of GitHub (gate_formats.cpp).
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "results/compare/comparison.hpp"
#include "results/compare/history.hpp"

namespace penstock {

// A metric's value with its unit: "135.5 MiB/s", "4.5 ms", "1 234 /s".
std::string format_metric(double value, const std::string& unit, const Output& output);
// How large the change of a row is: "-10% (-11% to -9.3%)", "+3.1%", "from 0".
std::string change_text(const ComparedMetric& row);
// The text of a row's outcome, with its reason: "REGRESSION", "no change", "inconclusive: 5 pairs where
// ...".
std::string outcome_text(const ComparedMetric& row);
// The count of each outcome, and the rule that decided: "1 regression, 1 missing, 4 without a change; 6
// tested: ...".
std::string summary_text(const Comparison& comparison, const CompareSettings& settings);

std::string comparison_text(const Comparison& comparison, const CompareSettings& settings,
                            const Output& output);
std::string comparison_markdown(const Comparison& comparison, const CompareSettings& settings,
                                const Output& output);

// The change of a series: "WORSE: -12% since run 45 of 90 (2026-11-20T09:30:00Z, runs/x.jsonl)", "no change",
// or "20 runs; 30 are needed".
std::string change_text(const HistoryRow& row);
std::string history_text(const History& history, const Output& output);
std::string history_markdown(const History& history, const Output& output);

// JSON lines: one object with kind `row` for each row (`series` for a history), then one with kind `summary`.
// Numbers that are absent or not finite become null.
std::string comparison_json(const Comparison& comparison, const CompareSettings& settings);
std::string history_json(const History& history, const CompareSettings& settings);

// JUnit XML with one test case per row. A regression is a failure; missing, failed and incomparable are
// errors; inconclusive is skipped.
std::string comparison_junit(const Comparison& comparison, const CompareSettings& settings,
                             const Output& output);

// GitHub annotations: "::error title=...::..." for each row that is a regression, missing, failed or
// incomparable, and "::warning ..." for each row that is inconclusive or differs.
std::string comparison_annotations(const Comparison& comparison, const Output& output);
// GitHub annotations: "::warning ..." for each change for the worse.
std::string history_annotations(const History& history);

// Escapes text for the value of a GitHub workflow command: '%', CR and LF become '%' and their hexadecimal
// code. github_property() escapes text for a property, where ':' and ',' must be escaped too.
std::string github_value(std::string_view text);
std::string github_property(std::string_view text);

}  // namespace penstock
