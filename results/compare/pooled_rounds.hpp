// Joins the rounds of a sweep into one record per cell. Each round of a sweep is a run that has its own
// record. Only the samples of all rounds together show the spread and the intervals of the whole sweep.
#pragma once

#include <cstddef>
#include <vector>

#include "results/record/store.hpp"

namespace penstock {

// Joins the records of each cell of a sweep into one. Records are of one cell if they have the same labels
// (one of them is `sweep`), arm, machine and work (matched_cells.hpp). Only records with usable numbers are
// joined. The joined record replaces the latest of them and has its facts. Its samples are in order of time,
// and its verdict is the worst of all. All other records remain unchanged, also those of `checkpoint`.
// Returns how many records were merged into others: 0 if none.
size_t pool_rounds(std::vector<StoredRecord>& records);

}  // namespace penstock
