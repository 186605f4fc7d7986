// generate --dry-run: what would be made, how large it is, and how long making it takes at least.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "datagen/generate/generation.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// How fast this machine makes a recipe's samples into memory: a few of them, made and copied by one thread
// for about a quarter of a second, after as long a warm-up. Nothing is written anywhere.
struct MakingRate {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};
Result<MakingRate> measure_making(const Recipe& recipe);

// What --resume finds, as far as a look at the sizes of objects tells.
struct Kept {
  std::uint64_t objects = 0;  // with samples
  std::uint64_t samples = 0;
};

// Nothing where no data set like `generation` was started. Looks at each object that the journal, or of a
// finished one the manifest, names; changes nothing.
Result<std::optional<Kept>> inspect_kept_objects(const Generation& generation, Tier& tier, unsigned threads);

// Prints the plan, and of one that goes on, what is left of it; `refused` says why it would not be carried
// out, "" if it would.
Result<void> show_plan(const Output& output, const Generation& generation, Tier& tier, unsigned threads,
                       const std::optional<Kept>& kept, std::string_view refused);

}  // namespace penstock
