// Names for TIERs, such as "fast" for "posix:/dev/shm/p". A name is valid wherever a TIER is expected;
// parse_tier() replaces it. A name wins over a folder of that name, which is written ./fast. Options that the
// user adds win over those of the named TIER: "fast,limit=1GB/s". The user may also give another name:
// "other=fast".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// invalid_argument if the name has other characters than letters, digits, '_', '-' and '.'. Also if `spec` is
// not a TIER by itself ("posix:/x", "/x", "./x").
Result<void> check_named_tier(std::string_view name, std::string_view spec);

// Returns "limit=50MB/s,latency=2ms", with `between` instead of the comma.
std::string options_text(std::span<const OptionWord> words, std::string_view between);

}  // namespace penstock
