// Works through a sweep: one run after another, each a process of its own, each turn journalled.
#pragma once

#include <cstdint>
#include <filesystem>
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

// What may end a session before all is done (SweepEnd::why).
inline constexpr std::string_view kByBudget = "the budget";
inline constexpr std::string_view kByAllocation = "the time of the allocation";
inline constexpr std::string_view kByInterrupt = "an interrupt";

// What is to be done. Outlives the runner.
struct SweepWork {
  SweepSpec spec;
  std::vector<SweepCell> cells;
  std::uint64_t seed = 0;
  std::string suite;                     // of pairs (SweepHistory)
  const CommandInfo* command = nullptr;  // that is swept
  std::filesystem::path program;         // of runs whose arm names none
  bool no_config = false;                // runs ignore site files, too
  bool by_srun = false;
  std::span<const std::string> launcher = {};  // CommandContext::launcher
  std::string job;                             // of Slurm, in whose allocation this process runs; "": none
  // The time of this call, from its begin; the allocation's own end among it.
  std::optional<double> budget_s;
  std::string_view budget_is = kByBudget;  // or kByAllocation
};

// The whole line of one run; `run` is what its {run} stands for.
std::vector<std::string> run_line(const SweepWork& work, const SweepCell& cell, std::size_t arm,
                                  std::uint64_t round, const std::filesystem::path& results,
                                  std::string_view run);

// Turns that are not done and whose cell has not settled.
std::uint64_t turns_left(const SweepWork& work, const SweepHistory& history);
// How long they take, as far as can be told.
double seconds_left(const SweepWork& work, const SweepHistory& history, const SweepTimes& times);

// Until all is done, the budget does not suffice for the next turn, or this process is asked to stop. Runs
// that fail are records, and the sweep goes on. What ended it is in the journal. With output.json a line for
// each run on stdout; output.progress: a line on stderr.
Result<SweepEnd> run_sweep(const SweepWork& work, SweepState& state, const Output& output);

}  // namespace penstock
