// Reads configuration files of Hydra (YAML), such as DLIO's workload files, and applies Hydra's overrides.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Returns the content of a file of the configuration group `group`, with the overrides merged into it. A
// mapping is merged key by key, any other value is replaced, as OmegaConf does.
//
// The file may be one that Hydra composed: then the result is what it has below the key `group`. Files that
// its list `defaults` names are loaded first, or after it if they come after `_self_` in the list. Overrides
// have the forms of Hydra's command line, with the group in front: "++workload.reader.read_threads=8",
// "++workload.train={epochs: 2}", "~workload.metric". Interpolations (${...}) stay as they are.
//
// Errors: invalid_argument for what is no mapping, for entries of `defaults` that need Hydra's search path,
// for a key that a mapping has twice, for a second document in the file, for words that are no override, and
// for an override that removes what is not there. Throws YAML::Exception for what is no
// YAML or cannot be read.
Result<YAML::Node> load_hydra_file(const std::string& file, const std::string& group,
                                   const std::vector<std::string>& overrides);

}  // namespace penstock
