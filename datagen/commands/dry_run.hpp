// generate --dry-run: says what would be made, its size, and the least time that making takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "datagen/generate/generation.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// How fast this machine makes a recipe's samples in memory. One thread makes and copies a few of them for
// about a quarter of a second, after a warm-up of the same length. Writes no files.
struct MakingRate {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};
Result<MakingRate> measure_making(const Recipe& recipe);

// The objects that --resume would keep, judged by their sizes.
struct ReusableObjects {
  uint64_t objects = 0;  // objects with samples
  uint64_t samples = 0;
};

// Nothing if no data set like `generation` was started. Checks the size of each object that the journal
// names, or the manifest if the data set is finished. Changes nothing.
Result<std::optional<ReusableObjects>> find_reusable_objects(const Generation& generation, Tier& tier,
                                                             unsigned threads);

// The plan as a table or a JSON line, with a final newline. For a resumed data set, it also says what is
// missing. `refused` is the reason why a real run would fail; "" if it would not.
Result<std::string> describe_plan(const Output& output, const Generation& generation, Tier& tier,
                                  unsigned threads, const std::optional<ReusableObjects>& reusable,
                                  std::string_view refused);

}  // namespace penstock
