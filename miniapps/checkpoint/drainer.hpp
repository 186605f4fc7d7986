// Carries what the fast tier holds to the slow one, oldest first, on a thread of its own; keeps on the fast
// tier what is not durable, and on the slow one as many as are to be kept.
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
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/ledger.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Whoever makes it holds the run's locks of both stores. A drain that fails for the tiers' sake is tried
// again, later and later, with the fast copy kept; a fast copy that is found wrong goes to quarantine and is
// the ledger's failure. Any thread.
class Drainer {
 public:
  Drainer(const CheckpointPolicy& policy, CheckpointStore& fast, CheckpointStore& slow,
          CheckpointLedger& ledger)
      : policy_(policy), fast_(fast), slow_(slow), ledger_(ledger) {}
  ~Drainer();  // ends the copy under way, which leaves nothing of itself
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  // What earlier processes left is looked at, and the thread begins.
  Result<void> begin();

  // Committed on the fast tier: to be drained.
  void add(CheckpointManifest manifest);

  // Removes the oldest copy that the slow tier has, too; false where there is none. As long as nothing newer
  // has been drained here, what an earlier process drained may be the last good one: its slow copy is read
  // first (with read_back, always). One that is wrong goes to quarantine, and is drained anew from the fast
  // one; one that cannot be read keeps it.
  Result<bool> evict_one();

  // Bytes of the run on the fast tier, and those of them that are not durable.
  struct Held {
    std::uint64_t bytes = 0;
    std::uint64_t backlog = 0;
  };
  Held held() const;

  // Until the next drain has ended, well or not, or until then; whether something is left to drain.
  bool wait_for_progress(std::chrono::steady_clock::time_point until);
  bool idle() const;

  // What the last drain that failed said, where none has succeeded since.
  std::optional<Error> trouble() const;

 private:
  void work() noexcept;
  void drain(const CheckpointManifest& next);
  Result<void> tidy(const CheckpointId& newest);
  void failed(const CheckpointManifest& manifest, Error error);
  bool sleep_unless_stopped(std::chrono::nanoseconds length);

  const CheckpointPolicy& policy_;
  CheckpointStore& fast_;
  CheckpointStore& slow_;
  CheckpointLedger& ledger_;
  CopyMemory memory_;  // of the thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CheckpointManifest> pending_;  // the first may be on its way
  std::deque<CheckpointManifest> durable_;  // on the fast tier and on the slow one, oldest first
  std::size_t found_ = 0;                   // of durable_, the first: those of earlier processes
  bool drained_one_ = false;                // by this one
  std::optional<Error> trouble_;
  std::chrono::nanoseconds pause_{0};
  std::uint64_t ended_ = 0;  // drains, well or not
  bool stop_ = false;
  std::atomic<bool> over_{false};
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace penstock
