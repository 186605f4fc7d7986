// Decides whether the base and the candidate of a cell may be compared, and lists what else differs between
// them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/compare/matched_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Describes how the machine of the candidate differs from that of the base: "another host: a in the base, b
// in the candidate". Only the first difference is described; "" if the records show none. These facts of the
// machine are compared: host, architecture, processor, the allowed processors and memory nodes, the limits of
// the control group, and the size of memory (within 5%). For each tier, the kind of file system is compared.
std::string machine_difference(const Cell& cell);

// Describes a difference of the work although the parameters are the same: other bytes in the corpus, or
// another cache state. Only the first difference is described. "" if there is none.
std::string work_difference(const Cell& cell);

// Differences that may explain a change, but do not forbid a comparison: kernel, operating system, governor,
// build, versions. Each is one sentence.
std::vector<std::string> environment_remarks(std::span<const Record* const> base,
                                             std::span<const Record* const> candidate);

}  // namespace penstock
