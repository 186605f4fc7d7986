// For whoever waits until the checkpoints of a Checkpointer are durable: whether their drain still makes
// progress, and the command that drains what is left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Used on rank 0, by one thread. `saver` and the tiers must outlive it; `fast` is null if there is no fast
// tier.
class DrainProgress {
 public:
  DrainProgress(const Checkpointer& saver, const Tier& slow, const Tier* fast);

  // The time since the last progress, or since the constructor. A drained checkpoint is progress. Bytes that
  // are written to a tier or read from it are progress, too: a snapshot that is written, a drain, its
  // --read-back. They are none after a drain has failed, until a checkpoint is drained: the next try moves
  // all bytes again.
  std::chrono::nanoseconds stalled_for();

 private:
  const Checkpointer& saver_;
  const Tier& slow_;
  const Tier* const fast_;
  std::chrono::steady_clock::time_point last_progress_ = std::chrono::steady_clock::now();
  uint64_t moved_bytes_;  // written to the tiers and read from them, at the previous call of stalled_for()
  uint64_t drained_;      // drained checkpoints, at the previous call of stalled_for()
  uint64_t failures_;     // failed drains when a checkpoint was last drained
};

// The command that drains what is left on the fast tier.
std::string drain_command(const Tier& fast, const Tier& slow, std::string_view run);

}  // namespace penstock
