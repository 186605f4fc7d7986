// Writes the metrics of a run's checkpoints into a result record, for `train` and for `checkpoint bench`.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "io_backends/core/metric.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/saving_figures.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct SavingFacts {
  std::span<const CheckpointTimes> checkpoints;
  CheckpointCounts counts;
  std::span<const Period> steps;  // when each step ran, on the checkpoints' clock
  double wall_s = 0;              // length of the training
  // Work of earlier processes of a resumed run that no checkpoint on the slow tier contained at the start.
  double unsaved_on_slow_s = 0;
  bool has_fast_tier = false;
  bool fast_is_volatile = false;
  bool by_snapshot = false;              // saves go to memory, so no ceiling of a tier applies
  bool steps_are_work = true;            // false: the steps only sleep; no step_inflation is recorded
  double mtbf_s = 0;                     // mean time between failures, for the advised interval
  MetricInfo time_to_durable{};          // the command's metric checkpoint_durable_s
  std::optional<double> fast_ceiling{};  // bytes per second, measured in the same run
  std::optional<double> slow_ceiling{};
};

// Checks that --mtbf is more than 0; else invalid_argument.
Result<void> check_mtbf(std::chrono::nanoseconds mtbf);

// Adds these metrics to the trial. For each checkpoint that was not skipped, one sample of: checkpoint_bytes,
// checkpoint_block_s, checkpoint_fast_s, checkpoint_durable_s, drain_bytes_per_s (bytes / time of the drain)
// and drain_queued_bytes_per_s (bytes / time from the commit on the fast tier to the end of the drain).
// For each run: checkpoints, checkpoint_skips, ..., drain_overlap, step_inflation,
// lost_work_s.process|node|power, lost_work_most_s.*, checkpoint_interval_s.young|daly.
// With ceilings: drain_of_ceiling (of the slow tier) and, unless `by_snapshot`, block_of_ceiling. The latter
// is 1 if the save blocks the training for as long as a write of the same bytes at the ceiling takes: the
// ceiling of the fast tier or, if there is none, of the slow tier.
void record_saving(const SavingFacts& facts, Trial& trial);

}  // namespace penstock
