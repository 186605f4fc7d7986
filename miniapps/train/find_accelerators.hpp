// `train --find-accelerators`: searches for the largest number of accelerators that an input pipeline keeps
// busy.
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

// A function that makes a run with `accelerators` and returns whether they were kept busy.
using KeepsBusy = std::function<Result<bool>(uint64_t accelerators)>;

// Finds the largest number from 0 to `most` for which `feeds` returns true. Tries 1, 2, 4, ... until `feeds`
// returns false, and then bisects. On a busy machine a single run may be slow by chance, so a number counts
// as failed only if `feeds` returns false twice in a row. Assumes that if a number fails, all larger numbers
// fail as well.
Result<uint64_t> most_fed(uint64_t most, const KeepsBusy& feeds);

// Tries the number `from` and then smaller ones, until `feeds` has returned true `in_a_row` times in a row
// for one of them. Returns this number, or 0 if even one accelerator is not fed so often.
Result<uint64_t> most_fed_in_a_row(uint64_t from, unsigned in_a_row, const KeepsBusy& feeds);

// A function that makes one more run of the plan and adds it to the trial. The error is `exhausted` if there
// is no memory for it. Otherwise it returns what measure_training() returns: false if the cell is stuck.
using TrainOnce = std::function<Result<bool>(Trial& trial)>;
// A function that stores the trial that is the result of the search. Returns `ended`, which is what the last
// call of TrainOnce returned. `note` is for the user; "" for none.
using KeepTrial = std::function<Result<bool>(Trial trial, bool ended, const std::string& note)>;

inline constexpr unsigned kRunsInARow = 5;
// Searches on one tier for the largest number of accelerators that are kept busy in kRunsInARow runs in a
// row. Makes a record with these runs: each metric has one sample for each run. The metric `accelerators_fed`
// is the number that was found, summed over all ranks. If even one accelerator is not kept busy, the metric
// is 0, and the record has only the last run or runs with one accelerator. If the input was too slow for one
// accelerator more than were found, the record also has the utilization with that number.
// If a run fails, the search ends, and that run becomes the record. Changes plan.accelerators. Returns what
// measure_training() returns: false if the cell is stuck. Collective.
Result<bool> find_accelerators(TrainPlan& plan, const Run& run, const TrainOnce& train,
                               const KeepTrial& keep);

// Prepares a request for --find-accelerators with this accelerator. If the user limits neither steps nor
// epochs, sets limits with which a run is long enough to show how busy the accelerators are.
Result<void> request_search(const Options& options, const Accelerator& accelerator, TrainRequest& request);

}  // namespace penstock
