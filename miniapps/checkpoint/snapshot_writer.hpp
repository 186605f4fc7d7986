// Copies the state of a training to memory, and writes the copy to a tier on its own thread while the
// training continues. This header also has SaveWork: one save as a rank carries it out.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/checkpoint/saves.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// One save without its bytes; by the time they are written, `files` may refer to a copy of them.
struct SaveWork {
  CheckpointId id{};
  std::uint64_t bytes = 0;  // of all ranks together
  std::vector<FileView> files{};
  CheckpointManifest manifest{};                  // on rank 0; all members but `files`
  double asked_s = 0;                             // when save() was called, on the ledger's clock
  std::chrono::steady_clock::time_point until{};  // when to stop waiting for free space

  // The snapshot before this one still uses the memory: skip this one, or write it to the slow tier.
  bool memory_taken = false;
  bool was_full = false;  // the fast tier has just turned out to be full
  bool known = false;     // the ledger already has an entry

  // The destination, which rank 0 decides.
  bool skipped = false;
  bool fast = false;
  std::string folder{};              // of the pending checkpoint on that tier
  std::unique_ptr<Staged> staged{};  // this rank's handle of the pending checkpoint
};

// One for each rank. Its functions are called by one thread, the training's.
class SnapshotWriter {
 public:
  // free: the next snapshot may be taken. A rank that has only written its part learns in clear() whether all
  // ranks have. busy: a snapshot is being written. full: the tier had no free space, and the copy stays in
  // memory for another try. failed: any other error.
  enum class State : std::uint8_t { free, busy, full, failed };

  // The writer's thread calls `write`; a signal does not end it (IgnoreInterrupt). An exception or an error
  // of it, except no_space, goes to `failed`. Once `given_up` is set, `write` must not wait for the parts of
  // other ranks: one of them has none.
  using Write = std::function<Result<void>(SaveWork&, const std::atomic<bool>& given_up)>;
  using Failed = std::function<void(Error)>;
  SnapshotWriter(Write write, Failed failed);
  ~SnapshotWriter();  // after a signal it ends a write, else it waits for the write's end
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // make_room(): allocates the memory for a snapshot (exhausted if there is none). take(): copies the bytes
  // to that memory, over the snapshot before, and makes the thread write them. Call neither while the state
  // is busy.
  Result<void> make_room(const SaveWork& work);
  void take(SaveWork work);

  // Collective. Waits until the last snapshot is written. free: it is written, or it failed. full: the tier
  // had no free space. busy: it is not written yet; only Wait::never returns this. The other waits fail with
  // timed_out after `until`, and until_stopped with `interrupted` after a signal.
  enum class Wait : std::uint8_t { never, until_stopped, through_signals };
  Result<State> clear(Communicator& ranks, std::chrono::steady_clock::time_point until, Wait wait);

  // Waits until the state is not busy, at most until `until`. Returns the state.
  State look(std::chrono::steady_clock::time_point until);

  // The snapshot of the last take(). has_taken() reads only its id and may be called at any time. taken() may
  // be used only while the state is not busy; its files refer to the copy in memory.
  bool has_taken(const CheckpointId& id) const { return taken_ && id_ == id; }
  SaveWork& taken() { return work_; }
  // Gives up the last snapshot: it is not tried again.
  void abandon();

 private:
  void work() noexcept;

  const Write write_;
  const Failed failed_;
  Buffer memory_;
  SaveWork work_;
  CheckpointId id_;
  bool taken_ = false;
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> over_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::free;
  bool stop_ = false;
  std::jthread thread_;  // last: it is joined before what it uses is destroyed
};

}  // namespace penstock
