// Reads flags, named tiers and the launcher from configuration files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Values that the command line does not give. If several files give a value, the first of these wins:
// --config, ./penstock.yaml, the user's own file. In each of the two site files, the section of the command
// wins over `defaults`.
struct Config {
  std::vector<OptionWord> words;
  std::string files;  // the files of the flags: "'a.yaml', 'b.yaml'"
  // names and their TIERs; if two files have a name, that of the nearer file
  std::vector<OptionWord> tiers;
  std::vector<std::string> launcher;  // from the nearest file that has one
};

// Reads the files and prints their names on stderr. With --no-config among `words` it reads only the file of
// --config. The files may contain flags of `all` commands.
Result<Config> read_config(const CommandInfo& command, std::span<const std::string> words,
                           std::span<const CommandInfo* const> all);

// Parses the line with the flags of the files. If a flag of a file is wrong, the error names the files.
Result<CommandLine> parse_with_config(const CommandInfo& command, std::span<const std::string> words,
                                      const Config& config);

// The names of the tiers in the site files, for completions. Skips a file with an error.
std::vector<std::string> site_tier_names(std::span<const CommandInfo* const> all);

}  // namespace penstock
