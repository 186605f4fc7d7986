// Copies the checkpoints of the fast tier to the slow one, oldest first, on its own thread. A checkpoint
// stays on the fast tier until it is durable. The slow tier keeps the newest checkpoints; the policy says how
// many. This header also has the ledger of a run's checkpoints.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/copy_checkpoint.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// The times of each checkpoint of a run, and the run's counts. The threads that save, write snapshots and
// drain record them here. Any thread may call these functions.
class CheckpointLedger {
 public:
  explicit CheckpointLedger(Checkpointer::OnReached on_reached) : on_reached_(std::move(on_reached)) {}

  double now_s() const;

  // Adds a save that has just started, at save_begin_s.
  void add_save(const CheckpointId& id, uint64_t bytes, double save_begin_s);
  // Gives the entry of a save a new id, because the save is tried again with another generation.
  void rename(const CheckpointId& from, const CheckpointId& to);
  // Records that the checkpoint has reached a level. First calls on_reached, then records the time. An error
  // of on_reached goes to record_failure(). A checkpoint of an earlier process has no entry; only on_reached
  // is then called.
  void record_level(const CheckpointId& id, Reached level);
  void record_block_time(const CheckpointId& id, double block_s);
  void record_skip(const CheckpointId& id);
  void record_drain(const CheckpointId& id, double begin_s, double length_s);

  // Calls `change` with the counts, and holds mutex_ during that call.
  void set_counts(const std::function<void(CheckpointCounts&)>& change);
  CheckpointCounts counts() const;
  std::vector<CheckpointTimes> times() const;

  // Keeps the first error; all later calls of save(), wait() and finalize() fail with it.
  void record_failure(Error error);
  Result<void> failure() const;

 private:
  CheckpointTimes* find(const CheckpointId& id);

  const std::chrono::steady_clock::time_point opened_at_ = std::chrono::steady_clock::now();
  const Checkpointer::OnReached on_reached_;
  // Held while on_reached_ runs, so its calls come one at a time, in the order in which the levels were
  // reached.
  std::mutex acknowledge_mutex_;
  mutable std::mutex mutex_;
  std::vector<CheckpointTimes> times_;
  CheckpointCounts counts_;
  std::optional<Error> failure_;
};

// Drains the checkpoints of a run on a thread of its own. If a tier causes a drain to fail, the drain is
// tried again after growing pauses, and the fast copy stays. If the fast copy has wrong bytes, it goes to
// quarantine, and the ledger records the failure. The ledger also records a failure if the slow tier has
// another checkpoint of the same name. The caller holds the run's locks of both stores. After begin(), any
// thread may call these functions.
class Drainer {
 public:
  Drainer(const CheckpointPolicy& policy, CheckpointStore& fast, CheckpointStore& slow,
          CheckpointLedger& ledger)
      : policy_(policy), fast_(fast), slow_(slow), ledger_(ledger) {}
  ~Drainer();  // ends a copy in progress and removes it from the slow tier
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  // Lists the checkpoints that earlier processes left, and starts the thread.
  Result<void> begin();

  // Queues a checkpoint that is committed on the fast tier.
  void add(CheckpointManifest manifest);

  // Removes the oldest fast copy that is also on the slow tier; false if there is none. If an earlier process
  // drained that checkpoint, its slow copy is read first, since the fast copy may be the last good one. This
  // read is omitted once this process has drained a checkpoint itself, unless read_back is set. A wrong slow
  // copy goes to quarantine, and the checkpoint is drained again. If the slow copy cannot be read, the fast
  // one stays, and the result is false.
  Result<bool> evict_one();

  // Bytes of the run on the fast tier.
  uint64_t held_bytes() const;

  // Waits until the next drain has ended, with or without success, or until `until`.
  void wait_for_next_drain(std::chrono::steady_clock::time_point until);
  // Whether nothing is left to drain.
  bool is_idle() const;
  // Waits until nothing is left to drain. Errors: timed_out after `until`, or the ledger's failure().
  Result<void> wait_until_idle(std::chrono::steady_clock::time_point until);

  // The last error of a drain or of a removal, as text for the end of a message. "" after a drain that
  // succeeded.
  std::string last_error_text() const;

 private:
  void drain_loop() noexcept;
  void count_backlog();
  void drain(const CheckpointManifest& next);
  Result<void> remove_old_copies(const CheckpointId& newest);
  void handle_failure(const CheckpointManifest& manifest, Error error);
  bool sleep_unless_stopped(std::chrono::nanoseconds length);

  const CheckpointPolicy& policy_;
  CheckpointStore& fast_;
  CheckpointStore& slow_;
  CheckpointLedger& ledger_;
  CopyMemory memory_;  // used by the drainer's thread alone

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CheckpointManifest> pending_;  // on the fast tier only; the first one is being drained
  std::deque<CheckpointManifest> durable_;  // on both tiers, oldest first
  // How many of the first entries of durable_ were drained by earlier processes.
  size_t drained_earlier_ = 0;
  bool drained_one_ = false;  // whether this process has drained a checkpoint
  std::optional<Error> last_error_;
  std::chrono::nanoseconds retry_pause_{0};
  uint64_t ended_drains_ = 0;  // drains that have ended, with or without success
  bool stop_ = false;
  std::atomic<bool> heed_signals_{false};  // IgnoreInterrupt reads it without the lock
  std::jthread thread_;                    // last: it is joined before what it uses is destroyed
};

}  // namespace penstock
