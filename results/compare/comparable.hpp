// Decides whether the two sides of a cell may be compared, and lists what else differs between them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/compare/matched_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Describes the first difference between the machines: "another host: a in the base, b in the candidate"; ""
// if the records show none. A machine is: host, architecture, processor, the allowed processors and memory
// nodes, the limits of its control group, memory (within 5%), and for each tier the kind of file system.
std::string machine_difference(const Cell& cell);

// Describes the first difference of the work although the parameters are the same: other bytes in the corpus,
// or another cache state. "" if there is none.
std::string work_difference(const Cell& cell);

// Differences that may explain a change but do not forbid a comparison, one sentence each: kernel, operating
// system, governor, build, versions.
std::vector<std::string> environment_remarks(std::span<const Record* const> base,
                                             std::span<const Record* const> candidate);

}  // namespace penstock
