// What a comparison says to programs: JSON lines, JUnit's XML, and the commands of GitHub's workflows.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "results/compare/comparison.hpp"
#include "results/compare/history.hpp"

namespace penstock {

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
