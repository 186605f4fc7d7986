// Searches for the largest number of accelerators that an input pipeline keeps busy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Makes a run with `accelerators` and returns whether they were kept busy.
using FeedsThem = std::function<Result<bool>(uint64_t accelerators)>;

// The largest number from 0 to `most` for which `feeds` returns true. Tries 1, 2, 4, ... until it returns
// false, and then bisects. False counts only after a second false: on a busy machine a single run may be slow
// by chance. Assumes that no number above a failed one is fed.
Result<uint64_t> most_fed(uint64_t most, const FeedsThem& feeds);

// Tries `from` and then smaller numbers, until one is fed `in_a_row` times without a failure. 0 if even one
// accelerator is not.
Result<uint64_t> most_fed_in_a_row(uint64_t from, unsigned in_a_row, const FeedsThem& feeds);

// Makes one more run of the plan for a search and adds it to the trial. exhausted if there is no memory for
// it. Otherwise it returns what measure_training() returns.
using TrainOnce = std::function<Result<bool>(Trial& trial)>;
// Keeps the trial that is the result of a search. It returns `ended`, the last result of TrainOnce. `note` is
// for the user; "" for none.
using KeepTrial = std::function<Result<bool>(Trial trial, bool ended, const std::string& note)>;

// Searches on one tier; changes plan.accelerators. The record has kRunsInARow runs with the largest number of
// accelerators that were kept busy in all of them. Each run is one sample of its metrics. `accelerators_fed`
// is that number over all ranks. If even one accelerator is not kept busy, it is 0, and the runs have one
// accelerator. The record also has the utilization with one accelerator more. The first run that fails ends
// the search and becomes the record. Collective. Returns what measure_training() returns.
inline constexpr unsigned kRunsInARow = 5;
Result<bool> find_accelerators(TrainPlan& plan, const Run& run, const TrainOnce& train,
                               const KeepTrial& keep);

// Sets up a request for --find-accelerators with this accelerator. If the user sets no length, runs are long
// enough to show how busy the accelerators were.
Result<void> request_search(const Options& options, const Accelerator& accelerator, TrainRequest& request);

}  // namespace penstock
