// Saves the state of a training again and again: to a slow tier, or to a small fast one from which it drains
// to the slow one while the training goes on. What it has acknowledged holds, whatever happens next:
//   fast     survives the processes' end (and the node's, where the fast tier is not volatile)
//   durable  survives a power cut of everything and the loss of the fast tier
//
// Ranks: open, save, wait and finalize are collective; all ranks share both tiers. Rank 0 commits, drains and
// keeps the locks. A thread of rank 0 drains, which calls no Communicator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"

namespace penstock {

enum class Reached : std::uint8_t { nothing, fast, durable };
std::string_view reached_name(Reached level);

// What to do where the fast tier has no room: wait for the drain, leave this checkpoint out, or write it to
// the slow tier at once. A checkpoint that is larger than the fast tier: to the slow tier, or an error.
enum class OnFull : std::uint8_t { block, skip, writethrough };
enum class Oversize : std::uint8_t { writethrough, fail };
// By the words of --on-full and --oversize, which the options' tables have checked.
constexpr OnFull on_full_of(std::string_view word) {
  if (word == "skip") return OnFull::skip;
  return word == "writethrough" ? OnFull::writethrough : OnFull::block;
}
constexpr Oversize oversize_of(std::string_view word) {
  return word == "fail" ? Oversize::fail : Oversize::writethrough;
}

struct CheckpointPolicy {
  std::string run = "default";
  std::uint64_t keep = 2;       // durable ones on the slow tier, the newest included; at least 2 unless all
                                // are verified anew before one goes
  std::uint64_t keep_fast = 1;  // durable ones that stay on the fast tier until their room is wanted
  OnFull on_full = OnFull::block;
  std::chrono::nanoseconds block_for = std::chrono::minutes(10);  // then the save fails: timed_out
  Oversize oversize = Oversize::writethrough;
  std::uint64_t headroom = 0;  // bytes of the fast tier that stay free
  std::uint64_t quota = 0;     // bytes that this run may have on the fast tier; 0: all
  bool read_back = false;      // drained copies are read again before they count
  bool snapshot = false;       // save() copies to memory and returns; a thread writes
  std::chrono::nanoseconds retry_after = std::chrono::seconds(1);  // of a drain that failed; doubles to 30 s
};

struct FileView {
  std::string name;
  std::span<const std::byte> bytes;
};

// What this rank saves. Its bytes may change as soon as save() has returned.
struct SaveRequest {
  std::uint64_t step = 0;
  std::vector<FileView> files{};
  TrainerState trainer{};
  std::string payload{};
  std::uint64_t payload_seed = 0;
};

// Times in seconds since the Checkpointer was opened; of rank 0, which for block_s takes the slowest rank's.
struct CheckpointTimes {
  CheckpointId id{};
  std::uint64_t bytes = 0;
  double asked_s = 0;              // save() was called
  double block_s = 0;              // how long it held the training
  std::optional<double> fast_s{};  // from asked_s until acknowledged at that level
  std::optional<double> durable_s{};
  std::optional<double> drain_begin_s{};  // absolute, of the attempt that succeeded
  std::optional<double> drain_s{};        // its length
  bool skipped = false;
};

struct CheckpointCounts {
  std::uint64_t saves = 0, skips = 0, written_through = 0, drained = 0, drain_failures = 0, evicted = 0,
                pruned = 0, quarantined = 0;
  std::uint64_t backlog_bytes = 0, backlog_most = 0;  // on the fast tier and not durable
};

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
