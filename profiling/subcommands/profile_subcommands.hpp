// The subcommands of `penstock profile`, one file each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"

namespace penstock {

// As CommandInfo::run; the subcommand itself is no longer among the arguments.
using ProfileArguments = std::span<const std::string>;
Result<int> profile_run(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_report(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_export(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_top(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_attach(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_detach(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_status(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_trace(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_snapshot(const CommandContext& context, ProfileArguments arguments);
Result<int> profile_serve(const CommandContext& context, ProfileArguments arguments);

// libpenstock_profile.so, or the one that PENSTOCK_PROFILE_LIBRARY names: absolute.
Result<std::string> profile_library();
// --trace-limit where it is given; invalid_argument for less than a file can keep to.
Result<std::optional<std::uint64_t>> trace_limit_of(const Options& options);

// From now on a terminal that goes away ends the command as Ctrl-C does: for what has to be taken back.
void end_with_terminal();

}  // namespace penstock
