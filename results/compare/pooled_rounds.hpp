// Joins the rounds of a sweep, and repeated runs of `read`, into one record per cell. Each round or run has
// its own record. Only the samples of all of them together show the spread and the intervals of the cell.
#pragma once

#include <cstddef>
#include <vector>

#include "results/record/store.hpp"

namespace penstock {

// Joins the records of each cell into one. Records are of one cell if they have the same labels, arm, machine
// and work (matched_cells.hpp). Without the label `sweep` only records of `read`, `tiers` and `generate` are
// joined, and only if the manifests of their corpora have the same checksum. Only records with usable numbers
// are joined. The joined record replaces the latest of them and has its facts. Its samples are in order of
// time, and its verdict is the worst of all. All other records remain unchanged, also those of `checkpoint`.
// StoredRecord::runs is the number of records in a joined one. Returns how many records were merged into
// others: 0 if none.
size_t pool_rounds(std::vector<StoredRecord>& records);

}  // namespace penstock
