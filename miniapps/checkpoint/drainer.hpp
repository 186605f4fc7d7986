// Copies the checkpoints of the fast tier to the slow one, oldest first, on a thread of its own. A
// checkpoint stays on the fast tier until it is durable. The slow tier keeps the newest ones, as many as the
// policy says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/saves.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Its owner holds the run's locks of both stores. A drain that fails because of a tier is tried again after
// growing pauses, and the fast copy stays. A fast copy with wrong bytes goes to quarantine, and the ledger
// fails. Any thread.
class Drainer {
 public:
  Drainer(const CheckpointPolicy& policy, CheckpointStore& fast, CheckpointStore& slow,
          CheckpointLedger& ledger)
      : policy_(policy), fast_(fast), slow_(slow), ledger_(ledger) {}
  ~Drainer();  // ends a copy in progress, of which nothing stays on the slow tier
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  // Lists the checkpoints that earlier processes left, and starts the thread.
  Result<void> begin();

  // Queues a checkpoint that is committed on the fast tier.
  void add(CheckpointManifest manifest);

  // Removes the oldest fast copy that is also on the slow tier; false if there is none. A checkpoint that an
  // earlier process drained may be the last good one until this process has drained one. So its slow copy is
  // read before (with read_back, always). A wrong slow copy goes to quarantine and is drained again from the
  // fast one. If the slow copy cannot be read, the fast one stays.
  Result<bool> evict_one();

  // Bytes of the run on the fast tier.
  std::uint64_t held_bytes() const;

  // Waits until the next drain has ended, with or without success, or until `until`. Returns whether
  // something is left to drain.
  bool wait_for_progress(std::chrono::steady_clock::time_point until);
  bool idle() const;

  // The last error of a drain or of a removal, until a drain succeeds.
  std::optional<Error> trouble() const;

 private:
  void work() noexcept;
  void count_backlog();
  void drain(const CheckpointManifest& next);
  Result<void> tidy(const CheckpointId& newest);
  void failed(const CheckpointManifest& manifest, Error error);
  bool sleep_unless_stopped(std::chrono::nanoseconds length);

  const CheckpointPolicy& policy_;
  CheckpointStore& fast_;
  CheckpointStore& slow_;
  CheckpointLedger& ledger_;
  CopyMemory memory_;  // of the drainer's thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CheckpointManifest> pending_;  // on the fast tier only; the first is being drained
  std::deque<CheckpointManifest> durable_;  // on both tiers, oldest first
  std::size_t found_ = 0;                   // how many of durable_, from the front, earlier processes drained
  bool drained_one_ = false;                // this process has drained one
  std::optional<Error> trouble_;
  std::chrono::nanoseconds pause_{0};
  std::uint64_t ended_ = 0;  // drains that have ended, with or without success
  bool stop_ = false;
  std::atomic<bool> over_{false};  // without the lock, for WorkOn
  std::jthread thread_;            // last: it is joined before what it uses is destroyed
};

}  // namespace penstock
