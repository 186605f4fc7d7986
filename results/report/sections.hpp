// The parts of the report page; each returns finished HTML, "" when the records have nothing for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/compare/comparison.hpp"
#include "results/record/record.hpp"
#include "results/report/page_state.hpp"

namespace penstock::report {

// Two sets of records held against each other.
struct NamedComparison {
  std::string base;  // a title of the set
  std::string candidate;
  Comparison comparison;
};

std::string headline_section(const std::vector<Record>& records, const std::vector<std::string>& problems,
                             PageState& state);
std::string comparison_section(const std::vector<NamedComparison>& comparisons, PageState& state);
std::string read_section(const std::vector<Record>& records, PageState& state);
std::string ranks_section(const std::vector<Record>& records, PageState& state);
std::string peers_section(const std::vector<Record>& records, PageState& state);
std::string train_section(const std::vector<Record>& records, PageState& state);
std::string saving_section(const std::vector<Record>& records, PageState& state);
std::string series_section(const std::vector<Record>& records, PageState& state);
std::string other_section(const std::vector<Record>& records, PageState& state);
std::string environment_section(const std::vector<Record>& records, PageState& state);
// `origins` names file and line of each record.
std::string records_section(const std::vector<Record>& records, const std::vector<std::string>& origins,
                            PageState& state);

// A verdict as a word with a mark: never by colour alone.
std::string verdict_html(Verdict verdict);
// "disk, 4 threads, cold", "alexnet, prefetch 4" ...
std::string cell_label(const Record& record);

}  // namespace penstock::report
