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

  // The time since the last progress, or since the constructor. A drained checkpoint is progress. So are
  // bytes that rank 0 writes to a tier or reads from it: a snapshot, a drain, its --read-back. They are no
  // progress where the same bytes are moved again and again: after a drain has failed, until a checkpoint is
  // drained; and on the fast tier while a save waits for free space there.
  std::chrono::nanoseconds stalled_for();

 private:
  const Checkpointer& saver_;
  const Tier& slow_;
  const Tier* const fast_;
  std::chrono::steady_clock::time_point last_progress_ = std::chrono::steady_clock::now();
  // At the previous call of stalled_for(): bytes written to a tier and read from it, drained checkpoints,
  // waits.
  uint64_t slow_bytes_;
  uint64_t fast_bytes_;
  uint64_t drained_;
  uint64_t space_waits_;
  uint64_t failures_;  // failed drains when a checkpoint was last drained
};

// The command that drains what is left on the fast tier.
std::string drain_command(const Tier& fast, const Tier& slow, std::string_view run);

}  // namespace penstock
