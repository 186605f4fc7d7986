// The subcommands of `penstock stage`: one function each, in a file of its name. They get the arguments after
// the subcommand and return the exit code.
#pragma once

#include <span>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

using StageArguments = std::span<const std::string>;

Result<int> stage_advise(const CommandContext& context, StageArguments sessions);
Result<int> stage_apply(const CommandContext& context, StageArguments plans);
Result<int> stage_revert(const CommandContext& context, StageArguments plans);

}  // namespace penstock
