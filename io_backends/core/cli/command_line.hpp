// Parses a command line with the option tables of its command, and makes the command's help text.
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
  // named_tiers: the names that site files (penstock.yaml) give to tiers. launcher: the words of the command
  // that starts ranks. parse_command_line() leaves both empty; the main program fills them from the site
  // files. If both site files set the same name or the launcher, ./penstock.yaml wins over
  // ~/.config/penstock/penstock.yaml.
  std::vector<OptionWord> named_tiers = {};
  std::vector<std::string> launcher = {};
};

// Returns the tables with all options that `command` takes: its own, the common ones, and, if it has them,
// those of measuring_options() and placement_options(). If it has subcommands, returns the tables of all of
// them, so an option may occur more than once.
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

// Returns flags of a configuration file or a sweep with the options' own names: min_time becomes min-time,
// and fio's numjobs becomes threads. An unknown name is unchanged. Fails if an option has both of its names.
Result<std::vector<OptionWord>> canonical_flags(const CommandInfo& command,
                                                std::span<const OptionWord> flags);

// Parses the words after the command's name. `config`: the flags of a configuration file. Such a flag counts
// only if the command line does not have it. Flags of other subcommands in `config` are ignored.
// Errors: an unknown flag (the error names the nearest valid flag and lists all); too few or too many
// arguments; an option that only other subcommands take (the error names these).
Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config);

// True if the words ask for help: --help or -h before any "--".
bool asks_for_help(std::span<const std::string> words);

// Returns the subcommand that the words name, or `command` if they name none. --help shows the help of the
// returned command.
const CommandInfo& command_named_by(const CommandInfo& command, std::span<const std::string> words);

// Returns the value of --NAME; `words` need not be parsed yet. "" if they do not contain the option.
std::string raw_value(std::span<const std::string> words, std::string_view name);

// Appends `text` and a newline. Lines after the first begin with `indent` blanks. Breaks lines at blanks, so
// that they fit into the width of a help text.
void append_wrapped(std::string& out, std::string_view text, size_t indent);

// Returns the help text: synopsis, examples, subcommands, options grouped by task, and the term of the
// glossary that has the command's name, if there is one.
std::string command_help(const CommandInfo& command);

}  // namespace penstock
