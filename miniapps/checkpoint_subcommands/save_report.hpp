// How one `penstock checkpoint save` ended, and how it prints that.
#pragma once

#include <optional>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/saves.hpp"

namespace penstock {

struct SaveOutcome {
  std::string run;
  Reached reached = Reached::nothing;
  CheckpointTimes times;
  CheckpointCounts counts;
  std::optional<Error> late;  // why it is not durable by --timeout
  double wall_s = 0;          // all that the command did for it
};

// A table, or with --json an object. `fast` may be null.
void report_save(const SaveOutcome& outcome, const Tier& slow, const Tier* fast,
                 const CommandContext& context);

}  // namespace penstock
