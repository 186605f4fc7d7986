// The rounds of a sweep as one record a cell: what a sweep measured again and again, each time in a run of
// its own, has its samples in one place, so that spread and intervals are those of all rounds.
#pragma once

#include <cstddef>
#include <vector>

#include "results/record/store.hpp"

namespace penstock {

// Records with the same label `sweep` (and the same other labels and arm, from the same machine) that are of
// the same work (matched_cells.hpp) and have usable numbers become one, which stands where the latest stood
// and has its facts; the samples are in order of time, and the verdict is the worst of them. All others stay
// as they are. Returns how many were pooled into others: 0 where nothing was.
std::size_t pool_rounds(std::vector<StoredRecord>& records);

}  // namespace penstock
