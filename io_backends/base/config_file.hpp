// Flags from YAML: `--config FILE.yaml` for one command, and the site files ./penstock.yaml and
// ~/.config/penstock/penstock.yaml, whose sections are named after commands.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "io_backends/base/options.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

// A mapping of flag names to scalars or sequences; keys are checked later, against the command's table.
// `section` "" takes the whole document; otherwise the mapping under that key (absent: no words), and a
// top-level key that is in no `known_sections` is an error that lists them. unsupported when the build lacks
// yaml-cpp.
Result<std::vector<OptionWord>> read_config_file(const std::filesystem::path& file, std::string_view section,
                                                 const std::vector<std::string_view>& known_sections);

}  // namespace penstock
