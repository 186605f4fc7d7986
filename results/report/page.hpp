// The report: one HTML page that holds everything it needs. It makes no network request (its content security
// policy forbids it), works from a file, and stays readable without script.
#pragma once

#include <string>
#include <vector>

#include "io_backends/base/command.hpp"
#include "results/store.hpp"

namespace penstock::report {

// Deterministic but for the nonce of the script policy. `title` stands on the page's first line.
std::string render_page(const RecordSet& set, const Output& output, const std::string& title);

}  // namespace penstock::report
