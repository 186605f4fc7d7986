// How many accelerators an input pipeline feeds: the search for the most that it keeps busy.
#pragma once

#include <cstdint>
#include <functional>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Whether a run with that many accelerators kept them busy.
using FeedsThem = std::function<Result<bool>(std::uint64_t accelerators)>;

// The most in 0 to `most` of which `feeds` says yes, if it says no to all above that: asked for each of 1, 2,
// 4, ... until a no, and then for the middle of what is left. A no must be said twice: on a busy machine one
// run may be unlucky.
Result<std::uint64_t> most_fed(std::uint64_t most, const FeedsThem& feeds);

// From there on downwards, the first that is fed `in_a_row` times without a miss; 0 where not even one is.
Result<std::uint64_t> most_fed_in_a_row(std::uint64_t from, unsigned in_a_row, const FeedsThem& feeds);

// How a search makes one more run of the plan, which adds to the trial. exhausted where there is no memory
// for it. Returns as measure_training().
using TrainOnce = std::function<Result<bool>(Trial& trial)>;
// How a search keeps the trial that is its result; takes and returns what TrainOnce did.
using KeepTrial = std::function<Result<bool>(Trial trial, bool ended)>;

// The search on one tier, which sets plan.accelerators. The record has kRunsInARow runs with the most
// accelerators which were all kept busy, each run a sample of its metrics; `accelerators_fed` is their number
// over all ranks. Where not even one is fed, it is 0, and the runs those with one. The record also says what
// one more accelerator lacked. The first run that fails ends the search, and is the record. Collective.
// Returns as measure_training().
inline constexpr unsigned kRunsInARow = 5;
Result<bool> find_accelerators(TrainPlan& plan, const Run& run, const TrainOnce& train,
                               const KeepTrial& keep);

// Takes --find-accelerators into a request whose accelerator is that one: runs that are long enough to tell
// how busy the accelerators were, where the user does not say how long.
Result<void> request_search(const Options& options, const Accelerator& accelerator, TrainRequest& request);

}  // namespace penstock
