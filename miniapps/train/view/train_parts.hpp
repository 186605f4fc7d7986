// Writes the sentences and the parts of the report page about records of `train`.
//
// They follow these rules:
//  - The share of the wait for input that prefetching removed is 1 - (input wait per step with prefetch K) /
//    (input wait per step with prefetch 0). If prefetch 0 was not measured, a sentence says instead that
//    prefetching hid `input_overlap` of the time that the input needs alone.
//  - The fewest threads that are enough: a grid has a cell for each number of threads and prefetch depth. Of
//    the cells whose value is within 5% of the best cell, the sentence names the one with the fewest threads.
//    If several such cells have that number of threads, it names the one with the smallest prefetch depth.
//  - From an accelerator utilization of kAcceleratorLimits on, the accelerator limits the training. Below it,
//    the input does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/train/view/train_cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/page_state.hpp"

namespace penstock::verdicts {

inline constexpr double kAcceleratorLimits = 0.975;  // printed as 98%

// The metrics lost_s.*: how many seconds the accelerator lost for each cause, such as "decode". Sorted with
// the largest loss first.
std::vector<LostTime> lost_parts(const Record& record);

// See RecordView::bottom_line.
std::vector<std::string> train_bottom_line(std::span<const Record> records, const Output& output);

void describe_train(const std::vector<TrainGroup>& groups, std::vector<Sentence>& out);
void describe_grids(const std::vector<TrainGrid>& grids, std::vector<Sentence>& out);

}  // namespace penstock::verdicts

namespace penstock::report {

// Returns the report's section about training as HTML; "" if no record is of a training.
std::string train_section(std::span<const Record> records, PageState& state);

}  // namespace penstock::report
