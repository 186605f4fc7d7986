// Prepares the runs of a sweep, and starts or continues its journal. `penstock sweep` and `penstock compare`
// use it.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "results/sweep/runner.hpp"

namespace penstock {

// Finds a command that measures. If there is none of this name, the error lists those that there are.
Result<const CommandInfo*> measuring_command(const std::string& name);

// Fills `work`, which has only its spec: finds the command, makes the cells, and checks the command line of
// every run before anything is measured. `source` says in errors where the spec is from, such as the name of
// the sweep's file.
// Errors: invalid_argument if the command is unknown or would refuse one of the command lines. Lines of arms
// with another program are not checked, since its options may differ.
Result<void> prepare_work(SweepWork& work, const CommandContext& context, std::string_view source);

// Opens the journal of the sweep, and sets work.seed and work.suite. If the sweep was started before,
// compares its spec with the journal. Only added cells and added repeats are allowed; any other change is an
// error. Waits for up to a minute if another process works on the sweep.
Result<SweepState> open_sweep(SweepWork& work, const CommandContext& context, std::string_view source);

}  // namespace penstock
