// What goes into quarantine, and what becomes of a checkpoint that could not be drained: decided here for the
// thread that drains during a training and for `penstock checkpoint drain`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Puts a committed copy out of the way if `why` says that its bytes are wrong, so that no later look will
// find them better; false where it says anything else: then it stays where it is.
Result<bool> quarantine_if_wrong(CheckpointStore& store, std::string_view run, const CheckpointId& id,
                                 const Error& why);

enum class DrainFate : std::uint8_t {
  later,    // the tiers' trouble, or a copy that went wrong on the way: another try may do
  cleared,  // a wrong copy stood in the way on the slow tier, and is in quarantine now
  taken,    // another checkpoint of that name is there, whole: both stay
  lost,     // the fast copy is wrong: nothing is left to drain
};

struct FailedDrain {
  DrainFate fate = DrainFate::later;
  bool quarantined = false;        // a copy was moved there, on either tier
  Result<void> moved = success();  // why one that should have been was not
  std::string why;                 // what was found wrong, or what copying said

  // Whether no other try can make that checkpoint durable.
  bool lost() const { return fate == DrainFate::lost || fate == DrainFate::taken; }
};

// After copy_checkpoint() from `fast` to `slow` has failed with `error`: reads both copies and moves wrong
// ones to quarantine. The caller holds the run's locks of both.
FailedDrain look_into_failed_drain(CheckpointStore& fast, CheckpointStore& slow,
                                   const CheckpointManifest& manifest, const Error& error);

}  // namespace penstock
