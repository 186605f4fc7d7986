// Checks the folder that a command is about to fill: whether it can be one, and whether it contains other
// data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// What the target contains of the data that the command makes.
enum class TargetState : uint8_t { fresh, started, finished };

// True: the folder exists. False: nothing exists. `invalid_argument` if the path, or a parent of it, is a
// file or a dangling link. `flag` is the flag that named it, such as "--out".
Result<bool> folder_exists(Tier& tier, std::string_view flag);

// The first entry below the root that does not come from Penstock: neither in `own_names` (names below
// .penstock) nor the temporary file of a killed process. "" if there is none. Entries of an empty new file
// system do not count.
Result<std::string> first_foreign_entry(Tier& tier, std::span<const std::string_view> own_names);

}  // namespace penstock
