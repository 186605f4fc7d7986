// The sections of the report that do not belong to one command. Each function returns finished HTML, or "" if
// the records have nothing for its section.
#pragma once

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

std::string headline_section(const std::vector<Record>& records, const std::vector<std::string>& problems,
                             PageState& state);
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
