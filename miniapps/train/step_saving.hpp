// Parses --checkpoint-every and its flags: how a training saves its state every N steps, and how it continues
// from a saved state.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

class StepCheckpoints;  // step_checkpoints.hpp

// The checkpoint from which an interrupted training continues.
struct Resumed {
  CheckpointManifest manifest;
  std::string tier;        // the tier that it was read from
  double find_s = 0;       // seconds to find it, for which rank 0 reads it whole
  double restore_s = 0;    // seconds until every rank had read and proven its part
  nlohmann::json restart;  // for the record, from restart_json()

  PlanStart start() const;
};

struct StepSaving {
  uint64_t every_steps = 1;  // saves after this many steps, counted in the whole run
  Tier slow;
  std::optional<Tier> fast;
  CheckpointPolicy policy;
  Payload payload;
  std::string ack_log;                // "" for none
  std::chrono::nanoseconds grace{0};  // time for the drain after a signal
  // Mean time between failures, for the advice in the record.
  std::chrono::nanoseconds mtbf = std::chrono::hours(24);
  bool resume = false;

  std::optional<Resumed> resumed{};  // set by find_run() with --resume
  // Set by open_checkpoints(). The checkpoints borrow this StepSaving.
  std::shared_ptr<StepCheckpoints> checkpoints{};
};

// Empty without --checkpoint-every. invalid_argument if one of the flags needs another one that is missing,
// or has an impossible value.
Result<std::optional<StepSaving>> step_saving(const Options& options, NamedTiers named);

struct TrainRequest;

// Parses the checkpoint flags into the request: saves every N steps, or after every epoch for an app with its
// own checkpoints.
Result<void> take_checkpoints(const Options& options, TrainRequest& request);

// Adds the parsed settings to the record's parameters. With --resume also where the run continues, and the
// times of the restart.
void describe_saving(const StepSaving& saving, Trial& trial);

}  // namespace penstock
