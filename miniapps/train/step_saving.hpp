// Parses --checkpoint-every and its flags: how a training saves its state every N steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct StepSaving {
  std::uint64_t every = 1;  // counts the steps of the whole run
  Tier slow;
  std::optional<Tier> fast;
  CheckpointPolicy policy;
  Payload payload;
  std::string ack_log;                // "" for none
  std::chrono::nanoseconds grace{0};  // time for the drain after a signal
  // Mean time between failures, for the advice in the record.
  std::chrono::nanoseconds mtbf = std::chrono::hours(24);
  bool resume = false;
};

// Empty without --checkpoint-every. invalid_argument if one of the flags needs another one that is missing,
// or has an impossible value.
Result<std::optional<StepSaving>> step_saving(const Options& options, NamedTiers named);

struct TrainRequest;

// Parses the checkpoint flags into the request: saves every N steps, or after every epoch for an app with its
// own checkpoints.
Result<void> take_checkpoints(const Options& options, TrainRequest& request);

// Adds the understood settings to the record's parameters.
void describe_saving(const StepSaving& saving, Trial& trial);

}  // namespace penstock
