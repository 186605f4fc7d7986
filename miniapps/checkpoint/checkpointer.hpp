// Saves the state of a training repeatedly. Checkpoints go to a slow tier, or to a small fast tier from which
// they drain to the slow one while the training continues. An acknowledged level holds, whatever happens
// next:
//   fast     survives the end of the processes (and a power failure, unless the fast tier is volatile)
//   durable  survives a power failure of all machines and the loss of the fast tier
//
// Ranks: open, save, wait and finalize are collective; all ranks share both tiers. Rank 0 commits, drains and
// holds the locks. A thread of rank 0 drains; it calls no Communicator.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/saves.hpp"

namespace penstock {

class Checkpointer {
 public:
  // Collective. `slow` and `fast` must outlive the Checkpointer; without `fast` every save goes to `slow`.
  // Makes missing stores and takes the run's locks (busy: another training or drain holds one). Removes what
  // a dead process left, and starts to drain what is not durable yet.
  // Rank 0 calls `acknowledged` as soon as a level holds, and before save(), wait() or finalize() report that
  // level. Any thread of rank 0 may call it, one at a time. Its error fails the save and all later ones.
  using Acknowledged = std::function<Result<void>(const CheckpointId&, Reached)>;
  static Result<std::unique_ptr<Checkpointer>> open(const CheckpointPolicy& policy, const Tier& slow,
                                                    const Tier* fast, Communicator& ranks,
                                                    Acknowledged acknowledged = {});
  // Stops the drain at its next chunk; the next Checkpointer drains the rest. Finishes a snapshot that is
  // being written, unless a signal asked the process to stop.
  virtual ~Checkpointer() = default;

  // Collective. An error of a background thread is returned by the next save() and by all later ones, which
  // then save nothing. The result has id, reached, skipped, bytes and block_s of this save, on all ranks.
  virtual Result<CheckpointTimes> save(const SaveRequest& request) = 0;

  // Collective. Waits until that checkpoint has reached the level. timed_out; not_found or no_space if it was
  // not saved or was skipped; interrupted; or the error of a background thread.
  virtual Result<void> wait(const CheckpointId& id, Reached level, std::chrono::nanoseconds patience) = 0;

  // Collective. Waits until all saved checkpoints are durable. timed_out after `patience`: the rest stays on
  // the fast tier, for the next Checkpointer or `penstock checkpoint drain`.
  virtual Result<void> finalize(std::chrono::nanoseconds patience) = 0;

  // Only rank 0 has values here. Any thread.
  virtual CheckpointCounts counts() const = 0;
  virtual std::vector<CheckpointTimes> times() const = 0;
  virtual double now_s() const = 0;  // since it was opened: the clock of times()
};

}  // namespace penstock
