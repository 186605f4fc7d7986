// Groups read records by their number of ranks, to show the effect of more processes and nodes, or by depth.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "benchmarks/read/view/read_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Groups of records that differ only in tier, threads and ranks, with at least two different numbers of
// ranks. Each curve of a group is for one tier and one number of threads ("pfs, 4 threads a rank"). It maps a
// number of ranks to the latest usable record. Only the title and the curves of a group are set.
std::vector<ReadGroup> rank_groups(std::span<const Record> records);
// The same for records that differ in the depth (reads in flight of each thread) in place of the ranks.
std::vector<ReadGroup> depth_groups(std::span<const Record> records);

// The number of nodes on which the ranks of a record ran. 1 if the record does not say it.
size_t node_count(const Record& record);

}  // namespace penstock
