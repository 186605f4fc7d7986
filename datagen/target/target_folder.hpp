// The folder that a command is to fill: whether it can be one, and whether others keep things there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// What a target holds of what a command is to make there.
enum class TargetState : std::uint8_t { fresh, started, finished };

// True: there is a folder; false: nothing. invalid_argument where a file, or a link to nothing, is in its
// place or above it; `flag` is what named it: "--out".
Result<bool> folder_is_there(Tier& tier, std::string_view flag);

// The first thing below the root that is neither one of `ours` (names below .penstock) nor the temporary file
// of a killed process; "" if there is none. What a fresh file system brings along does not count.
Result<std::string> first_foreign_entry(Tier& tier, std::span<const std::string_view> ours);

}  // namespace penstock
