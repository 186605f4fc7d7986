// What a run takes from files: flags, named tiers, the launcher.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Parses a line and takes what it does not say from the nearest that does: --config, then ./penstock.yaml,
// then the user's own file; in each of the two the command's section before `defaults`. The files may have
// flags of `all` commands; with --no-config among `words` only --config counts. Says on stderr which were
// there, and sets the named tiers (of a name that both have, the nearer) and the launcher for the rest of the
// process. The error of what is wrong in a file names the file.
Result<CommandLine> parse_with_config(const CommandInfo& command, std::span<const std::string> words,
                                      std::span<const CommandInfo* const> all);

// The names of the tiers in the site files, for completions; none where a file is wrong.
std::vector<std::string> site_tier_names(std::span<const CommandInfo* const> all);

}  // namespace penstock
