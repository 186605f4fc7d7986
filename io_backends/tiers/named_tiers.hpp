// Names for TIERs, such as "fast" for "posix:/dev/shm/p". A TIER is the text by which the user names a tier.
// A name is valid wherever a TIER is expected; parse_tier() replaces it by the TIER. If a folder has the same
// name, the TIER is meant; the folder is written ./fast. The user may add options: "fast,limit=1GB/s". An
// added option replaces the same option of the named TIER. The user may also give the tier another name:
// "other=fast".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Checks a name and its TIER. Fails with invalid_argument if the name has other characters than letters,
// digits, '_', '-' and '.'. Also fails if `spec` is itself the name of a TIER: `spec` must contain a path, as
// "posix:/x", "/x" or "./x" do.
Result<void> check_named_tier(std::string_view name, std::string_view spec);

// Joins options to a text: "limit=50MB/s,latency=2ms", with `between` instead of the comma.
std::string options_text(std::span<const OptionWord> words, std::string_view between);

}  // namespace penstock
