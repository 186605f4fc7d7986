// Puts the rounds of a sweep together into one record per cell. Each round is a run of its own; together
// their samples give the spread and the intervals of all rounds.
#pragma once

#include <cstddef>
#include <vector>

#include "results/record/store.hpp"

namespace penstock {

// Pools the records of one cell: the same label `sweep`, the same other labels, arm and machine, the same
// work (matched_cells.hpp), and usable numbers. The pooled record replaces the latest one and has its facts.
// Its samples are in order of time, and its verdict is the worst of all. All other records stay as they are.
// Returns how many records were merged into others: 0 if none.
size_t pool_rounds(std::vector<StoredRecord>& records);

}  // namespace penstock
