// The report: one HTML page that holds everything it needs. It makes no network request (its content security
// policy forbids it), works from a file, and stays readable without script.
#pragma once

#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/store.hpp"
#include "results/report/sections.hpp"
#include "results/report/sheets.hpp"

namespace penstock::report {

struct Page {
  // The same input always gives the same text, except for the nonce of the script policy.
  std::string html;
  std::vector<std::string> bottom_line;  // the three sentences at the top of the page
  std::vector<Sentence> sentences;       // the sentences on the page, for the given output
  std::vector<Sheet> sheets;  // the numbers of the page's charts, bars and heat maps, in their order
};

// Makes the report of all records of `set`. `title` is the heading of the page; if it is empty, the page gets
// a heading that names what the records are about.
Page make_page(const RecordSet& set, const Output& output, const std::string& title,
               const std::vector<NamedComparison>& comparisons = {});

}  // namespace penstock::report
