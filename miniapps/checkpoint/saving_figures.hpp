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

// What a failure destroys. process: the processes only. node: the machine with its fast tier. power: what is
// in the memory of the machines, which all lose power.
enum class Failure : uint8_t { process, node, power };

// How many seconds of training a failure loses, if it comes at a random time of the run, each time equally
// likely. The loss begins when save() was called for the newest surviving checkpoint (or at the start), and
// ends at the failure. An exact integral, not a simulation.
struct LostWork {
  double mean_s = 0;
  double most_s = 0;
};
LostWork lost_work(std::span<const CheckpointTimes> times, double wall_s, Failure failure,
                   bool fast_is_volatile);

// The fraction of the drains' time in which no save blocked the training: 1 - blocked time / drain time.
// Nothing if nothing was drained.
std::optional<double> drain_overlap(std::span<const CheckpointTimes> times);

// The factor by which a drain makes steps longer; the median over the drains. For each drain, it is the
// median time of the steps during the drain, divided by that of the steps in the gaps before and after it. A
// step belongs to a drain if at least half of its time is in the drain. Drains without a gap between them
// count as one drain. Nothing if no drain has three steps during it and three around it.
std::optional<double> step_inflation(std::span<const Period> steps, std::span<const CheckpointTimes> times);

// The seconds between checkpoints at which the total loss of time is smallest. C = cost_s is how long a save
// blocks the training; M = mtbf_s is the mean time between failures. Young: "A first order approximation to
// the optimum checkpoint interval", CACM 17(9), 1974: sqrt(2 C M). Daly: "A higher order estimate of the
// optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, eq. 37; M if C >= 2 M.
double young_interval_s(double cost_s, double mtbf_s);
double daly_interval_s(double cost_s, double mtbf_s);

}  // namespace penstock
