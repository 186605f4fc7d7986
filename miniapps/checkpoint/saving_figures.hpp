// What a run's checkpoints cost, how soon they were safe, and what a failure would have lost. Arithmetic on
// times.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// A time from begin to end, in seconds.
struct Stretch {
  double begin_s = 0;
  double end_s = 0;
};

// What a failure takes away: the processes; the machine with its fast tier; the power of all, which takes
// what is in memory alone.
enum class Failure : std::uint8_t { process, node, power };

// Work that is done again when the failure comes at a moment drawn uniformly from the run: seconds since the
// bytes of the newest checkpoint that is left were the training's, or since the begin. Integrated, not drawn.
struct LostWork {
  double mean_s = 0;
  double most_s = 0;
};
LostWork lost_work(std::span<const CheckpointTimes> times, double wall_s, Failure failure,
                   bool fast_is_volatile);

// The share of the drains' time at which the training was not held by a save: 1 - stall / drain; nothing
// where nothing was drained.
std::optional<double> drain_overlap(std::span<const CheckpointTimes> times);

// How much longer steps are during a drain. For each drain (several without a gap count as one): the median
// of the steps that were in it, by half at least, over that of the steps in the gaps before and after it. The
// median of these ratios; nothing where no drain has three steps of each kind.
std::optional<double> step_inflation(std::span<const Stretch> steps, std::span<const CheckpointTimes> times);

// Seconds between checkpoints that lose the least to saving (which holds the training for cost_s) and to
// failures (one in mtbf_s). Young: A first order approximation to the optimum checkpoint interval, CACM
// 17(9), 1974: sqrt(2 C M). Daly: A higher order estimate of the optimum checkpoint interval for restart
// dumps, FGCS 22(3), 2006, eq. 37, M where C >= 2 M.
double young_interval_s(double cost_s, double mtbf_s);
double daly_interval_s(double cost_s, double mtbf_s);

}  // namespace penstock
