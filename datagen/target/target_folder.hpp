// Checks the folder that a command is about to fill: whether its path can be a folder, and whether it
// contains other data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// How much of the data that the command makes is on the target: none, a part, or all.
enum class TargetState : uint8_t { fresh, started, finished };

// Whether the folder exists. False if nothing has its path. Fails with `invalid_argument` if the path, or a
// parent of it, is a file or a dangling link. `flag` is the flag that gave the path, such as "--out".
Result<bool> folder_exists(Tier& tier, std::string_view flag);

// The first entry below the root that does not come from Penstock; "" if there is none. Penstock's entries
// are those in `own_names` (below .penstock) and the temporary files of killed processes. Entries that every
// new file system has (lost+found) are skipped, too.
Result<std::string> first_foreign_entry(Tier& tier, std::span<const std::string_view> own_names);

}  // namespace penstock
