// Makes man pages and shell completions from the option tables: the content of --help for other programs.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"

namespace penstock {

// Command -> the valid values of its first argument ("generate" -> its recipes). CommandInfo does not list
// them.
using ArgumentChoices = std::map<std::string, std::vector<std::string>, std::less<>>;

// Writes the manuals of these commands into `folder` and `folder`/man1/, which it creates: penstock.1,
// penstock-COMMAND.1 and penstock-COMMAND-SUBCOMMAND.1, penstock.bash, _penstock (zsh) and penstock.fish.
// Returns the exit code 0.
Result<int> write_manuals(const std::filesystem::path& folder, std::span<const CommandInfo* const> commands,
                          const ArgumentChoices& arguments);

// The page shows `date`: "2026-11-23". The page of the whole program lists `commands`.
std::string man_page(const CommandInfo& command, std::string_view date);
std::string man_page_of_all(const std::vector<const CommandInfo*>& commands, std::string_view date);

std::string bash_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments);
std::string zsh_completion(const std::vector<const CommandInfo*>& commands, const ArgumentChoices& arguments);
std::string fish_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments);

// Returns each command, followed by its subcommands.
std::vector<const CommandInfo*> with_subcommands(const std::vector<const CommandInfo*>& commands);
// Returns "checkpoint-gc" for "checkpoint gc", with `between` = '-'.
std::string joined_name(const CommandInfo& command, char between);

// What a shell offers as the value of an option.
enum class ValueKind : std::uint8_t { none, anything, words, file, folder, tier };
ValueKind value_kind(const OptionSpec& spec);
// The choices for ValueKind::words: "iec|si" becomes iec, si; a boolean has 0 and 1.
std::vector<std::string_view> value_choices(const OptionSpec& spec);

}  // namespace penstock
