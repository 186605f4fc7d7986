// Saves the state of a training repeatedly. Checkpoints go to a slow tier, or to a small fast tier from which
// they drain to the slow one while the training continues. What an acknowledged level guarantees:
//   fast     the checkpoint survives the end of the processes (and a power failure, unless the fast tier is
//            volatile)
//   durable  the checkpoint survives a power failure of all machines and the loss of the fast tier
//
// Ranks: open, save, wait and finalize are collective; all ranks share both tiers. Rank 0 commits, drains and
// holds the locks. The thread of rank 0 that drains makes no collective call.
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

enum class Reached : uint8_t { nothing, fast, durable };
constexpr std::string_view reached_name(Reached level) {
  constexpr std::string_view kNames[] = {"nothing", "fast", "durable"};
  return kNames[size_t(level)];
}

// What save() does if the fast tier has no free space: wait for the drain, skip this checkpoint, or write it
// to the slow tier at once.
enum class OnFull : uint8_t { block, skip, writethrough };
// Converts the value of --on-full, which the option tables have already checked.
constexpr OnFull on_full_of(std::string_view word) {
  if (word == "skip") return OnFull::skip;
  return word == "writethrough" ? OnFull::writethrough : OnFull::block;
}

struct CheckpointPolicy {
  std::string run = "default";
  // The number of durable checkpoints that stay on the slow tier, the newest included. With 1, the newest is
  // read completely and checked before an older one is removed.
  uint64_t keep_on_slow = 2;
  uint64_t keep_on_fast = 1;  // durable checkpoints that stay on the fast tier until their space is needed
  OnFull on_full = OnFull::block;
  std::chrono::nanoseconds block_for = std::chrono::minutes(10);  // longest wait for space, then timed_out
  // What save() does with a checkpoint that is larger than the whole fast tier. true: fails with no_space.
  // false: writes it to the slow tier.
  bool fail_oversize = false;
  uint64_t headroom = 0;     // bytes of the fast tier that must stay free
  uint64_t quota = 0;        // most bytes of this run on the fast tier; 0: no limit
  bool read_back = false;    // a drain reads and checks its copy before it commits the copy
  bool by_snapshot = false;  // save() copies to memory and returns; a thread writes the copy
  // Called with a warning that does not fail the save: for example, that older checkpoints could not be
  // removed, or that a drain failed for the first time since the last one that succeeded. Any thread of rank
  // 0 may call it.
  std::function<void(std::string_view)> log{};
  // The pause after a failed drain. It doubles after each further failure, up to 30 s.
  std::chrono::nanoseconds retry_after = std::chrono::seconds(1);
};

struct FileView {
  std::string name;
  std::span<const std::byte> bytes;
};

// What this rank saves. The caller may change the bytes as soon as save() has returned.
struct SaveRequest {
  uint64_t step = 0;
  std::vector<FileView> files{};
  TrainerState trainer{};
  std::string payload{};      // the payload that made the bytes, by its name; "": they are a user's own files
  uint64_t payload_seed = 0;  // the seed from which the payload's bytes were made
};

// The result of one save, and how long it took, in seconds. Rank 0 measures the times; block_s is the maximum
// over all ranks. save_begin_s and drain_begin_s count from the opening of the Checkpointer.
struct CheckpointTimes {
  CheckpointId id{};
  uint64_t bytes = 0;
  double save_begin_s = 0;         // when save() was called
  double block_s = 0;              // how long save() blocked the training
  std::optional<double> fast_s{};  // from save_begin_s until level fast is acknowledged
  std::optional<double> durable_s{};
  std::optional<double> drain_begin_s{};  // when the drain that succeeded began
  std::optional<double> drain_s{};        // how long that drain took
  Reached reached = Reached::nothing;     // nothing: skipped, or still in memory
  bool skipped = false;
};

struct CheckpointCounts {
  uint64_t saves = 0, skips = 0, written_through = 0, drained = 0, drain_failures = 0, evicted = 0,
           pruned = 0, quarantined = 0;
  uint64_t space_waits = 0;  // how often a save found the fast tier full and waited a moment
  // Bytes on the fast tier that are not durable yet: now, and the maximum so far.
  uint64_t backlog_bytes = 0, most_backlog_bytes = 0;
};

class Checkpointer {
 public:
  // Collective. Opens the stores of the run, makes them if they are missing, and takes the run's locks (busy:
  // another training, a drain or gc holds one). Removes what a dead process left, and starts to drain what is
  // not durable yet. `slow` and `fast` must outlive the Checkpointer; without `fast` every save goes to
  // `slow`. `on_reached`: rank 0 calls it as soon as a checkpoint has reached a level, and before save(),
  // wait() or finalize() report that level. Any thread of rank 0 may call it, but only one at a time. If it
  // returns an error, all later calls of save(), wait() and finalize() fail with that error.
  using OnReached = std::function<Result<void>(const CheckpointId&, Reached)>;
  static Result<std::unique_ptr<Checkpointer>> open(const CheckpointPolicy& policy, const Tier& slow,
                                                    const Tier* fast, Communicator& ranks,
                                                    OnReached on_reached = {});
  // Stops the drain at its next chunk; the next Checkpointer drains the rest. Finishes a snapshot that is
  // being written, unless a signal asked the process to stop.
  virtual ~Checkpointer() = default;

  // Collective. Saves one checkpoint. If a background thread has failed, the next save() and all later ones
  // save nothing and return its error. The result has id, reached, skipped, bytes and block_s of this save,
  // on all ranks.
  virtual Result<CheckpointTimes> save(const SaveRequest& request) = 0;

  // Collective. Waits until the checkpoint `id` has reached the level. Errors: timed_out; not_found if it was
  // not saved; no_space if it was skipped; interrupted; or the error of a background thread.
  virtual Result<void> wait(const CheckpointId& id, Reached level, std::chrono::nanoseconds patience) = 0;

  // Collective. Waits until all saved checkpoints are durable. timed_out after `patience`: checkpoints that
  // are not durable by then stay on the fast tier, for the next Checkpointer or `penstock checkpoint drain`.
  virtual Result<void> finalize(std::chrono::nanoseconds patience) = 0;

  // Any thread may call these three functions. On ranks other than 0, counts and times are empty.
  virtual CheckpointCounts counts() const = 0;
  virtual std::vector<CheckpointTimes> times() const = 0;
  virtual double now_s() const = 0;  // seconds since open(), on the clock of times()
};

}  // namespace penstock
