// Executes a sweep: one run after another, each as a process of its own, with every finished turn in the
// journal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "results/sweep/outcome.hpp"
#include "results/sweep/plan.hpp"
#include "results/sweep/state.hpp"

namespace penstock {

// Reasons why a sweep process ends before all turns are done (SweepEnd::reason).
inline constexpr std::string_view kEndedByBudget = "the budget";
inline constexpr std::string_view kEndedByAllocation = "the time of the allocation";
inline constexpr std::string_view kEndedByInterrupt = "an interrupt";

// Everything that a runner needs to know. It must live longer than the runner.
struct SweepWork {
  SweepSpec spec;
  std::vector<SweepCell> cells;
  uint64_t seed = 0;
  std::string suite;                     // the name of the pairs' suite (SweepHistory)
  const CommandInfo* command = nullptr;  // the command that the runs execute
  std::filesystem::path program;         // the program of arms that name none
  bool no_config = false;                // runs ignore site files too
  bool uses_srun = false;
  std::span<const std::string> launcher = {};  // see CommandContext::launcher
  std::string job;  // the Slurm job in whose allocation this process runs; "" if in none
  // The time limit of this call from its start, in seconds. The end of the allocation also limits it.
  std::optional<double> budget_s;
  std::string_view budget_reason = kEndedByBudget;  // what sets the limit, or kEndedByAllocation
  std::function<void(std::string_view)> warn;       // gets each warning when it is due
};

// The complete command line of one run. `run` replaces {run} in it.
std::vector<std::string> run_line(const SweepWork& work, const SweepCell& cell, size_t arm, uint64_t round,
                                  const std::filesystem::path& results, std::string_view run);

// The number of turns that are not done and whose cell still needs them.
uint64_t turns_left(const SweepWork& work, const SweepHistory& history);
// An estimate of the seconds that the turns of turns_left() take.
double seconds_left(const SweepWork& work, const SweepHistory& history, const SweepTimes& times);

// Runs turns until all are done, the budget does not suffice for the next turn, or this process is asked to
// stop. A failed run becomes a record, and the sweep continues. The reason for the end is in the journal.
// With output.json it prints a line for each run to stdout, with output.progress a line to stderr. One
// thread.
Result<SweepEnd> run_sweep(const SweepWork& work, SweepState& state, const Output& output);

}  // namespace penstock
