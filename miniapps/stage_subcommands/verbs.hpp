// The verbs of `penstock stage`: one function each, in a file of its name. They get the line's nouns behind
// the verb and return the exit code.
#pragma once

#include <span>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

using StageNouns = std::span<const std::string>;

Result<int> stage_advise(const CommandContext& context, StageNouns sessions);
Result<int> stage_apply(const CommandContext& context, StageNouns plans);
Result<int> stage_revert(const CommandContext& context, StageNouns plans);

}  // namespace penstock
