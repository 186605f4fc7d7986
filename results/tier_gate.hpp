// The gate between tiers: measures one command on two tiers in turn, so that `penstock compare` can tell
// whether the second is worse. It is a sweep with two arms, "base" and "candidate".
#pragma once

#include <filesystem>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Whether the command line asks for the gate between tiers. Fails if its options do not fit together.
Result<bool> compares_tiers(const Options& options);

// Measures the command, which is after "--" in context.argv, on both tiers: --pairs times on each, in random
// order. Returns the folders with the records of the base and of the candidate. The runs are journaled: after
// an interrupt or a kill, the same command line continues. Errors: invalid_argument if the command cannot be
// measured on a tier that is given from outside, or if its first run leaves no result; the error then has the
// run's own message. interrupted after Ctrl-C.
Result<std::vector<std::filesystem::path>> measure_tiers(const CommandContext& context);
// Prints what measure_tiers() would run.
Result<int> print_gate_plan(const CommandContext& context);

}  // namespace penstock
