// Writes the sentences and the parts of the report page about records of `train`.
//
// The rules:
//  - Prefetching removed 1 - (input wait per step with prefetch K) / (the same with prefetch 0) of the wait.
//    If prefetch 0 was not measured, it hid `input_overlap` of the input's own time.
//  - The fewest threads that are enough: in a grid of threads and prefetch depths, the cell with the fewest
//    threads, then the smallest prefetch, whose value is within 5% of the best cell.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "miniapps/train/view/train_cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/page_state.hpp"

namespace penstock::verdicts {

void describe_train(const std::vector<TrainGroup>& groups, std::vector<Sentence>& out);
void describe_grids(const std::vector<TrainGrid>& grids, std::vector<Sentence>& out);

}  // namespace penstock::verdicts

namespace penstock::report {

// Returns finished HTML; "" if no record is of a training.
std::string train_section(std::span<const Record> records, PageState& state);

}  // namespace penstock::report
