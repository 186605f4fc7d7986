// Words that stand for a TIER, wherever one is expected: "fast" for "posix:/dev/shm/p". parse_tier() knows
// them. A name goes before a folder of that name, which is ./fast. What is given besides it wins:
// "fast,limit=1GB/s", "other=fast".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

struct SiteTier {
  std::string name;
  std::string spec;
};

// Set by the main program before a command runs; names are letters, digits, '_', '-' and '.'.
void set_named_tiers(std::vector<SiteTier> tiers);
const std::vector<SiteTier>& named_tiers();

// invalid_argument where the name is none or the text no TIER of its own ("posix:/x", "/x", "./x").
Result<void> check_named_tier(std::string_view name, std::string_view spec);

// parse_tier() of a text that a record holds, which names of today's site files do not change.
Result<TierSpec> parse_recorded_tier(std::string_view text);

// "limit=50MB/s,latency=2ms", with `between` in place of the comma.
std::string options_text(std::span<const OptionWord> words, std::string_view between);

}  // namespace penstock
