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

// What the line does not say, from the nearest that does: --config, then ./penstock.yaml, then the user's own
// file; in each of the two the command's section before `defaults`.
struct Config {
  std::vector<OptionWord> words;
  std::string files;                  // that they come from: "'a.yaml', 'b.yaml'"
  std::vector<OptionWord> tiers;      // names and their TIERs; of a name that two files have, the nearer
  std::vector<std::string> launcher;  // of the nearest file that has one
};

// Reads the files, which may have flags of `all` commands, unless --no-config stands among `words`, and says
// on stderr which were there.
Result<Config> read_config(const CommandInfo& command, std::span<const std::string> words,
                           std::span<const CommandInfo* const> all);

// Says of what is wrong in a file that it is there.
Result<CommandLine> parse_with_config(const CommandInfo& command, std::span<const std::string> words,
                                      const Config& config);

// The names of the tiers in the site files, for completions; none where a file is wrong.
std::vector<std::string> site_tier_names(std::span<const CommandInfo* const> all);

}  // namespace penstock
