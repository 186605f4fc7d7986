// Makes man pages, shell completions and the reference in Markdown from the option tables of the commands
// (--help is made from the same tables).
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"

namespace penstock {

// Name of a command -> the valid values of its first argument, such as "generate" -> its recipes. Completions
// need them, and CommandInfo does not have them.
using ArgumentChoices = std::map<std::string, std::vector<std::string>, std::less<>>;

// Writes the manuals of the commands. `folder`/man1/ gets the man pages penstock.1, penstock-COMMAND.1 and
// penstock-COMMAND-SUBCOMMAND.1. `folder`/reference/ gets metrics.md, commands/COMMAND.md with the
// subcommands of each, and `more_pages` (file name -> Markdown). `folder` gets the completions penstock.bash,
// _penstock (zsh) and penstock.fish. Creates all folders. Returns 0, the exit code of the command.
Result<int> write_manuals(const std::filesystem::path& folder, std::span<const CommandInfo* const> commands,
                          const ArgumentChoices& arguments,
                          const std::map<std::string, std::string>& more_pages);

// man_page() makes the man page of one command. man_page_of_all() makes the man page of the whole program,
// with a list of `commands`. The page shows `date`: "2026-11-23".
std::string man_page(const CommandInfo& command, std::string_view date);
std::string man_page_of_all(const std::vector<const CommandInfo*>& commands, std::string_view date);

// The Markdown pages of one command with its subcommands, and of the metrics of all.
std::string command_page(const CommandInfo& command);
std::string metrics_page(const std::vector<const CommandInfo*>& commands);

std::string bash_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments);
std::string zsh_completion(const std::vector<const CommandInfo*>& commands, const ArgumentChoices& arguments);
std::string fish_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments);

// Returns each command, directly followed by its subcommands.
std::vector<const CommandInfo*> with_subcommands(const std::vector<const CommandInfo*>& commands);
// Returns the command's name with `separator` in place of blanks: "checkpoint-gc" for "checkpoint gc" and
// '-'.
std::string joined_name(const CommandInfo& command, char separator);

// What a shell offers as the value of an option.
enum class ValueKind : uint8_t { none, anything, words, file, folder, tier };
ValueKind value_kind(const OptionSpec& spec);
// Returns the values that a shell offers for an option of ValueKind::words. They are "iec" and "si" if the
// option's value is "iec|si", and 0 and 1 if it is a boolean.
std::vector<std::string_view> value_choices(const OptionSpec& spec);

}  // namespace penstock
