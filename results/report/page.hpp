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
  std::string html;            // deterministic but for the nonce of the script policy
  std::vector<Sentence> said;  // on it
  std::vector<Sheet> sheets;   // the numbers of its pictures, in order
};

// `title` stands on the page's first line.
Page make_page(const RecordSet& set, const Output& output, const std::string& title,
               const std::vector<NamedComparison>& comparisons = {});

}  // namespace penstock::report
