// From a command's option table to its parsed line and its help.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct CommandLine {
  const CommandInfo* command = nullptr;  // what is to run: the command, or its subcommand
  Options options = {};
  std::vector<std::string> arguments = {};  // without the subcommand
};

// The tables that `command` takes: its own, those of measuring commands where it measures, the common ones.
// Of a command with subcommands: those of each, so that a name may be there more than once.
std::vector<OptionTable> tables_of(const CommandInfo& command);

// What its --help, its man page and its completions show. Of a command with subcommands: what all take.
std::vector<const OptionSpec*> options_of(const CommandInfo& command);

// The groups of these options, each once.
std::vector<std::string_view> groups_of(const std::vector<const OptionSpec*>& options);

// Of tables_of(command) the first row of each name.
std::vector<const OptionSpec*> all_options(const CommandInfo& command);

// The first row of that name or alias in tables_of(command); null where there is none.
const OptionSpec* find_option(const CommandInfo& command, std::string_view name);

// The words behind the command's name. Unknown flags name the nearest and list the valid ones; too few or too
// many arguments say what is expected. An option of another subcommand is refused, and the error names those
// that take it. `config` supplies what the line does not; what is there for another subcommand is left out.
Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config);

// Whether the words ask for help (--help or -h before any "--").
bool asks_for_help(std::span<const std::string> words);

// What help is asked for: the subcommand that the words name, or the command.
const CommandInfo& command_asked_for(const CommandInfo& command, std::span<const std::string> words);

// The value of --NAME in raw words, before they are parsed in earnest; "" when absent.
std::string raw_value(std::span<const std::string> words, std::string_view name);

// Synopsis, worked examples, subcommands, options grouped by task.
std::string command_help(const CommandInfo& command);

}  // namespace penstock
