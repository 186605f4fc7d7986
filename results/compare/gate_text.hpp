// What a comparison says to people: the table on a terminal and its sentences, and the same in Markdown.
#pragma once

#include <string>
#include <vector>

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

}  // namespace penstock
