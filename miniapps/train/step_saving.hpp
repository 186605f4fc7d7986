// --checkpoint-every and what goes with it: how a training saves its state every N steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/checkpoint/saves.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct StepSaving {
  std::uint64_t every = 1;  // steps of the whole run, from its first
  Tier slow;
  std::optional<Tier> fast;
  CheckpointPolicy policy;
  Payload payload;
  std::string ack_log;                                     // "" for none
  std::chrono::nanoseconds grace{0};                       // to drain in, once a signal has come
  std::chrono::nanoseconds mtbf = std::chrono::hours(24);  // from one failure to the next, for advice
  bool resume = false;
};

// Nothing where --checkpoint-every is not given. invalid_argument where it, or what goes with it, lacks its
// companion, and for words that are none.
Result<std::optional<StepSaving>> step_saving(const Options& options, NamedTiers named);

struct TrainRequest;

// Takes what is saved into the request: every N steps, or, of an app that has checkpoints of its own, after
// every epoch.
Result<void> take_checkpoints(const Options& options, TrainRequest& request);

// Its parameters of the record, as understood.
void describe_saving(const StepSaving& saving, Trial& trial);

}  // namespace penstock
