// Decides which runs a sweep has, in which order they come, and with which command lines they start.
//
// A cell is one combination of the grid's values, ranks and nodes. A round is one repeat of every cell, in a
// random order; each round has a new order. A turn is one cell in one round: the runs of all its arms,
// directly after each other.
//
// With two arms, A and B, a cell has the order AB in one of two successive rounds and BA in the other. Which
// of the two orders comes first is drawn anew for each cell and every two rounds. So a drift of the machine
// affects both arms equally. Orders depend only on the seed and the cell's own key: if cells are added later,
// the order of the other cells does not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/time_range.hpp"
#include "results/record/record.hpp"
#include "results/sweep/spec.hpp"

namespace penstock {

struct SweepCell {
  // Identifies the cell: "threads=4 tier=fast=posix:/p ranks=2". No two cells have the same key, even after
  // values were added to the grid.
  std::string key;
  std::string title;                   // for people: "4 threads, fast, 2 ranks"
  std::vector<SweepSetting> settings;  // for each axis of the grid, the value of this cell
  std::vector<std::string> arguments;
  // The size of the cell's parallel job; both are 0 for a plain process.
  uint64_t ranks = 0;
  uint64_t nodes = 0;
  // The expected time of a turn, which counts until one of this cell is done. expect_times() sets it.
  TimeRange expected{};
};

// Returns the cells in the grid's order; the last axis changes fastest. Leaves out combinations of ranks and
// nodes that make no job: fewer ranks than nodes, or more ranks than tasks-per-node allows.
Result<std::vector<SweepCell>> sweep_cells(const SweepSpec& spec);

// Gives the options of the sweep their own names: fio's numjobs becomes threads. So cells and records have
// the same names, however the file spells them. Fails if the file has an option by both of its names.
Result<void> use_own_names(SweepSpec& spec, const CommandInfo& command);

// Whether the sweep itself gives this option to each run. Then a spec must not set it.
bool is_set_by_sweep(std::string_view key);

// How many runs a turn has: one for each arm, or one if there are no arms.
size_t runs_per_turn(const SweepSpec& spec);

// The order in which this round runs the cells, as their indices.
std::vector<size_t> round_order(const std::vector<SweepCell>& cells, uint64_t seed, uint64_t round);
// The order in which this round runs the arms of one cell, as their indices. Without arms it is {0}.
std::vector<size_t> arm_order(const SweepSpec& spec, const SweepCell& cell, uint64_t seed, uint64_t round);

// The arguments after the program's name for one run, without those that the sweep itself adds to each run
// (results, label, pair, seed).
// The command's option table decides how an option is written: a list with commas, a flag without a value. An
// option that may be given several times, or that the table does not have, is repeated for each value.
std::vector<std::string> run_arguments(const SweepSpec& spec, const SweepCell& cell, size_t arm,
                                       const CommandInfo& command);
// The launcher with its arguments, which come before the program's name; empty for a plain process. {ranks},
// {nodes} and {tasks-per-node} are replaced by the numbers of the cell.
// The launcher is the first that exists of these: that of the sweep's file; srun, if `uses_srun`; `site`,
// which is the launcher in the site files; mpirun.
std::vector<std::string> launcher_arguments(const SweepSpec& spec, const SweepCell& cell, bool uses_srun,
                                            std::span<const std::string> site = {});

// Checks the launcher in the sweep's file. invalid_argument if a brace in it is not part of {ranks}, {nodes}
// or {tasks-per-node}. Also invalid_argument if the file has a launcher but neither `ranks` nor `nodes`.
Result<void> check_launcher(const SweepSpec& spec);
// Replaces {run} in the text by `run`, a word that is unique to each run. So a sweep's file can make each run
// use a file of its own.
std::string replace_run(std::string text, std::string_view run);
// Whether the sweep's file sets the option `key` for the runs of this arm.
bool sets_option(const SweepSpec& spec, size_t arm, std::string_view key);

// Those parts of the sweep's file that must not change after the start of the sweep, except by additions.
// They are stored in the journal.
Json sweep_identity(const SweepSpec& spec);
// Succeeds if `now` is `before`, perhaps with more values, ranks, nodes or repeats. Otherwise fails with
// invalid_argument, which names the key.
Result<void> check_only_added(const Json& before, const Json& now);

}  // namespace penstock
