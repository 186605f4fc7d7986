// The results of a training: for one rank, joined over all ranks, and as metrics and verdict of the record
// (docs/mini_apps.md, docs/records.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct TrainOutcome {
  TrainingFigures figures;         // for several ranks see joined()
  std::uint64_t steps = 0;         // the same on all ranks
  std::vector<StageTally> stages;  // the last one is "accelerator"
  // Time that the accelerator lost, by cause. The sum of input_wait_s, straggler_s and barrier_s of the
  // figures.
  std::vector<LostTime> lost;
  LoaderLosses losses;
  std::vector<double> bytes_by_second;  // bytes that the accelerator consumed in each second
  std::optional<Error> failure;
  std::uint64_t training_files = 0;  // files loaded by an app that loads whole files; the sum of all ranks

  // One entry for each rank, in the order of ranks.
  std::vector<RankFigures> ranks;
  std::vector<double> utilizations;      // empty if nothing computed
  std::vector<std::uint64_t> last_ones;  // for each rank: the steps that it was the last to end
};

// The outcome of this rank.
TrainOutcome train_outcome(const TrainingRun& run, std::chrono::nanoseconds nominal_step,
                           const BatchSource& input);

// Collective, with the same result on every rank. wall_s and first_batch_s are those of the slowest rank.
// Samples, bytes, stages and losses are summed. Waits, lost times, utilizations and overshoots are means. The
// failure is that of the first rank that has one.
Result<TrainOutcome> joined(Communicator& ranks, const TrainOutcome& mine);

// Adds the outcome to `trial`; call it once for each run of the trial.
void record_outcome(const TrainOutcome& outcome, const TrainPlan& plan, Trial& trial);

// Adds input_alone_s of each part, and input_overlap, for a training with this `outcome`. Uses the mean of
// the ranks, each with its own time. Collective. If a part failed, that is the trial's failure.
Result<void> record_input_alone(Communicator& ranks, const std::vector<TrainingRun>& parts,
                                const TrainOutcome& outcome, Trial& trial);

}  // namespace penstock
