// Parses --checkpoint-every and its flags: how a training saves its state every N steps, and how it continues
// from a saved state.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io_backends/core/json.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

class StepCheckpoints;  // defined in step_checkpoints.hpp

// The checkpoint from which an interrupted training continues.
struct ResumePoint {
  CheckpointManifest manifest;
  std::string tier;      // the tier that the checkpoint was read from
  double find_s = 0;     // seconds until rank 0 had found it and had read all its files
  double restore_s = 0;  // seconds until every rank had also read and checked its files
  // Steps up to this checkpoint that no checkpoint on the slow tier contained; only on rank 0.
  uint64_t unsaved_on_slow_steps = 0;
  Json restart;  // how the checkpoint was chosen, for the record: the result of restart_json()

  PlanStart start() const;
};

struct StepSaving {
  uint64_t every_steps = 1;  // number of steps between two saves, counted in the whole run
  Tier slow;
  std::optional<Tier> fast;
  CheckpointPolicy policy;
  Payload payload;
  std::string ack_log;                // "" for none
  std::chrono::nanoseconds grace{0};  // after a signal, drain() may wait for this long
  // The mean time between failures, from which the advice how often to save is calculated.
  std::chrono::nanoseconds mtbf = std::chrono::hours(24);
  bool resume = false;

  std::optional<ResumePoint> resumed{};  // set by find_run() with --resume
  // Set by open_checkpoints(). The StepCheckpoints borrow this StepSaving.
  std::shared_ptr<StepCheckpoints> checkpoints{};
};

// Parses the flags. The result is empty without --checkpoint-every. invalid_argument if a flag has an
// impossible value, or needs another flag that is missing.
Result<std::optional<StepSaving>> step_saving(const Options& options, NamedTiers named);

struct TrainRequest;

// Parses the checkpoint flags into the request: --checkpoint-every saves every N steps; without it, an app
// with checkpoints of its own saves after every epoch.
Result<void> take_checkpoints(const Options& options, TrainRequest& request);

// Adds the parsed settings to the record's parameters. With --resume it also adds where the run continues and
// how long the restart took.
void describe_saving(const StepSaving& saving, Trial& trial);

}  // namespace penstock
