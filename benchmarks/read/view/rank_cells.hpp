// Read records of jobs that differ in how many ranks they had: what more processes and nodes bring.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "benchmarks/read/view/read_cells.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Records that differ in tier, threads and ranks only; of several numbers of ranks. Each curve is of a tier
// and a number of threads ("pfs, 4 threads a rank"), and leads from ranks to the latest usable record. Of a
// group only the title and the curves are set.
std::vector<ReadGroup> rank_groups(std::span<const Record> records);

// How many nodes the ranks of a record ran on; 1 where it does not say.
std::size_t node_count(const Record& record);

}  // namespace penstock
