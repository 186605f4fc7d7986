// Flags and names from YAML: `--config FILE.yaml` for one command, and the site files ./penstock.yaml and
// ~/.config/penstock/penstock.yaml, which say what holds on a machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// A mapping of flag names to scalars or sequences; keys are checked later, against the command's table, and
// have '-' for '_'. unsupported when the build lacks yaml-cpp.
Result<std::vector<OptionWord>> read_config_file(const std::filesystem::path& file);

struct SiteFile {
  std::vector<OptionWord> flags;     // of the command that was asked for
  std::vector<OptionWord> defaults;  // of every command that has them
  std::vector<OptionWord> tiers;     // names and their TIERs, in order of the file
  std::vector<std::string>
      launcher;  // the words that start ranks, "{ranks}" among them; empty where not given
};

// What a site file may hold.
struct SiteNames {
  std::vector<std::string_view> commands;  // whose names are sections
  std::vector<std::string_view> flags;     // of any command: what `defaults` may hold
  std::vector<std::string_view>
      flags_of_tiers;  // of the command `tiers`, which shares its section with names
};

// Sections named after commands, and `defaults`, `tiers` and `launcher`; any other top-level key is an error
// that lists them. In `tiers` a key is a flag of that command, or the name of a TIER: its text, or a mapping
// of its `spec` and its options.
Result<SiteFile> read_site_file(const std::filesystem::path& file, std::string_view command,
                                const SiteNames& known);

}  // namespace penstock
