// What became of each checkpoint, and when: written by the thread that saves and by the one that drains.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Any thread.
class CheckpointLedger {
 public:
  explicit CheckpointLedger(Checkpointer::Acknowledged acknowledged)
      : acknowledged_(std::move(acknowledged)) {}

  double now_s() const;

  // Of a save that has started; asked_s is now.
  void asked(const CheckpointId& id, std::uint64_t bytes, double asked_s);
  // Another try of a save has another generation.
  void renamed(const CheckpointId& from, const CheckpointId& to);
  // A level holds: says so to whoever is told, and only then notes it. Its error becomes sticky. Checkpoints
  // of an earlier process have no entry, and get none.
  void reached(const CheckpointId& id, Reached level);
  void blocked(const CheckpointId& id, double block_s);
  void skipped(const CheckpointId& id);
  void drained(const CheckpointId& id, double begin_s, double length_s);

  // Counts, under their lock.
  void count(const std::function<void(CheckpointCounts&)>& change);
  CheckpointCounts counts() const;
  std::vector<CheckpointTimes> times() const;

  // The first error of a background thread: all later calls fail with it.
  void fail(Error error);
  Result<void> failure() const;

 private:
  CheckpointTimes* find(const CheckpointId& id);

  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  const Checkpointer::Acknowledged acknowledged_;
  std::mutex telling_;  // one acknowledgement at a time, in the order in which the levels came to hold
  mutable std::mutex mutex_;
  std::vector<CheckpointTimes> times_;
  CheckpointCounts counts_;
  std::optional<Error> failure_;
};

}  // namespace penstock
