// The sections of the report that do not belong to one command. Each function returns finished HTML, or "" if
// the records have nothing for its section.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "results/compare/comparison.hpp"
#include "results/record/record.hpp"
#include "results/report/page_state.hpp"

namespace penstock::report {

// A comparison of two sets of records, with their names.
struct NamedComparison {
  std::string base;  // name of the set of records that is the base
  std::string candidate;
  Comparison comparison;
};

// How many sentences of one tone (findings, cautions or failures) a reader sees at first.
inline constexpr size_t kMostSentences = 8;

// `bottom_line`: the three sentences at the top of the page.
std::string headline_section(const std::vector<Record>& records, const std::vector<std::string>& problems,
                             const std::vector<std::string>& bottom_line, PageState& state);
// What the comparisons say in three sentences: what got worse, by how much, and what to do. Empty if nothing
// got worse. describe_regressions() adds a sentence for each comparison with a regression.
std::vector<std::string> comparison_bottom_line(const std::vector<NamedComparison>& comparisons,
                                                const Output& output);
void describe_regressions(const std::vector<NamedComparison>& comparisons, std::vector<Sentence>& out);
// The best figures of all tiers side by side; "" if there are fewer than two tiers.
std::string tiers_section(const std::vector<Record>& records, PageState& state);
std::string comparison_section(const std::vector<NamedComparison>& comparisons, PageState& state);
std::string series_section(const std::vector<Record>& records, PageState& state);
std::string other_section(const std::vector<Record>& records, PageState& state);
std::string environment_section(const std::vector<Record>& records, PageState& state);
// The table of all records. `origins` has the file and line of each record, as text.
std::string records_section(const std::vector<Record>& records, const std::vector<std::string>& origins,
                            PageState& state);

// A value with its unit: "135.5 MiB/s", "4.5 ms".
std::string value_text(double value, const std::string& unit, const Output& output);

// A name for the cell of a record: "disk, 4 threads, cold", "alexnet, prefetch 4" ...
std::string cell_label(const Record& record);

}  // namespace penstock::report
