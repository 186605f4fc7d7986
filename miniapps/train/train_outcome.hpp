// What a run of a mini-app came to: on one rank, joined over all ranks of a job, and as metrics and verdict
// of its record (docs/mini_apps.md, docs/records.md).
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
  TrainingFigures figures;         // several ranks: see joined()
  std::uint64_t steps = 0;         // the same on all ranks
  std::vector<StageTally> stages;  // "accelerator" among them, the last
  std::vector<LostTime> lost;      // what an accelerator lost, by where: input_wait_s, straggler_s and
                                   // barrier_s of the figures divided
  LoaderLosses losses;
  std::vector<double> bytes_by_second;  // consumed
  std::optional<Error> failure;
  std::uint64_t training_files = 0;  // loaded, by an app that loads whole files; all ranks' sum

  // One a rank, in the order of ranks.
  std::vector<RankFigures> ranks;
  std::vector<double> utilizations;      // empty where nothing computed
  std::vector<std::uint64_t> last_ones;  // steps that each was the last to end
};

// Of this rank.
TrainOutcome train_outcome(const TrainingRun& run, std::chrono::nanoseconds nominal_step,
                           const BatchSource& input);

// Collective, and the same on every rank: walls and the first batch of the slowest; samples, bytes, stages
// and losses summed; waits, losses of time, utilizations and overshoots the mean of the ranks; the failure of
// the first rank that has one.
Result<TrainOutcome> joined(Communicator& ranks, const TrainOutcome& mine);

// Adds to `trial`, once for each run that it has.
void record_outcome(const TrainOutcome& outcome, const TrainPlan& plan, Trial& trial);

// input_alone_s of each part, and input_overlap, for a training that came to `outcome`. The mean of the
// ranks, each of which ran as long as it took itself. Collective; a part that failed is the trial's failure.
Result<void> record_input_alone(Communicator& ranks, const std::vector<TrainingRun>& parts,
                                const TrainOutcome& outcome, Trial& trial);

}  // namespace penstock
