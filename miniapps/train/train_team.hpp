// Joins the results of all ranks of one training, and checks that all ranks do the same work. All functions
// except record_ranks() are collective.
#pragma once

#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/timeline.hpp"
#include "miniapps/train/train_cache.hpp"
#include "miniapps/train/train_outcome.hpp"
#include "miniapps/train/train_plan.hpp"
#include "miniapps/train/validating.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Checks that all ranks do the same work. invalid_argument if the ranks were started with different flags.
Result<void> check_same_work(const TrainPlan& plan, const Options& options);

// Joins the outcomes of all ranks; every rank gets the same result.
//  - The slowest rank gives wall_s and first_batch_s.
//  - Samples, bytes, stages and losses are summed.
//  - Waits, lost times, utilizations and overshoots are means over the ranks.
//  - The failure is that of the first rank that has one.
Result<TrainOutcome> joined(Communicator& ranks, const TrainOutcome& mine);

// Sums the bytes of each epoch over all ranks. An epoch that not every rank has is left out. The result is
// empty if one of the ranks cannot count bytes.
Result<std::vector<EpochBytes>> joined(Communicator& ranks, std::vector<EpochBytes> mine);

// Sums the figures over all ranks, except `passes`, which becomes the largest number of any rank.
Result<ValidationFigures> joined(Communicator& ranks, ValidationFigures mine);

// Joins the figures of all ranks: spans and bytes are summed, times and shares are means.
Result<TimelineFigures> joined(Communicator& ranks, const TimelineFigures& mine);

// If there are several ranks, adds metrics to the record that show how they differ.
void record_ranks(const TrainOutcome& outcome, Trial& trial);

// Adds `input_alone_s` for each run in `parts`, in which the input ran alone. Also adds `input_overlap` for
// the training with this `outcome`. The values are means over the ranks. If one of the runs failed, that
// becomes the trial's failure.
Result<void> record_input_alone(Communicator& ranks, const std::vector<TrainingRun>& parts,
                                const TrainOutcome& outcome, Trial& trial);

}  // namespace penstock
