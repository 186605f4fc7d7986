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
  Options options;
  std::vector<std::string> arguments;
};

// The tables that `command` takes: its own, the common ones, those of measuring commands where it measures.
std::vector<OptionTable> tables_of(const CommandInfo& command);

// The words behind the command's name. Unknown flags name the nearest and list the valid ones; too few or too
// many arguments say what is expected. `config` supplies what the line does not.
Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config);

// Whether the words ask for help (--help or -h before any "--").
bool asks_for_help(std::span<const std::string> words);

// The value of --NAME in raw words, before they are parsed in earnest; "" when absent.
std::string raw_value(std::span<const std::string> words, std::string_view name);

// Synopsis, worked examples, options grouped by task.
std::string command_help(const CommandInfo& command);

}  // namespace penstock
