// Runs one arm of `penstock checkpoint bench`: a training that saves its state repeatedly. Also measures the
// ceilings of the tiers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/time_range.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/checkpoint/saving_figures.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"
#include "miniapps/checkpoint_subcommands/bench_setup.hpp"

namespace penstock {

struct SavingRun {
  std::vector<CheckpointTimes> checkpoints;  // their times count from the start of the first step
  CheckpointCounts counts;
  std::vector<Period> steps;
  double wall_s = 0;      // the time of all steps and saves
  double finalize_s = 0;  // from the end of the training until all is durable
  MovedBytes slow;        // bytes that this process moved through the back end
  MovedBytes fast;
  double interval_s = 0;  // length of an interval of the two series below
  std::vector<double> slow_bytes;
  std::vector<double> fast_bytes;
};

// Collective. Runs one training that saves as `arm` says. Each step is a fixed amount of work, which takes
// step_time on an idle machine; without a burner, each step sleeps for step_time. Calls `tick` after each
// step. `name` is the run's name in the stores. The run is removed from both stores at the end, also after an
// error.
Result<SavingRun> run_saving(std::string_view arm, const std::string& name, const BenchSetup& setup,
                             PayloadState& state, Communicator& ranks, const std::function<void()>& tick);

// Collective. Measures the ceiling: the highest rate at which the tier takes this payload, in bytes per
// second over all ranks. Each rank writes its files in order, in pieces of 4 MiB, through the back end's
// Writer alone, and syncs bytes and names. The time is that of the slowest rank. Then the files are removed.
Result<double> write_ceiling(const Tier& tier, const PayloadState& state, Communicator& ranks);

// The expected time of one run of an arm, in which all bytes of the payload take `slow_s` to the slow tier
// and `fast_s` to the fast one.
TimeRange saving_time(std::string_view arm, const BenchSetup& setup, const TimeRange& slow_s,
                      const TimeRange& fast_s);

// Not collective. Writes some bytes to the tier, which it removes again, and returns how long the whole
// payload takes at that rate. If nothing can be written, the range is wide.
TimeRange estimate_write_time(const Tier& tier, const BenchSetup& setup);

}  // namespace penstock
