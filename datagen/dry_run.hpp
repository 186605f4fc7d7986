// generate --dry-run: what would be made, how large it is, and how long making it takes at least.
#pragma once

#include <string_view>

#include "datagen/generation.hpp"
#include "io_backends/base/command.hpp"
#include "io_backends/base/result.hpp"
#include "io_backends/base/tier.hpp"

namespace penstock {

// How fast this machine makes a recipe's samples into memory: a few of them, made and copied by one thread
// for about a quarter of a second, after as long a warm-up. Nothing is written anywhere.
struct MakingRate {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};
Result<MakingRate> measure_making(const Recipe& recipe);

// Prints the plan; `refused` says why it would not be carried out, "" if it would.
Result<void> show_plan(const Output& output, const Generation& generation, Tier& tier, unsigned threads,
                       std::string_view refused);

}  // namespace penstock
