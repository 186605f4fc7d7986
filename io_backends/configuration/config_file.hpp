// Parses YAML files with flags and names: `--config FILE.yaml` for one command, and the site files
// ./penstock.yaml and ~/.config/penstock/penstock.yaml for a machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Reads a mapping of flag names to scalars or lists. In keys, '_' becomes '-'. The command's table checks
// them later. `unsupported` if the build lacks yaml-cpp.
Result<std::vector<OptionWord>> read_config_file(const std::filesystem::path& file);

struct SiteFile {
  std::vector<OptionWord> flags;     // flags of the given command
  std::vector<OptionWord> defaults;  // flags for every command that has them
  std::vector<OptionWord> tiers;     // names and their TIERs, in order of the file
  std::vector<std::string>
      // The words that start ranks; one contains "{ranks}". Empty if not given.
      launcher;
};

// The valid names in a site file.
struct SiteNames {
  std::vector<std::string_view> commands;  // each may have a section
  std::vector<std::string_view> flags;     // flags of any command; valid in `defaults`
  std::vector<std::string_view>
      // Flags of the command `tiers`. Its section also has the names of TIERs.
      flags_of_tiers;
};

// Reads a site file. Its sections are the names of commands, `defaults`, `tiers` and `launcher`; for any
// other section the error lists the valid ones. A key in `tiers` is a flag of that command or the name of a
// TIER. The value of a name is a text, or a mapping with `spec` and options.
Result<SiteFile> read_site_file(const std::filesystem::path& file, std::string_view command,
                                const SiteNames& known);

}  // namespace penstock
