// Calculates from times what a run's checkpoints cost, how soon they were safe, and what a failure would have
// lost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// A period from begin to end, in seconds.
struct Period {
  double begin_s = 0;
  double end_s = 0;
};

// What a failure takes. process: the processes only. node: the machine with its fast tier. power: the power
// of all machines, and with it what is in memory.
enum class Failure : uint8_t { process, node, power };

// The work that must be repeated if the failure comes at a random time of the run, each time equally likely.
// Seconds from when save() was called for the newest surviving checkpoint (or from the start) to the failure.
// An exact integral, not a simulation.
struct LostWork {
  double mean_s = 0;
  double most_s = 0;
};
LostWork lost_work(std::span<const CheckpointTimes> times, double wall_s, Failure failure,
                   bool fast_is_volatile);

// The share of the drains' time in which no save blocked the training: 1 - blocked time / drain time. Nothing
// if nothing was drained.
std::optional<double> drain_overlap(std::span<const CheckpointTimes> times);

// The factor by which a drain makes steps longer. Drains without a gap between them count as one. For each
// drain it takes two medians: of the steps with at least half of their time in the drain, and of the steps in
// the gaps before and after it. Returns the median of the ratios of the first to the second. Nothing if no
// drain has three steps of each kind.
std::optional<double> step_inflation(std::span<const Period> steps, std::span<const CheckpointTimes> times);

// The seconds between checkpoints with the least total loss. C = cost_s is how long a save blocks the
// training; M = mtbf_s is the mean time between failures. Young: "A first order approximation to the optimum
// checkpoint interval", CACM 17(9), 1974: sqrt(2 C M). Daly: "A higher order estimate of the optimum
// checkpoint interval for restart dumps", FGCS 22(3), 2006, eq. 37; M if C >= 2 M.
double young_interval_s(double cost_s, double mtbf_s);
double daly_interval_s(double cost_s, double mtbf_s);

}  // namespace penstock
