// The results of a training, and how they become metrics and the verdict of a record (docs/reference/mini-apps.md,
// docs/reference/records.md). train_team.hpp joins the results of several ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct TrainOutcome {
  TrainingFigures figures;
  uint64_t steps = 0;              // steps made; the same number on all ranks
  std::vector<StageTally> stages;  // the last one is "accelerator"
  // Time that the accelerator lost, by cause. Its sum is input_wait_s + straggler_s + barrier_s of the
  // figures.
  std::vector<LostTime> lost;
  LoaderLosses losses;
  std::vector<double> bytes_by_second;  // bytes that the accelerator consumed in each second
  std::optional<Error> failure;
  uint64_t training_files = 0;  // files loaded by an app that loads whole files; the sum of all ranks

  // The figures of each rank, in the order of ranks. If there are several ranks, only wall_s, payload_bytes,
  // utilization and steps_arrived_last are set.
  std::vector<TrainingFigures> ranks;
};

// Makes the outcome of this rank.
TrainOutcome train_outcome(const TrainingRun& run, std::chrono::nanoseconds nominal_step,
                           const BatchSource& input, const ExcludedSteps& excluded);

// Adds the outcome to `trial`; call it once for each run of the trial.
void record_outcome(const TrainOutcome& outcome, const TrainPlan& plan, Trial& trial);

}  // namespace penstock
