// Man pages and completions, from the option tables: what --help says, in the forms that other programs read.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"

namespace penstock {

// What the tables do not say: the words that a command's first argument may be ("generate" -> its recipes).
using ArgumentChoices = std::map<std::string, std::vector<std::string>, std::less<>>;

// Of these commands: writes into `folder` and its man1/, which it makes: penstock.1, penstock-COMMAND.1 and
// penstock-COMMAND-SUBCOMMAND.1, penstock.bash, _penstock (zsh) and penstock.fish. Returns the exit code 0.
Result<int> write_manuals(const std::filesystem::path& folder, std::span<const CommandInfo* const> commands,
                          const ArgumentChoices& arguments);

// `date` stands on the page: "2026-11-23". The page of the whole program lists `commands`.
std::string man_page(const CommandInfo& command, std::string_view date);
std::string man_page_of_all(const std::vector<const CommandInfo*>& commands, std::string_view date);

std::string bash_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments);
std::string zsh_completion(const std::vector<const CommandInfo*>& commands, const ArgumentChoices& arguments);
std::string fish_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments);

// Each command, and behind it its subcommands.
std::vector<const CommandInfo*> with_subcommands(const std::vector<const CommandInfo*>& commands);
// "checkpoint-gc" of "checkpoint gc".
std::string joined_name(const CommandInfo& command, char between);

// What a shell may offer for the value of an option.
enum class ValueKind : std::uint8_t { none, anything, words, file, folder, tier };
ValueKind value_kind(const OptionSpec& spec);
// Of `words`: "iec|si" -> iec, si; "0|1" for a boolean.
std::vector<std::string_view> value_choices(const OptionSpec& spec);

}  // namespace penstock
