// The outcome of one `penstock checkpoint save`, and how it is printed.
#pragma once

#include <optional>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

struct SaveOutcome {
  std::string run;
  CheckpointTimes times;  // `reached` is the level when the wait ended
  CheckpointCounts counts;
  std::optional<Error> timeout_error;  // set if the wait ended before the checkpoint was durable
  double wall_s = 0;                   // from the start of save() to the end of the wait
};

// Prints a table or, with --json, an object. `fast` may be null.
void report_save(const SaveOutcome& outcome, const Tier& slow, const Tier* fast,
                 const CommandContext& context);

}  // namespace penstock
