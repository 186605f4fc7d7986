// Commands with subcommands (`penstock checkpoint save`), whose options may belong to some subcommands only.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct SubcommandOptions {
  std::string_view subcommand;
  std::span<const std::string_view> takes;  // long names; what no subcommand takes is the command's own
};

// invalid_argument for an option on the line that only other subcommands take, with their names: that is a
// mistake. An option from a configuration file is meant for those, and is not checked. `-o` is "output".
Result<void> check_subcommand_options(std::string_view subcommand,
                                      const std::vector<SubcommandOptions>& subcommands,
                                      std::span<const std::string> argv);

// From a command's table of subcommands, each with a `name` and the long names of options that it `takes`.
// The table outlives the result.
template <class Subcommand>
std::vector<SubcommandOptions> options_of(const std::vector<Subcommand>& subcommands) {
  std::vector<SubcommandOptions> all;
  for (const Subcommand& subcommand : subcommands) all.push_back({subcommand.name, subcommand.takes});
  return all;
}
// invalid_argument, with those that there are, for a word that is none. `command`: its name.
template <class Subcommand>
Result<const Subcommand*> find_subcommand(std::string_view command,
                                          const std::vector<Subcommand>& subcommands, std::string_view word) {
  std::vector<std::string_view> names;
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.name == word) return &subcommand;
    names.push_back(subcommand.name);
  }
  return unknown_name("subcommand of 'penstock " + std::string(command) + "'", word, names);
}

}  // namespace penstock
