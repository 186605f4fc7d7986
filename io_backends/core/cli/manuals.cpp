#include "io_backends/core/cli/manuals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/utc_time.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Returns the date that the manuals show: the date in the environment variable SOURCE_DATE_EPOCH, or today if
// that is not set. Packagers set it to get identical files from every build.
std::string date_of_build() {
  std::time_t now = std::time(nullptr);
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr)
    now = std::strtoll(epoch, nullptr, 10);
  return utc_text(now, "%Y-%m-%d");
}

Result<void> write_manual(const fs::path& path, const std::string& text) {
  return write_whole_file(path.string(), "the manual", text);
}

}  // namespace

Result<int> write_manuals(const fs::path& folder, std::span<const CommandInfo* const> present,
                          const ArgumentChoices& arguments,
                          const std::map<std::string, std::string>& more_pages) {
  const fs::path reference = folder / "reference";
  for (const fs::path& made : {folder / "man1", reference / "commands"}) {
    std::error_code error;
    fs::create_directories(made, error);
    if (error) return errno_error(error.value(), "cannot make", made.string());
  }
  const std::vector<const CommandInfo*> commands(present.begin(), present.end());
  const std::string date = date_of_build();
  PENSTOCK_TRY(write_manual(folder / "man1" / "penstock.1", man_page_of_all(commands, date)));
  for (const CommandInfo* command : with_subcommands(commands))
    PENSTOCK_TRY(write_manual(folder / "man1" / fmt::format("penstock-{}.1", joined_name(*command, '-')),
                              man_page(*command, date)));
  for (const CommandInfo* command : commands)
    PENSTOCK_TRY(
        write_manual(reference / "commands" / fmt::format("{}.md", command->name), command_page(*command)));
  PENSTOCK_TRY(write_manual(reference / "metrics.md", metrics_page(commands)));
  for (const auto& [name, text] : more_pages) PENSTOCK_TRY(write_manual(reference / name, text));
  PENSTOCK_TRY(write_manual(folder / "penstock.bash", bash_completion(commands, arguments)));
  PENSTOCK_TRY(write_manual(folder / "_penstock", zsh_completion(commands, arguments)));
  PENSTOCK_TRY(write_manual(folder / "penstock.fish", fish_completion(commands, arguments)));
  return 0;
}

std::vector<const CommandInfo*> with_subcommands(const std::vector<const CommandInfo*>& commands) {
  std::vector<const CommandInfo*> result;
  for (const CommandInfo* command : commands) {
    result.push_back(command);
    for (const CommandInfo* subcommand : subcommands_of(*command)) result.push_back(subcommand);
  }
  return result;
}

std::string joined_name(const CommandInfo& command, char separator) {
  std::string name(command.name);
  std::replace(name.begin(), name.end(), ' ', separator);
  return name;
}

ValueKind value_kind(const OptionSpec& spec) {
  if (spec.type == OptionType::flag) return ValueKind::none;
  if (spec.type == OptionType::choice || spec.type == OptionType::boolean) return ValueKind::words;
  if (spec.type != OptionType::text) return ValueKind::anything;
  if (spec.value.find("TIER") != std::string_view::npos) return ValueKind::tier;
  if (spec.value.find("DIR") != std::string_view::npos) return ValueKind::folder;
  if (spec.value.find("FILE") != std::string_view::npos || spec.value.find("PATH") != std::string_view::npos)
    return ValueKind::file;
  return ValueKind::anything;
}

std::vector<std::string_view> value_choices(const OptionSpec& spec) {
  if (spec.type == OptionType::boolean) return {"0", "1"};
  std::vector<std::string_view> words;
  std::string_view rest = spec.value;
  while (!rest.empty()) words.push_back(take_part(rest, '|'));
  return words;
}

}  // namespace penstock
