// Decides which runs a sweep has, in which order they come, and with which command lines they start.
//
// A round is one repeat of every cell, in a random order that is drawn for each round. A turn is one cell of
// a round: the runs of all its arms, directly after each other. With two arms the order is AB in one round
// and BA in the next, or the reverse. A random draw for each cell decides that for every two rounds, so that
// a drift affects both arms equally. Orders depend only on the seed and the cell's own key, so cells that are
// added later do not change the order of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"
#include "results/sweep/spec.hpp"

namespace penstock {

struct SweepCell {
  // Unique in its sweep as long as the grid only grows: "threads=4 tier=fast=posix:/p ranks=2".
  std::string key;
  std::string title;                   // for people: "4 threads, fast, 2 ranks"
  std::vector<SweepSetting> settings;  // the values of the grid's axes
  std::vector<std::string> arguments;
  // The size of a parallel job; both are 0 for a plain process.
  uint64_t ranks = 0;
  uint64_t nodes = 0;
};

// The cells in the grid's order; the last axis changes fastest. Combinations of ranks and nodes that make no
// job are left out: fewer ranks than nodes, or more than tasks-per-node allows.
Result<std::vector<SweepCell>> sweep_cells(const SweepSpec& spec);

// The number of runs of a turn: one for each arm, or one without arms.
size_t runs_per_turn(const SweepSpec& spec);

// The indices of `cells` in the order in which that round runs them.
std::vector<size_t> round_order(const std::vector<SweepCell>& cells, uint64_t seed, uint64_t round);
// The indices of the arms in the order in which that round runs them for one cell; {0} without arms.
std::vector<size_t> arm_order(const SweepSpec& spec, const SweepCell& cell, uint64_t seed, uint64_t round);

// The arguments after the program's name for one run. Those that each run gets in addition (results, label,
// pair, seed) are not included. Options are written by the command's table: lists with commas, flags without
// a value. An option that the table does not have is repeated for each value.
std::vector<std::string> run_arguments(const SweepSpec& spec, const SweepCell& cell, size_t arm,
                                       const CommandInfo& command);
// The arguments before the program's name, that is the launcher; none for a plain process. In the launcher
// {ranks}, {nodes} and {tasks-per-node} are replaced by the numbers of the cell. `site` is the launcher of
// the site files. It is used if the sweep has no launcher, and mpirun if there is no launcher at all.
std::vector<std::string> launcher_arguments(const SweepSpec& spec, const SweepCell& cell, bool uses_srun,
                                            std::span<const std::string> site = {});

// Fails with invalid_argument if the launcher has a brace outside {ranks}, {nodes} and {tasks-per-node}, or
// if it is given without `ranks` and `nodes`.
Result<void> check_launcher(const SweepSpec& spec);
// Replaces {run} in the text by `run`, a word that is unique to each run. It makes names that no two runs
// share.
std::string replace_run(std::string text, std::string_view run);
// Whether the sweep's file sets the option `key` for the runs of this arm.
bool sets_option(const SweepSpec& spec, size_t arm, std::string_view key);

// The parts of the sweep's file that a started sweep depends on, for its journal.
Json sweep_identity(const SweepSpec& spec);
// Fails with invalid_argument, which names the key, unless `now` only adds values, ranks, nodes or repeats to
// `before`.
Result<void> check_only_added(const Json& before, const Json& now);

}  // namespace penstock
