// Copies the state of a training to memory, and writes the copy to a tier on its own thread while the
// training continues.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Each rank has its own SnapshotWriter. Only the training's thread calls its functions.
class SnapshotWriter {
 public:
  // The writer's thread calls `write`, which a signal does not end (IgnoreInterrupt). If `write` fails with
  // no_space, the copy stays in memory for another try. Any other error, and an exception, is passed to
  // `failed`. Once `given_up` is set, `write` must not wait for the lists of files of other ranks: one of
  // these lists will not come.
  using WritePart = std::function<Result<void>(const std::atomic<bool>& given_up)>;
  using OnFailure = std::function<void(Error)>;
  SnapshotWriter(WritePart write, OnFailure failed);
  ~SnapshotWriter();  // waits until a write has ended; after a signal, ends that write
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // reserve_memory(): allocates the memory for a snapshot (exhausted if there is not enough).
  // copy_and_write(): copies the bytes to that memory, in place of the last snapshot, and makes the thread
  // write them; `files` then refer to the copy. Call neither while a snapshot is being written.
  Result<void> reserve_memory(std::span<const FileView> files);
  void copy_and_write(uint64_t step, std::span<FileView> files);

  // Collective. Whether any rank is still writing the last snapshot. Only this function and
  // wait_for_all_ranks() tell a rank whether the others have written their parts.
  Result<bool> any_rank_busy(Communicator& ranks);
  // Collective. Waits until the last snapshot is written or has failed. True if the tier of any rank had no
  // free space and no rank failed otherwise: the copies then stay in memory. timed_out after `until`; with
  // `interruptible`, also `interrupted` after a signal.
  Result<bool> wait_for_all_ranks(Communicator& ranks, std::chrono::steady_clock::time_point until,
                                  bool interruptible);

  // Waits until this rank's snapshot is written or has failed, at most until `until`. False if it is still
  // being written.
  bool wait_until_written(std::chrono::steady_clock::time_point until);

  // Why the tier of this rank's snapshot had no free space; "" if it had. Do not call it while the
  // snapshot is being written.
  std::string full_reason() const { return full_reason_; }

  // Gives up the last snapshot: its write is not tried again. Do not call it while the snapshot is being
  // written.
  void abandon();

 private:
  // full: the tier had no free space, and the copy stays in memory for another try. failed: any other error.
  enum class State : uint8_t { free, busy, full, failed };
  struct Reports;

  State wait_while_busy(std::chrono::steady_clock::time_point until);
  Result<Reports> exchange(Communicator& ranks, std::chrono::steady_clock::time_point poll_until,
                           std::chrono::steady_clock::time_point until);
  void write_loop() noexcept;

  const WritePart write_;
  const OnFailure on_failure_;
  Buffer memory_;
  uint64_t step_ = 0;  // step of the last snapshot, for messages
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> heed_signals_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::free;
  std::string full_reason_;
  bool stop_ = false;
  std::jthread thread_;  // last: it is joined before what it uses is destroyed
};

}  // namespace penstock
