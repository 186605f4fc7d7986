// How the runs of a sweep are started: alone, by a launcher, or by srun in an allocation of Slurm.
#pragma once

#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/sweep/plan.hpp"
#include "results/sweep/spec.hpp"

namespace penstock {

// The words before the program's name; none for a plain process. {ranks}, {nodes} and {tasks-per-node} in the
// file's launcher stand for the cell's own.
std::vector<std::string> launcher_arguments(const SweepSpec& spec, const SweepCell& cell, bool by_srun);

// invalid_argument for a launcher with another word in braces, or that is given without ranks or nodes.
Result<void> check_launcher(const SweepSpec& spec);

}  // namespace penstock
