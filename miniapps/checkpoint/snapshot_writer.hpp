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
#include <thread>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// One for each rank. Its functions are called by one thread, the training's.
class SnapshotWriter {
 public:
  // The writer's thread calls `write`; a signal does not end it (IgnoreInterrupt). If `write` fails with
  // no_space, the copy stays in memory for another try. Any other error, and an exception, goes to `failed`.
  // Once `given_up` is set, `write` must not wait for the parts of other ranks: one of them has none.
  using Write = std::function<Result<void>(const std::atomic<bool>& given_up)>;
  using Failed = std::function<void(Error)>;
  SnapshotWriter(Write write, Failed failed);
  ~SnapshotWriter();  // after a signal it ends a write, else it waits for the write's end
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // make_room(): allocates the memory for a snapshot (exhausted if there is none). take(): copies the bytes
  // to that memory, over the snapshot before, and makes the thread write them; `files` then refer to the
  // copy. Call neither while a snapshot is being written.
  Result<void> make_room(std::span<const FileView> files);
  void take(std::uint64_t step, std::span<FileView> files);

  // Collective. Whether any rank is still writing the last snapshot. A rank that has only written its part
  // learns here and in clear() whether all ranks have.
  Result<bool> busy(Communicator& ranks);
  // Collective. Waits until the last snapshot is written or has failed. True if the tier of any rank had no
  // free space, so that the copies stay in memory. timed_out after `until`; with `interruptible`, also
  // `interrupted` after a signal.
  Result<bool> clear(Communicator& ranks, std::chrono::steady_clock::time_point until, bool interruptible);

  // Waits until this rank writes no snapshot, at most until `until`. Returns whether it writes none.
  bool wait_until_written(std::chrono::steady_clock::time_point until);

  // Gives up the last snapshot: it is not tried again. Not while it is being written.
  void abandon();

 private:
  // full: the tier had no free space, and the copy stays in memory for another try. failed: any other error.
  enum class State : std::uint8_t { free, busy, full, failed };
  struct Reports;

  State wait_while_busy(std::chrono::steady_clock::time_point until);
  Result<Reports> exchange(Communicator& ranks, std::chrono::steady_clock::time_point look_until,
                           std::chrono::steady_clock::time_point until);
  void work() noexcept;

  const Write write_;
  const Failed failed_;
  Buffer memory_;
  std::uint64_t step_ = 0;  // of the last snapshot
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> heed_signals_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::free;
  bool stop_ = false;
  std::jthread thread_;  // last: it is joined before what it uses is destroyed
};

}  // namespace penstock
