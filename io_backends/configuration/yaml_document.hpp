// Reads YAML files as PyYAML and OmegaConf do, where yaml-cpp is more lenient. Needs yaml-cpp.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// Parses a text of one document. Throws YAML::Exception for what is no YAML, and for a second document, which
// yaml-cpp would ignore.
YAML::Node parse_yaml(const std::string& text);
// The same for a file. Throws YAML::BadFile if it cannot be read.
YAML::Node load_yaml(const std::filesystem::path& file);

// Replaces the merge keys ("<<") below `node` by what they merge; keys of the mapping itself come before
// those. `invalid_argument` if a mapping has a key twice, if what is merged is not a mapping, or if there are
// too many values or too many levels: an alias (YAML's *NAME) may contain itself, or many aliases that
// contain many aliases.
Result<void> resolve_yaml_keys(YAML::Node node);

}  // namespace penstock
