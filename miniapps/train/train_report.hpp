// What `train` prints: a table over the tiers, where the time of each stage went, and what it comes to in
// words.
#pragma once

#include <span>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "results/record/record.hpp"

namespace penstock {

// From the records of one invocation alone.
std::string training_report(std::span<const Record> records, const Output& output);

// `train --list`, as a table or as JSON lines.
std::string list_miniapps(bool json);

}  // namespace penstock
