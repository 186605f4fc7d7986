// What a comparison says to people: the table on a terminal and its sentences, and the same in Markdown; and
// to programs: JSON lines, JUnit's XML, and the commands of GitHub's workflows (gate_formats.cpp).
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "results/compare/comparison.hpp"
#include "results/compare/history.hpp"

namespace penstock {

// A metric's value with its unit: "135.5 MiB/s", "4.5 ms", "1 234 /s".
std::string format_metric(double value, const std::string& unit, const Output& output);
// "-10.2% (-11.0% to -9.3%)", "+3.1%", "from 0".
std::string change_text(const ComparedMetric& row);
// The text of a row's outcome, with its reason: "REGRESSION", "no change", "inconclusive: 5 pairs where
// ...".
std::string outcome_text(const ComparedMetric& row);
// "1 regression, 1 missing, 4 the same; 6 metrics tested, ...": how all rows ended and by which rule.
std::string summary_text(const Comparison& comparison, const CompareSettings& settings);

std::string comparison_text(const Comparison& comparison, const CompareSettings& settings,
                            const Output& output);
std::string comparison_markdown(const Comparison& comparison, const CompareSettings& settings,
                                const Output& output);

// "-12% since run 45 of 90 (2026-11-20T09:30:00Z, runs/x.jsonl)", "no change", "20 runs; 30 are needed".
std::string change_text(const HistoryRow& row);
std::string history_text(const History& history, const Output& output);
std::string history_markdown(const History& history, const Output& output);

// One object a line: `row` for each row, then one `summary`. What is absent or no finite number is null.
std::string comparison_json(const Comparison& comparison, const CompareSettings& settings);
std::string history_json(const History& history, const CompareSettings& settings);

// One test case a row: a regression is a failure; missing, failed and incomparable are errors; inconclusive
// is skipped.
std::string comparison_junit(const Comparison& comparison, const CompareSettings& settings,
                             const Output& output);

// "::error title=...::..." for each regression, missing, failed and incomparable row, "::warning ..." for
// each inconclusive one and one that differs.
std::string comparison_annotations(const Comparison& comparison, const Output& output);
// "::warning ..." for each change for the worse.
std::string history_annotations(const History& history);

// As a value and as a property of a workflow command: %, CR and LF, and in a property ':' and ',' as well, by
// their numbers.
std::string github_value(std::string_view text);
std::string github_property(std::string_view text);

}  // namespace penstock
