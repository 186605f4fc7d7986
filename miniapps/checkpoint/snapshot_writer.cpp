// Threads: the training's thread calls everything in the header. write_loop() is the writer's own thread,
// which calls write_ and on_failure_.
// Locks: mutex_ guards state_ and stop_. memory_ and the data that write_ uses need no lock: the writer's
// thread uses them while state_ is busy, the training's thread otherwise. Each change of state_ hands them
// over to the other thread, and is made with the lock held. mutex_ is never held during a write or a
// collective call.
// Memory: reserve_memory() allocates; if there is no memory, it returns an error. copy_and_write() copies
// into that memory. A function that waits allocates only the texts of its errors. MPI may allocate in any
// collective call.
// Ctrl-C: does not end a write before the destructor runs (IgnoreInterrupt). From then on a signal, even an
// earlier one, ends the write. Without a signal, the destructor waits until the write has ended.
// Crash: a snapshot that is only in memory is lost. The next process removes its folder in tmp/ (sweep()).
#include "miniapps/checkpoint/snapshot_writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include "io_backends/core/limits.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kExchangePeriod{50};  // how often waiting ranks exchange their states

}  // namespace

SnapshotWriter::SnapshotWriter(WritePart write, OnFailure failed)
    : write_(std::move(write)), on_failure_(std::move(failed)), thread_([this] { write_loop(); }) {}

SnapshotWriter::~SnapshotWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  heed_signals_ = true;
  changed_.notify_all();
}

Result<void> SnapshotWriter::reserve_memory(std::span<const FileView> files) {
  size_t bytes = 0;
  for (const FileView& file : files) bytes += size_t(whole_blocks(file.bytes.size()));
  if (memory_.try_grow(bytes)) return success();
  return make_error(Errc::exhausted,
                    "no memory for a snapshot of " + format_size(bytes) + memory_limit_text());
}

void SnapshotWriter::copy_and_write(uint64_t step, std::span<FileView> files) {
  size_t at = 0;
  for (FileView& file : files) {
    std::memcpy(memory_.data() + at, file.bytes.data(), file.bytes.size());
    file.bytes = std::span(memory_.data() + at, file.bytes.size());
    at += size_t(whole_blocks(file.bytes.size()));
  }
  step_ = step;
  given_up_ = false;
  // state_ is set last: from here on the writer's thread uses memory_ and the data of write_.
  const std::lock_guard lock(mutex_);
  state_ = State::busy;
  changed_.notify_all();
}

SnapshotWriter::State SnapshotWriter::wait_while_busy(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return state_ != State::busy; });
  return state_;
}

bool SnapshotWriter::wait_until_written(Clock::time_point until) {
  return wait_while_busy(until) != State::busy;
}

// What the ranks reported: each member is true if it is true on at least one rank.
struct SnapshotWriter::Reports {
  bool busy = false;
  bool full = false;
  bool failed = false;
  bool late = false;     // `until` has passed
  bool stopped = false;  // a rank got a signal
};

// Collective: exchanges the states of all ranks. A rank that has failed, or whose tier is full, does not
// report its list of files. If there is such a rank, this sets given_up_: otherwise rank 0 would wait for the
// list until its time is over.
Result<SnapshotWriter::Reports> SnapshotWriter::exchange(Communicator& ranks, Clock::time_point poll_until,
                                                         Clock::time_point until) {
  const State own_state = wait_while_busy(poll_until);
  std::array<uint64_t, 5> any{own_state == State::busy, own_state == State::full, own_state == State::failed,
                              Clock::now() >= until, interrupted()};
  PENSTOCK_TRY(ranks.all_reduce(std::span(any), Reduction::max));
  const Reports reports{any[0] != 0, any[1] != 0, any[2] != 0, any[3] != 0, any[4] != 0};
  if (reports.busy && (reports.full || reports.failed)) given_up_ = true;
  return reports;
}

Result<bool> SnapshotWriter::any_rank_busy(Communicator& ranks) {
  const Clock::time_point now = Clock::now();
  PENSTOCK_ASSIGN(const Reports any, exchange(ranks, now, now));
  return any.busy;
}

Result<bool> SnapshotWriter::wait_for_all_ranks(Communicator& ranks, Clock::time_point until,
                                                bool interruptible) {
  for (;;) {
    const Clock::time_point now = Clock::now();
    PENSTOCK_ASSIGN(const Reports any,
                    exchange(ranks, until > now ? std::min(until, now + kExchangePeriod) : now, until));
    if (!any.busy) {
      if (any.failed) abandon();
      return any.full && !any.failed;
    }
    const std::string what =
        "the checkpoint of step " + std::to_string(step_) + " is still being written from memory";
    if (interruptible && any.stopped) return make_error(Errc::interrupted, "stopped while " + what);
    if (any.late)
      return make_error(
          Errc::timed_out,
          what + ": raise --on-full-timeout, save less often, or skip checkpoints (--on-full skip)");
  }
}

void SnapshotWriter::abandon() {
  const std::lock_guard lock(mutex_);
  state_ = State::free;
}

// Writes one snapshot after the other, on the writer's thread. mutex_ is not held during a write. An
// exception ends the write, but not the thread. A signal ends a write only after the destructor has set
// heed_signals_.
void SnapshotWriter::write_loop() noexcept {
  const IgnoreInterrupt ignore_signals(heed_signals_);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || state_ == State::busy; });
      // A snapshot that was copied is written even if stop_ is set meanwhile.
      if (state_ != State::busy) return;
    }
    State end_state = State::free;
    std::string full_reason;
    try {
      if (Result<void> written = write_(given_up_); !written.ok()) {
        end_state = written.error().code == Errc::no_space ? State::full : State::failed;
        if (end_state == State::failed)
          on_failure_(std::move(written).error());
        else
          full_reason = written.error().message();
      }
    } catch (const std::exception& error) {
      end_state = State::failed;
      on_failure_(make_error(Errc::internal, "the snapshot thread failed: " + std::string(error.what())));
    }
    const std::lock_guard lock(mutex_);
    state_ = end_state;
    full_reason_ = std::move(full_reason);
    changed_.notify_all();
    if (stop_) return;
  }
}

}  // namespace penstock
