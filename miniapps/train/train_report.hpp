// Prints the results of `train`: a table with a row for each tier, the times of each stage, and sentences
// about them.
#pragma once

#include <span>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Returns the report on the records of one call of `train`.
std::string training_report(std::span<const Record> records, const Output& output);

// The output of `train --list`: a table, or with `json` JSON lines.
std::string list_miniapps(bool json);

}  // namespace penstock
