// Parses YAML files with flags and names. The file of `--config FILE.yaml` is for one command. The site
// files, ./penstock.yaml and ~/.config/penstock/penstock.yaml, are for all commands on a machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Reads the file of --config: a mapping of flag names to scalars or lists. In keys, '_' becomes '-'. Whether
// the command has these flags is checked later, by its table of options. Fails with `unsupported` if the
// build lacks yaml-cpp.
Result<std::vector<OptionWord>> read_config_file(const std::filesystem::path& file);

struct SiteFile {
  std::vector<OptionWord> flags;     // flags of the command that is run
  std::vector<OptionWord> defaults;  // flags that apply to every command that has them
  std::vector<OptionWord> tiers;     // names and their TIERs, in order of the file
  // The command that starts the ranks, as words. One of the words contains "{ranks}". Empty if not given.
  std::vector<std::string> launcher;
};

// The names that a site file may contain.
struct SiteNames {
  std::vector<std::string_view> commands;  // each of them may have a section
  std::vector<std::string_view> flags;     // flags of all commands; `defaults` may contain them
  // Flags of the command `tiers`. The section `tiers` may contain these flags and the names of tiers.
  std::vector<std::string_view> flags_of_tiers;
};

// Reads a site file. Its sections are the names of commands, `defaults`, `tiers` and `launcher`. For any
// other section the error lists the valid ones. A key in `tiers` is a flag of the command `tiers` or the name
// of a tier. The value of a tier's name is a TIER text, or a mapping with `spec` and options.
Result<SiteFile> read_site_file(const std::filesystem::path& file, std::string_view command,
                                const SiteNames& known);

}  // namespace penstock
