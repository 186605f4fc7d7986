// Prints the results of `train`: a table over the tiers, the times of each stage, and sentences about them.
#pragma once

#include <span>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Uses only the records of one invocation.
std::string training_report(std::span<const Record> records, const Output& output);

// `train --list`, as a table or as JSON lines.
std::string list_miniapps(bool json);

}  // namespace penstock
