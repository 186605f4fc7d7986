// Calculates from the times of a run's checkpoints what they cost, how soon they were safe, and how much work
// a failure would have lost.
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

// What a failure destroys. process: the processes only. node: the machine with its fast tier. power: all
// machines lose power, and with it what is in their memory.
enum class Failure : uint8_t { process, node, power };

// How many seconds of training a failure loses. mean_s: the mean over all times of the run at which the
// failure may occur, each equally likely. most_s: the loss at the worst time. The work since the call of
// save() for the newest surviving checkpoint is lost or, if none survives, all work since the start, and
// `unsaved_before_s`: the work of earlier processes of a resumed run that no surviving checkpoint contained
// at the start. The mean is an exact integral, not a simulation.
struct LostWork {
  double mean_s = 0;
  double most_s = 0;
};
LostWork lost_work(std::span<const CheckpointTimes> times, double wall_s, Failure failure,
                   bool fast_is_volatile, double unsaved_before_s = 0);

// The fraction of the drains' time in which no save blocked the training: 1 - blocked time / drain time.
// Nothing if nothing was drained.
std::optional<double> drain_overlap(std::span<const CheckpointTimes> times);

// The factor by which drains make steps longer: the median, over all drains, of a ratio. For one drain, A is
// the median time of the steps during it, and B that of the steps in the gaps before and after it. The ratio
// is A / B.
// A step counts as during a drain if at least half of its time is. Drains without a gap between them count as
// one drain. A drain is left out if fewer than three steps are during it, or fewer than three are in the gaps
// next to it. Nothing if no drain remains.
std::optional<double> step_inflation(std::span<const Period> steps, std::span<const CheckpointTimes> times);

// The seconds between checkpoints at which the total loss of time is smallest. C = cost_s is how long a save
// blocks the training; M = mtbf_s is the mean time between failures.
// Young: sqrt(2 C M), from "A first order approximation to the optimum checkpoint interval", CACM 17(9),
// 1974.
// Daly: eq. 37 of "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3),
// 2006; M if C >= 2 M.
double young_interval_s(double cost_s, double mtbf_s);
double daly_interval_s(double cost_s, double mtbf_s);

}  // namespace penstock
