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

// Parses the words after the command's name, and adds values from configuration files for flags that the
// words do not give.
// If several files give a value, the first of these files decides: the file of --config, ./penstock.yaml, the
// user's own file. In ./penstock.yaml and the user's file (the site files), the section of the command comes
// before the section `defaults`. With --no-config among `words`, the site files are not read.
// The files may contain flags of every command in `all_commands`. If a flag of a file is wrong, the error
// names the files. `log` gets the name of each site file before the file is read.
Result<CommandLine> read_command_line(const CommandInfo& command, std::span<const std::string> words,
                                      std::span<const CommandInfo* const> all_commands,
                                      const std::function<void(std::string_view)>& log);

// The names of the tiers in the site files, for shell completion. A file with an error is skipped.
std::vector<std::string> site_tier_names(std::span<const CommandInfo* const> all_commands);

}  // namespace penstock
