// Whether two sides of a cell may be held against each other, and what else differed between them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/compare/matched_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Why the machines are not the same: "other host: a in the base, b in the candidate"; "" where they are, as
// far as the records tell. What makes a machine: host, machine, cpu, the processors and memory nodes allowed,
// memory (within 5%), the limits of its control group, and for each tier the kind of file system.
std::string machine_difference(const Cell& cell);

// Why the work was not the same although the same was asked for: other bytes in the corpus, or another cache
// state;
// "" where it was.
std::string work_difference(const Cell& cell);

// What differed that may be the reason of a change but forbids no comparison, a sentence each: kernel,
// governor, build, versions.
std::vector<std::string> environment_remarks(std::span<const Record* const> base,
                                             std::span<const Record* const> candidate);

}  // namespace penstock
