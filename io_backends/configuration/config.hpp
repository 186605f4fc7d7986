// Reads the command line, and adds the flags, named tiers and launcher of configuration files.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Parses the words after the command's name. A value that the line does not give comes from configuration
// files. If several files have it, the first of these decides: --config, ./penstock.yaml, the user's own
// file. Within each of the last two (the site files), the section of the command decides before `defaults`.
// With --no-config among `words` it reads only the file of --config. The files may contain flags of `all`
// commands. If a flag of a file is wrong, the error names the files. Calls `log` with the name of each site
// file before it reads it.
Result<CommandLine> read_command_line(const CommandInfo& command, std::span<const std::string> words,
                                      std::span<const CommandInfo* const> all,
                                      const std::function<void(std::string_view)>& log);

// The names of the tiers in the site files, for shell completion. A file with an error is skipped.
std::vector<std::string> site_tier_names(std::span<const CommandInfo* const> all);

}  // namespace penstock
