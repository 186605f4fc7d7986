// Executes a sweep: makes one run after another, each as a process of its own, and enters every finished turn
// in the journal.
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

// Values of SweepEnd::reason: why a sweep process ended before all turns were done.
inline constexpr std::string_view kEndedByBudget = "the budget";
inline constexpr std::string_view kEndedByTimeLimit = "the time limit";
inline constexpr std::string_view kEndedByAllocation = "the time of the allocation";
inline constexpr std::string_view kEndedByInterrupt = "an interrupt";

// Everything that a runner needs to know. It must outlive the runner.
struct SweepWork {
  SweepSpec spec;
  std::vector<SweepCell> cells;
  uint64_t seed = 0;
  std::string suite;                     // name of the suite to which its pairs belong (SweepHistory::suite)
  const CommandInfo* command = nullptr;  // the command that the runs execute
  std::filesystem::path program;         // the program for arms that name none
  bool no_config = false;                // whether to pass --no-config to each run
  bool uses_srun = false;
  std::span<const std::string> launcher = {};  // the launcher of the site files (CommandContext::launcher)
  std::string job;  // the Slurm job in whose allocation this process runs; "" if in none
  // For how many seconds this process may run turns. The end of the Slurm allocation limits it, too.
  std::optional<double> budget_s;
  std::string_view budget_reason = kEndedByBudget;  // what set budget_s: one of kEndedBy...
  LiveTiers* live_tiers = nullptr;                  // gets the tiers of finished runs, if not null
  // Print a note and a warning. They are called at once.
  std::function<void(std::string_view)> log;
  std::function<void(std::string_view)> warn;
  // Whether the sweep ends with the error of a run of its first turn that leaves no result, because then all
  // others would fail, too.
  bool needs_first_result = false;
};

// The complete command line of one run. The word `run` replaces {run} in it.
std::vector<std::string> run_line(const SweepWork& work, const SweepCell& cell, size_t arm, uint64_t round,
                                  const std::filesystem::path& results, std::string_view run);

// How many turns are still to be made. A turn is one cell in one round, with the runs of all its arms
// (plan.hpp). A cell whose medians are already known well enough needs no more turns (is_settled()).
uint64_t turns_left(const SweepWork& work, const SweepHistory& history);
// Estimates how long the turns that turns_left() counts will take.
TimeRange time_left(const SweepWork& work, const SweepHistory& history, const SweepTimes& times);
// Sets SweepCell::expected of all cells. It asks the command about some of the cells, because that may take a
// moment for each; the others are like the nearest of those.
void expect_times(SweepWork& work, const CommandContext& context);

// Runs turns until one of these is true: all are done, the budget does not suffice for the next turn, or this
// process is asked to stop. Returns the reason for the end, and enters it in the journal. If a run fails,
// that becomes a record, and the sweep continues.
// With output.json it prints a line for each run to stdout. With output.progress it shows the progress on
// stderr, and with output.logs_steps it logs a line for each turn. Only one thread may call it.
Result<SweepEnd> run_sweep(const SweepWork& work, SweepState& state, const Output& output);

}  // namespace penstock
