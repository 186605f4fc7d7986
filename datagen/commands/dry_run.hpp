// generate --dry-run: says what would be made, how large it would be, and how long making it takes at least.
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

// How fast this machine makes a recipe's samples in memory. One thread makes and copies samples for about a
// quarter of a second, after a warm-up of the same length. No file is written.
struct MakingRate {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};
Result<MakingRate> measure_making(const Recipe& recipe);
// The size of the buffer that measure_making() fills. It is larger than processor caches, because what
// generate makes goes to memory at least, but takes only a part of the memory that is available (0: unknown).
size_t measure_buffer_bytes(uint64_t available_bytes);

// What --resume would keep of a started data set, judged by the sizes of its objects.
struct ReusableObjects {
  uint64_t objects = 0;  // objects that would be kept, without those that have no samples
  uint64_t samples = 0;
};

// Looks for objects that --resume would keep. The result is absent if no data set like `generation` was
// started. Checks the size of each object in the journal, which lists the finished objects of an unfinished
// data set. If the data set is finished, it checks the objects of the manifest. Changes nothing.
Result<std::optional<ReusableObjects>> find_reusable_objects(const Generation& generation, Tier& tier,
                                                             unsigned threads);

// Describes the plan as a table or a JSON line, with a newline at the end. For a resumed data set, it also
// says what is missing. `refused` is the reason why a real run would fail; "" if it would not.
Result<std::string> describe_plan(const Output& output, const Generation& generation, Tier& tier,
                                  unsigned threads, const std::optional<ReusableObjects>& reusable,
                                  std::string_view refused);

}  // namespace penstock
