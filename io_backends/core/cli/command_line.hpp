// Parses the command line by a command's option table, and prints its help.
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
  const CommandInfo* command = nullptr;  // the command or subcommand to run
  Options options = {};
  std::vector<std::string> arguments = {};  // without the subcommand
  // From the site files, which parse_command_line() does not read: names and their TIERs (if two files have a
  // name, that of the nearer file), and the words of the nearest file that start ranks.
  std::vector<OptionWord> named_tiers = {};
  std::vector<std::string> launcher = {};
};

// The option tables of `command`: its own, those of measuring commands if it measures, and the common ones.
// For a command with subcommands: the tables of all of them, so a name may occur more than once.
std::vector<OptionTable> tables_of(const CommandInfo& command);

// The options in its --help, man page and completions. For a command with subcommands: only those that all of
// them take.
std::vector<const OptionSpec*> options_of(const CommandInfo& command);

// The groups of these options, each once.
std::vector<std::string_view> groups_of(const std::vector<const OptionSpec*>& options);

// The first row of each name in tables_of(command).
std::vector<const OptionSpec*> all_options(const CommandInfo& command);

// The first row with this name or alias in tables_of(command); null if none exists.
const OptionSpec* find_option(const CommandInfo& command, std::string_view name);

// Parses the words after the command's name. For an unknown flag the error names the nearest one and lists
// the valid ones. For too few or too many arguments it names the expected ones. An option of another
// subcommand is refused, and the error names the subcommands that take it. `config` has values for flags that
// the line does not give. Its flags of other subcommands are ignored.
Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config);

// Whether the words ask for help (--help or -h before any "--").
bool asks_for_help(std::span<const std::string> words);

// The command whose help the words ask for: the subcommand in the words, or the command.
const CommandInfo& command_asked_for(const CommandInfo& command, std::span<const std::string> words);

// The value of --NAME in the words before they are parsed; "" if absent.
std::string raw_value(std::span<const std::string> words, std::string_view name);

// Returns the help text: synopsis, examples, subcommands, and options grouped by task.
std::string command_help(const CommandInfo& command);

}  // namespace penstock
