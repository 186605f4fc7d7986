// Which runs a sweep consists of, in which order they come, and how they are started.
//
// A round is one repeat of every cell, in an order drawn anew for each. A turn is one cell of a round: all of
// its arms, one right behind the other. With two arms their order is AB in one round and BA in the next, or
// the reverse, by a coin for each two rounds and each cell, so that a drift weighs on both alike. Orders come
// from the seed and the cell's own key alone: cells that are added later change nothing of those that were
// there.
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
  std::string key;    // tells it from all others of its sweep, for as long as the grid only grows: "threads=4
                      // tier=fast=posix:/p ranks=2"
  std::string title;  // for people: "4 threads, fast, 2 ranks"
  std::vector<SweepSetting> settings;  // of the grid
  std::vector<std::string> arguments;
  // Of a job of several ranks; both 0: a plain process.
  std::uint64_t ranks = 0;
  std::uint64_t nodes = 0;
};

// Cells in the grid's own order, the last axis fastest. Ranks and nodes that make no job (fewer ranks than
// nodes, or more than tasks-per-node allows) are left out.
Result<std::vector<SweepCell>> sweep_cells(const SweepSpec& spec);

// How many runs a turn has: one for each arm, or one.
std::size_t arms_of_a_turn(const SweepSpec& spec);

// The cells of a round in their order.
std::vector<std::size_t> round_order(const std::vector<SweepCell>& cells, std::uint64_t seed,
                                     std::uint64_t round);
// The arms of a cell in that round, in their order; {0} without arms.
std::vector<std::size_t> arm_order(const SweepSpec& spec, const SweepCell& cell, std::uint64_t seed,
                                   std::uint64_t round);

// The words after the program's name for one run, without those that single runs get in addition (results,
// label, pair, seed). Options are spelled by the command's table: lists with commas, flags alone; one that is
// not in it is repeated once for each value.
std::vector<std::string> run_arguments(const SweepSpec& spec, const SweepCell& cell, std::size_t arm,
                                       const CommandInfo& command);
// The words before the program's name; none for a plain process. {ranks}, {nodes} and {tasks-per-node} in the
// file's launcher stand for the cell's own. `site`: the launcher of the site files, for a file without one;
// mpirun where both have none.
std::vector<std::string> launcher_arguments(const SweepSpec& spec, const SweepCell& cell, bool by_srun,
                                            std::span<const std::string> site = {});

// invalid_argument for a launcher with another word in braces, or that is given without ranks or nodes.
Result<void> check_launcher(const SweepSpec& spec);
// The text with {run} replaced by `run`: a word that no other run has, for what each run needs anew.
std::string with_run(std::string text, std::string_view run);
// Whether the file gives `key` to this arm's runs itself.
bool is_given(const SweepSpec& spec, std::size_t arm, std::string_view key);

// What may not change while a sweep goes on, for its journal.
Json sweep_identity(const SweepSpec& spec);
// invalid_argument, by name, where `now` does not merely add values, ranks, nodes or repeats to `before`.
Result<void> check_only_added(const Json& before, const Json& now);

}  // namespace penstock
