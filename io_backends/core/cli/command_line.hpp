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
  // The names of tiers with their TIERs, and the command that starts ranks. Parsing leaves them empty: the
  // main program sets them from the site files (penstock.yaml). If both site files have a name or a launcher,
  // that of ./penstock.yaml wins over ~/.config/penstock/penstock.yaml.
  std::vector<OptionWord> named_tiers = {};
  std::vector<std::string> launcher = {};
};

// Returns the option tables of `command`: its own, those of measuring commands if it is one, and the common
// ones. If it has subcommands, returns the tables of all subcommands, so an option may occur more than once.
std::vector<OptionTable> tables_of(const CommandInfo& command);

// Returns the options that --help, the man page and the completions of `command` show. If it has subcommands,
// these are only the options that all subcommands take.
std::vector<const OptionSpec*> options_of(const CommandInfo& command);

// Returns the titles (OptionSpec::group) under which --help lists these options: each once, in the order of
// the options.
std::vector<std::string_view> groups_of(const std::vector<const OptionSpec*>& options);

// Returns the options in tables_of(command). If an option occurs more than once, only its first row is
// returned.
std::vector<const OptionSpec*> all_options(const CommandInfo& command);

// The first row with this name or alias in tables_of(command); null if none exists.
const OptionSpec* find_option(const CommandInfo& command, std::string_view name);

// Parses the words after the command's name. For an unknown flag the error names the nearest one and lists
// the valid ones. For too few or too many arguments it names the expected ones. An option that only other
// subcommands take is refused, and the error names them. `config` has the flags of a configuration file: they
// count if the command line does not give them, and flags of other subcommands are ignored there.
Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config);

// True if the words ask for help: --help or -h before any "--".
bool asks_for_help(std::span<const std::string> words);

// Returns the subcommand that the words name, or `command` if they name none. Its help is shown for --help.
const CommandInfo& command_named_by(const CommandInfo& command, std::span<const std::string> words);

// Finds the value of --NAME before the words are parsed; "" if the option is absent.
std::string raw_value(std::span<const std::string> words, std::string_view name);

// Returns the help text: synopsis, examples, subcommands, and options grouped by task.
std::string command_help(const CommandInfo& command);

}  // namespace penstock
