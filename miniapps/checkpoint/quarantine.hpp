// Decides what goes into quarantine, and what happens after a drain has failed. Used by the thread that
// drains during a training and by `penstock checkpoint drain`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Moves a committed copy to quarantine if `why` means that its bytes are wrong, so that reading them again
// cannot help. Returns false for any other error; the copy then stays in ckpt/.
Result<bool> quarantine_if_wrong(CheckpointStore& store, std::string_view run, const CheckpointId& id,
                                 const Error& why);

enum class DrainFate : uint8_t {
  try_again,         // a tier failed, or the copy was damaged on the way: another try may succeed
  slow_quarantined,  // a wrong copy was in ckpt/ of the slow tier, and is in quarantine now
  name_taken,        // the slow tier has a different valid checkpoint with this name: both stay
  fast_wrong,        // the fast copy has wrong bytes, so nothing is left to drain
};

struct FailedDrain {
  DrainFate fate = DrainFate::try_again;
  bool quarantined = false;        // a copy was moved to quarantine, on either tier
  Result<void> moved = success();  // an error if a wrong copy could not be moved to quarantine
  std::string why;                 // what is wrong with the quarantined copy; else the drain's error

  // Whether the checkpoint can never become durable.
  bool is_lost() const { return fate == DrainFate::fast_wrong || fate == DrainFate::name_taken; }
};

// Finds out why copy_checkpoint() from `fast` to `slow` has failed with `error`. Reads the copy that may be
// wrong, and moves it to quarantine if its bytes are wrong. The caller holds the run's locks of both stores.
FailedDrain look_into_failed_drain(CheckpointStore& fast, CheckpointStore& slow,
                                   const CheckpointManifest& manifest, const Error& error);

}  // namespace penstock
