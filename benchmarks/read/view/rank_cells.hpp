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
// number of ranks to the latest usable record. If the same number of ranks ran on several numbers of nodes,
// the curves are also for one number of ranks a node. Only the title and the curves of a group are set.
std::vector<ReadGroup> rank_groups(std::span<const Record> records);
// The same for records that differ in the depth (reads in flight of each thread) in place of the ranks.
std::vector<ReadGroup> depth_groups(std::span<const Record> records);

}  // namespace penstock
