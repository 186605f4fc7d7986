// One save as a rank carries it out; and a copy of the training's state in memory, with the thread that
// writes it on while the training goes on.
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

// What a save is of, without its bytes: these may be elsewhere by the time they are written.
struct SaveWork {
  CheckpointId id{};
  std::uint64_t bytes = 0;  // over all ranks
  std::vector<FileView> files{};
  CheckpointManifest manifest{};                  // of rank 0: all but the files
  double asked_s = 0;                             // when it was asked for, by the ledger's clock
  std::chrono::steady_clock::time_point until{};  // when waiting for room ends

  bool memory_taken = false;  // by the snapshot before it: skipped, or to the slow tier at once
  bool was_full = false;      // the fast tier has just turned out to have no room
  bool known = false;         // the ledger has it already

  // Where it goes, as rank 0 decided.
  bool skipped = false;
  bool fast = false;
  std::string folder{};              // in the making, on that tier
  std::unique_ptr<Staged> staged{};  // this rank's hold of it
};

// Of one rank. One thread.
class SnapshotWriter {
 public:
  // free: the next one may be taken; of a rank that has only written its part, it is known later whether all
  // have. busy: being written. full: the tier had no room, and the copy is kept for another try. failed.
  enum class State : std::uint8_t { free, busy, full, failed };

  // `write` is called on the thread, through a signal too (WorkOn); what it throws or says beyond no_space
  // goes to `failed`. Once `given_up` is set, waiting for other ranks' parts is of no use: one has none.
  using Write = std::function<Result<void>(SaveWork&, const std::atomic<bool>& given_up)>;
  using Failed = std::function<void(Error)>;
  SnapshotWriter(Write write, Failed failed);
  ~SnapshotWriter();  // ends what it writes where we were asked to stop, else when it is written
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Memory for it (exhausted: there is none), and then its bytes, which the thread begins to write; the last
  // one is forgotten. Not while busy.
  Result<void> make_room(const SaveWork& work);
  void take(SaveWork work);

  // Collective. Waits until the thread has written the last snapshot. free: it has, or it failed. full: it
  // had no room. busy: only where `wait` is never; else it is timed_out, or with until_stopped interrupted.
  enum class Wait : std::uint8_t { never, until_stopped, through_signals };
  Result<State> clear(Communicator& ranks, std::chrono::steady_clock::time_point until, Wait wait);

  // Waits until it is not busy, but no longer than until then.
  State look(std::chrono::steady_clock::time_point until);

  // The one that was taken last. What is more of it than its id is to be touched only when it is not busy;
  // its files are the copy's.
  bool has_taken(const CheckpointId& id) const { return taken_ && id_ == id; }
  SaveWork& taken() { return work_; }
  // Nothing is to be tried again.
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
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace penstock
