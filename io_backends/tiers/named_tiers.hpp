// Words that stand for a TIER, wherever one is expected: "fast" for "posix:/dev/shm/p". parse_tier() takes
// them. A name goes before a folder of that name, which is ./fast. What is given besides it wins:
// "fast,limit=1GB/s", "other=fast".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// invalid_argument where the name has other than letters, digits, '_', '-' and '.', or the text no TIER of
// its own ("posix:/x", "/x", "./x").
Result<void> check_named_tier(std::string_view name, std::string_view spec);

// "limit=50MB/s,latency=2ms", with `between` in place of the comma.
std::string options_text(std::span<const OptionWord> words, std::string_view between);

}  // namespace penstock
