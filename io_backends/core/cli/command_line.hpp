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
  std::vector<std::string> arguments = {};  // without the name of the subcommand
  // The main program sets both from the site files (penstock.yaml): the names of tiers with their TIERs, and
  // the command that starts ranks. If both site files have a name or a launcher, the nearer file wins.
  std::vector<OptionWord> named_tiers = {};
  std::vector<std::string> launcher = {};
};

// The option tables of `command`: its own, those of measuring commands if it measures, and the common ones.
// For a command with subcommands: the tables of all of them, so a name may occur more than once.
std::vector<OptionTable> tables_of(const CommandInfo& command);

// The options that --help, the man page and the completions of `command` show. For a command with
// subcommands: only those that all of them take.
std::vector<const OptionSpec*> options_of(const CommandInfo& command);

// The groups that the options belong to, each once, in the order of the options.
std::vector<std::string_view> groups_of(const std::vector<const OptionSpec*>& options);

// All options of tables_of(command), each name once: the first row that has it.
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

// Returns the subcommand that the words name, else `command`: the one whose help is shown.
const CommandInfo& command_named_by(const CommandInfo& command, std::span<const std::string> words);

// The value of --NAME in the words before they are parsed; "" if absent.
std::string raw_value(std::span<const std::string> words, std::string_view name);

// Returns the help text: synopsis, examples, subcommands, and options grouped by task.
std::string command_help(const CommandInfo& command);

}  // namespace penstock
