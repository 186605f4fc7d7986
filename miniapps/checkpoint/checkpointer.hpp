// Saves the state of a training again and again: to a slow tier, or to a small fast one from which it drains
// to the slow one while the training goes on. What it has acknowledged holds, whatever happens next:
//   fast     survives the processes' end (and the node's, where the fast tier is not volatile)
//   durable  survives a power cut of everything and the loss of the fast tier
//
// Ranks: open, save, wait and finalize are collective; all ranks share both tiers. Rank 0 commits, drains and
// keeps the locks. A thread of rank 0 drains, which calls no Communicator.
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

struct Saved {
  CheckpointId id;
  Reached reached = Reached::nothing;  // when save() returned; nothing: skipped, or on its way from memory
  bool skipped = false;
};

class Checkpointer {
 public:
  // Collective. `slow` and `fast` (null: every save goes to `slow`) outlive it. Makes the stores where they
  // are not, takes the run's locks (busy: another training or drain has them), sweeps what a dead one left,
  // and begins to drain what is not yet durable. `acknowledged` is called by rank 0 on whatever thread, one
  // at a time, as soon as a level holds and before anybody who waits hears of it; its error is as the save's.
  using Acknowledged = std::function<Result<void>(const CheckpointId&, Reached)>;
  static Result<std::unique_ptr<Checkpointer>> open(const CheckpointPolicy& policy, const Tier& slow,
                                                    const Tier* fast, Communicator& ranks,
                                                    Acknowledged acknowledged = {});
  virtual ~Checkpointer() = default;  // stops as soon as it can; what is not drained stays for the next one

  // Collective. What went wrong in the background since the last call is this call's error, once and for all:
  // nothing more is saved then.
  virtual Result<Saved> save(const SaveRequest& request) = 0;

  // Collective: until that checkpoint has the level. timed_out; or what went wrong.
  virtual Result<void> wait(const CheckpointId& id, Reached level, std::chrono::nanoseconds patience) = 0;

  // Collective: until all that was saved is durable. timed_out where it is not by then: what is left
  // stays on the fast tier, for the next one or `penstock checkpoint drain`.
  virtual Result<void> finalize(std::chrono::nanoseconds patience) = 0;

  // Rank 0's; the others have none. Any thread.
  virtual CheckpointCounts counts() const = 0;
  virtual std::vector<CheckpointTimes> times() const = 0;
  virtual double now_s() const = 0;  // since it was opened: what times() count from
};

}  // namespace penstock
