// `penstock checkpoint bench`: a training that saves its state again and again, straight to the slow tier and
// through the fast one, by turns, against what either tier takes at best.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/checkpoint/saves.hpp"
#include "miniapps/checkpoint/saving_figures.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"
#include "miniapps/checkpoint_subcommands/bench_setup.hpp"

namespace penstock {

struct SavingRun {
  std::vector<CheckpointTimes> checkpoints;  // times since the first step's begin
  CheckpointCounts counts;
  std::vector<Stretch> steps;
  double wall_s = 0;      // of the steps and the saves, until the training ended
  double finalize_s = 0;  // and then until all was durable
  MovedBytes slow;        // that crossed the seams, of this process
  MovedBytes fast;
  double interval_s = 0;  // of the series: bytes written in each
  std::vector<double> slow_bytes;
  std::vector<double> fast_bytes;
};

// One arm, once: a training of emulated steps, each of which is a fixed amount of work that takes step_time
// when nothing else goes on; without a burner it sleeps for as long. `name` is of its run, which is removed
// from both stores when it is over, however. `tick` is told of each step. Collective.
Result<SavingRun> run_saving(std::string_view arm, const std::string& name, const BenchSetup& setup,
                             TrainedState& state, Communicator& ranks, const std::function<void()>& tick);

// The best that the tier gives this payload, in bytes a second over all ranks: each rank writes its files
// front to back in pieces of 4 MiB by nothing but the back end's Writer, and syncs bytes and name; the
// slowest rank counts. What was written is removed. Collective.
Result<double> write_ceiling(const Tier& tier, const TrainedState& state, Communicator& ranks);

}  // namespace penstock
