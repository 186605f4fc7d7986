// The parts of the report page; each returns finished HTML, "" when the records have nothing for it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/base/command.hpp"
#include "results/record.hpp"
#include "results/report/charts.hpp"

namespace penstock::report {

// What the sections share while a page is written.
struct PageState {
  Output output;
  std::vector<std::string> tiers;                             // those that have a colour
  std::vector<Chart> charts;                                  // that the script will draw
  std::vector<std::pair<std::string, std::string>> contents;  // id and title of every section

  std::string place(Chart chart);  // remembers it and returns its place
  std::string open_section(std::string_view id, std::string_view title, std::string_view lead);
};

std::string headline_section(const std::vector<Record>& records, const std::vector<std::string>& problems,
                             PageState& state);
std::string read_section(const std::vector<Record>& records, PageState& state);
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
