#include "io_backends/configuration/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "io_backends/configuration/config_file.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Adds those words of `more` whose keys are not yet in `words`.
void add_missing(std::vector<OptionWord>& words, const std::vector<OptionWord>& more) {
  const std::vector<OptionWord> original = words;
  for (const OptionWord& word : more) {
    const auto same_key = [&](const OptionWord& given) { return given.key == word.key; };
    if (std::none_of(original.begin(), original.end(), same_key)) words.push_back(word);
  }
}

// The site files that exist: ./penstock.yaml first, and then the user's own file. If both give a value for a
// flag, the value in ./penstock.yaml is used.
std::vector<fs::path> site_files() {
  std::vector<fs::path> files{"penstock.yaml"};
  if (const char* home = std::getenv("HOME"); home != nullptr)
    files.push_back(fs::path(home) / ".config" / "penstock" / "penstock.yaml");
  std::erase_if(files, [](const fs::path& file) {
    std::error_code ignored;
    return !fs::is_regular_file(file, ignored);
  });
  return files;
}

void add_names(const CommandInfo& command, std::vector<std::string_view>& names) {
  for (const OptionTable table : tables_of(command))
    for (const OptionSpec& spec : table) {
      names.push_back(spec.name);
      if (spec.alias.size() > 1) names.push_back(spec.alias);
    }
}

SiteNames known_names(std::span<const CommandInfo* const> all_commands) {
  SiteNames known;
  for (const CommandInfo* command : all_commands) {
    known.commands.push_back(command->name);
    add_names(*command, known.flags);
    if (command->name == "tiers") add_names(*command, known.flags_of_tiers);
  }
  std::sort(known.flags.begin(), known.flags.end());
  known.flags.erase(std::unique(known.flags.begin(), known.flags.end()), known.flags.end());
  return known;
}

// Returns those of `words` that are flags of this command.
std::vector<OptionWord> flags_of_command(const CommandInfo& command, std::vector<OptionWord> words) {
  std::vector<std::string_view> names;
  add_names(command, names);
  std::erase_if(words, [&](const OptionWord& word) {
    return std::find(names.begin(), names.end(), word.key) == names.end();
  });
  return words;
}

// Does what canonical_flags() does; an error names the file.
Result<std::vector<OptionWord>> flags_with_own_names(const CommandInfo& command,
                                                     std::span<const OptionWord> words,
                                                     const fs::path& file) {
  Result<std::vector<OptionWord>> flags = canonical_flags(command, words);
  if (!flags.ok()) return make_error(flags.error().code, "in '{}': {}", file.string(), flags.error().what);
  return flags;
}

}  // namespace

Result<CommandLine> read_command_line(const CommandInfo& command, std::span<const std::string> words,
                                      std::span<const CommandInfo* const> all_commands,
                                      const std::function<void(std::string_view)>& log) {
  SiteFile merged;    // values of all files; the first file with a value decides
  std::string files;  // the files that gave flags: "'a.yaml', 'b.yaml'"
  if (const std::string file = raw_value(words, "config"); !file.empty()) {
    files = fmt::format("'{}'", file);
    PENSTOCK_ASSIGN(const std::vector<OptionWord> flags, read_config_file(file));
    PENSTOCK_ASSIGN(merged.flags, flags_with_own_names(command, flags, file));
  }
  const bool read_site_files = std::find(words.begin(), words.end(), "--no-config") == words.end();
  for (const fs::path& path : read_site_files ? site_files() : std::vector<fs::path>()) {
    log(fmt::format("flags from {} (--no-config ignores it)", path.string()));
    PENSTOCK_ASSIGN(SiteFile site, read_site_file(path, command.name, known_names(all_commands)));
    PENSTOCK_ASSIGN(std::vector<OptionWord> flags, flags_with_own_names(command, site.flags, path));
    PENSTOCK_ASSIGN(std::vector<OptionWord> defaults, flags_with_own_names(command, site.defaults, path));
    add_missing(flags, flags_of_command(command, std::move(defaults)));
    add_missing(merged.flags, flags);
    if (!flags.empty()) files += fmt::format("{}'{}'", files.empty() ? "" : ", ", path.string());
    add_missing(merged.tiers, site.tiers);
    if (merged.launcher.empty()) merged.launcher = std::move(site.launcher);
  }
  Result<CommandLine> command_line = parse_command_line(command, words, merged.flags);
  if (command_line.ok()) {
    command_line->named_tiers = std::move(merged.tiers);
    command_line->launcher = std::move(merged.launcher);
  } else if (!merged.flags.empty() && parse_command_line(command, words, {}).ok()) {
    return make_error(command_line.error().code, "in {}: {}", files, command_line.error().what);
  }
  return command_line;
}

std::vector<std::string> site_tier_names(std::span<const CommandInfo* const> all_commands) {
  std::vector<OptionWord> tiers;
  for (const fs::path& path : site_files())
    if (const Result<SiteFile> site = read_site_file(path, "", known_names(all_commands)); site.ok())
      add_missing(tiers, site->tiers);
  std::vector<std::string> names;
  for (const OptionWord& tier : tiers) names.push_back(tier.key);
  return names;
}

}  // namespace penstock
