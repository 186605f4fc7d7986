// What a record says of a run's checkpoints: of `train` and of `checkpoint bench` alike.
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
  std::span<const Stretch> steps;  // on the clock of the checkpoints
  double wall_s = 0;               // of the training
  bool fast_tier = false;
  bool fast_is_volatile = false;
  bool snapshot = false;                 // saves are to memory: no tier's ceiling is theirs
  bool steps_are_work = true;            // else nothing could make them longer, and nothing is said of it
  double mtbf_s = 0;                     // what advice is for
  MetricInfo durable{};                  // checkpoint_durable_s, which `checkpoint` alone is compared by
  std::optional<double> fast_ceiling{};  // bytes a second, measured in the same run
  std::optional<double> slow_ceiling{};
};

// invalid_argument where --mtbf leaves no time between two failures.
Result<void> check_mtbf(std::chrono::nanoseconds mtbf);

// One sample a checkpoint: checkpoint_bytes, checkpoint_block_s, checkpoint_fast_s, checkpoint_durable_s,
// drain_bytes_per_s (while it drains) and drain_queued_bytes_per_s (since its fast commit). One a run:
// checkpoints, checkpoint_skips, ..., drain_overlap, step_inflation, lost_work_s.process|node|power and
// lost_work_most_s.*, checkpoint_interval_s.young|daly; against ceilings: block_of_ceiling (1: blocked as
// long as the fast tier's, or without one the slow tier's, best takes) and drain_of_ceiling.
void record_saving(const SavingFacts& facts, Trial& trial);

}  // namespace penstock
