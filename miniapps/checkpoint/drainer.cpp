// Threads: only rank 0 has a Drainer. The training thread makes and destroys it and calls begin(),
// evict_one(), held_bytes(), wait_for_next_drain(), is_idle(), wait_until_idle() and last_error_text(). add()
// is called by the thread that committed the checkpoint: the training thread, or the snapshot thread. The
// drainer's own thread runs drain_loop(), drain(), handle_failure(), remove_old_copies() and evict_one().
// Locks: mutex_ guards the members that are declared after it, up to stop_. No I/O happens while it is held.
// A thread that holds it may take the ledger's mutex_; the opposite order never occurs.
// Memory: manifests are copied and queued, also with the lock held. A std::bad_alloc in the drainer's thread
// ends that thread, and the ledger reports it.
// Ctrl-C: does not end a drain (IgnoreInterrupt, interruptible = false). finalize() waits for the drain as
// long as its patience lasts; then the destructor stops the drain.
// Crash: the slow copy is committed by one rename, and the fast copy is removed only after that. begin() of
// the next process finds the checkpoints that are only on the fast tier, and drains them.
#include "miniapps/checkpoint/drainer.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/quarantine.hpp"
#include "miniapps/checkpoint/retention.hpp"

namespace penstock {
namespace {

constexpr std::chrono::nanoseconds kLongestPause = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kFailurePoll{50};  // how often a wait checks if a thread has failed

uint64_t bytes_of(const std::deque<CheckpointManifest>& manifests) {
  return std::accumulate(
      manifests.begin(), manifests.end(), uint64_t{0},
      [](uint64_t sum, const CheckpointManifest& manifest) { return sum + manifest.bytes(); });
}

}  // namespace

double CheckpointLedger::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_at_).count();
}

CheckpointTimes* CheckpointLedger::find(const CheckpointId& id) {
  const auto found = std::find_if(times_.rbegin(), times_.rend(),
                                  [&](const CheckpointTimes& times) { return times.id == id; });
  return found == times_.rend() ? nullptr : &*found;
}

void CheckpointLedger::add_save(const CheckpointId& id, uint64_t bytes, double save_begin_s) {
  const std::lock_guard lock(mutex_);
  times_.push_back({.id = id, .bytes = bytes, .save_begin_s = save_begin_s});
  ++counts_.saves;
}

void CheckpointLedger::rename(const CheckpointId& from, const CheckpointId& to) {
  const std::lock_guard lock(mutex_);
  if (CheckpointTimes* const times = find(from); times != nullptr) times->id = to;
}

// Acknowledges the level by calling on_reached_, then records it. on_reached_ runs with acknowledge_mutex_
// held, but without mutex_, so it may sync a file and read the ledger. The level is recorded only after
// on_reached_ has returned, because wait() returns as soon as it reads the level. Runs on the thread that
// committed or drained the checkpoint.
void CheckpointLedger::record_level(const CheckpointId& id, Reached level) {
  const std::lock_guard acknowledge_lock(acknowledge_mutex_);
  if (on_reached_) {
    if (Result<void> acknowledged = on_reached_(id, level); !acknowledged.ok())
      record_failure(std::move(acknowledged).error());
  }
  const double now = now_s();
  const std::lock_guard lock(mutex_);
  CheckpointTimes* const times = find(id);
  if (times == nullptr) return;
  times->reached = level;
  if (level == Reached::fast) times->fast_s = now - times->save_begin_s;
  if (level == Reached::durable) times->durable_s = now - times->save_begin_s;
}

void CheckpointLedger::record_block_time(const CheckpointId& id, double block_s) {
  const std::lock_guard lock(mutex_);
  if (CheckpointTimes* const times = find(id); times != nullptr) times->block_s = block_s;
}

void CheckpointLedger::record_skip(const CheckpointId& id) {
  const std::lock_guard lock(mutex_);
  ++counts_.skips;
  if (CheckpointTimes* const times = find(id); times != nullptr) times->skipped = true;
}

void CheckpointLedger::record_drain(const CheckpointId& id, double begin_s, double length_s) {
  const std::lock_guard lock(mutex_);
  ++counts_.drained;
  CheckpointTimes* const times = find(id);
  if (times == nullptr) return;
  times->drain_begin_s = begin_s;
  times->drain_s = length_s;
}

void CheckpointLedger::set_counts(const std::function<void(CheckpointCounts&)>& change) {
  const std::lock_guard lock(mutex_);
  change(counts_);
}

CheckpointCounts CheckpointLedger::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<CheckpointTimes> CheckpointLedger::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

void CheckpointLedger::record_failure(Error error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
}

Result<void> CheckpointLedger::failure() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return success();
}

// Stops the thread. stop_ must be set before heed_signals_: once heed_signals_ is set, a signal may make the
// copy fail, and handle_failure() must find stop_ set by then. Otherwise it would count a failed drain. After
// this body, the destructor of thread_ joins the thread, before any other member is destroyed.
Drainer::~Drainer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  heed_signals_ = true;
  changed_.notify_all();
}

// Lists the checkpoints of earlier processes, then starts the thread. Until that thread runs, mutex_ is not
// needed here. The caller holds the run's locks of both stores, so no other process adds or removes
// checkpoints of this run meanwhile.
Result<void> Drainer::begin() {
  PENSTOCK_ASSIGN(const uint64_t quarantined,
                  sort_fast_checkpoints(fast_, slow_, policy_.run, durable_, pending_));
  ledger_.set_counts([&](CheckpointCounts& counts) { counts.quarantined += quarantined; });
  drained_earlier_ = durable_.size();
  // An earlier process may have been killed after its commit on the slow tier, before it removed old fast
  // copies. This loop removes them.
  while (durable_.size() > policy_.keep_on_fast) {
    PENSTOCK_ASSIGN(const bool evicted, evict_one());
    if (!evicted) break;
  }
  count_backlog();
  // Started last: from here on, durable_ and pending_ need the lock, since the thread uses them too.
  thread_ = std::jthread([this] { drain_loop(); });
  return success();
}

// Tells the ledger how many bytes are not durable yet. Call it with the lock held after each change of
// pending_. Without the lock, two threads could store their counts in the wrong order.
void Drainer::count_backlog() {
  const uint64_t backlog = bytes_of(pending_);
  ledger_.set_counts([&](CheckpointCounts& counts) {
    counts.backlog_bytes = backlog;
    counts.most_backlog_bytes = std::max(counts.most_backlog_bytes, backlog);
  });
}

void Drainer::add(CheckpointManifest manifest) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(manifest));
  count_backlog();
  changed_.notify_all();
}

// Removes the oldest durable checkpoint from the fast tier (drainer.hpp). The training thread (to make room)
// and the drainer's thread (remove_old_copies()) may call it at the same time. Each call takes a different
// checkpoint out of durable_, so the reads and the removal need no lock. During that time held_bytes() does
// not count the checkpoint. Every path that does not remove the checkpoint puts it into a list again.
Result<bool> Drainer::evict_one() {
  for (;;) {
    CheckpointManifest oldest;
    bool drained_earlier = false;  // an earlier process drained this checkpoint
    bool must_verify = false;      // read the slow copy before the fast one is removed
    {
      const std::lock_guard lock(mutex_);
      if (durable_.empty()) return false;
      oldest = std::move(durable_.front());
      durable_.pop_front();
      drained_earlier = drained_earlier_ > 0;
      if (drained_earlier) --drained_earlier_;
      must_verify = drained_earlier && (policy_.read_back || !drained_one_);
    }
    const auto put_back = [&](std::deque<CheckpointManifest>& list) {
      const std::lock_guard lock(mutex_);
      if (&list == &pending_) {
        pending_.push_back(std::move(oldest));
        return count_backlog();
      }
      durable_.push_front(std::move(oldest));
      if (drained_earlier) ++drained_earlier_;
    };
    const Result<void> verified = must_verify ? slow_.verify(policy_.run, oldest) : success();
    if (!verified.ok() &&
        (is_data_error(verified.error().code) || verified.error().code == Errc::not_found)) {
      const Result<bool> moved = quarantine_if_wrong(slow_, policy_.run, oldest.id, verified.error());
      if (moved.ok() && *moved) ledger_.set_counts([](CheckpointCounts& counts) { ++counts.quarantined; });
      put_back(pending_);
      changed_.notify_all();
      continue;
    }
    if (!verified.ok()) {
      put_back(durable_);
      if (verified.error().code == Errc::interrupted) return verified.error();
      const std::lock_guard lock(mutex_);
      last_error_ = verified.error();
      return false;
    }
    // Only now may the fast copy be removed: before the slow copy was checked, the fast copy might have been
    // the last good one.
    const Result<void> removed = fast_.remove(policy_.run, oldest.id);
    if (!removed.ok() && removed.error().code != Errc::not_found) {
      put_back(durable_);
      return removed.error();
    }
    ledger_.set_counts([](CheckpointCounts& counts) { ++counts.evicted; });
    return true;
  }
}

uint64_t Drainer::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_of(pending_) + bytes_of(durable_);
}

// A signal does not end this wait. The Checkpointer's save() and wait() check for signals between two calls;
// wait_until_idle(), which finalize() calls, does not.
void Drainer::wait_for_next_drain(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  const uint64_t ended_before = ended_drains_;
  changed_.wait_until(lock, until,
                      [&] { return ended_drains_ != ended_before || pending_.empty() || stop_; });
}

bool Drainer::is_idle() const {
  const std::lock_guard lock(mutex_);
  return pending_.empty();
}

Result<void> Drainer::wait_until_idle(std::chrono::steady_clock::time_point until) {
  while (!is_idle()) {
    PENSTOCK_TRY(ledger_.failure());
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) {
      return make_error(Errc::timed_out, format_size(ledger_.counts().backlog_bytes) + " on '" +
                                             fast_.tier().name + "' are not durable yet" + last_error_text());
    }
    wait_for_next_drain(std::min(until, now + kFailurePoll));
  }
  return ledger_.failure();
}

std::string Drainer::last_error_text() const {
  const std::lock_guard lock(mutex_);
  return last_error_ ? "; the error of the drain: " + last_error_->message() : "";
}

bool Drainer::sleep_unless_stopped(std::chrono::nanoseconds length) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, length, [&] { return stop_; });
}

// Drains the pending checkpoints one after the other, on the drainer's thread. Only stop_ or an exception
// ends the loop; a signal does not. While a checkpoint is drained, it stays the first of pending_, since
// is_idle() must be false until it is durable. The later pop_front() removes this checkpoint and no other,
// because only this thread removes from pending_.
void Drainer::drain_loop() noexcept {
  const IgnoreInterrupt ignore_signals(heed_signals_);
  try {
    for (;;) {
      CheckpointManifest next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || !pending_.empty(); });
        if (stop_) return;
        next = pending_.front();
      }
      drain(next);
    }
  } catch (const std::exception& error) {
    // The exception has released mutex_. The error is recorded before the waiting threads are woken, since
    // each of them then checks for an error. The pending checkpoints stay on the fast tier, and the next
    // process drains them.
    ledger_.record_failure(
        make_error(Errc::internal, "the drain thread failed: " + std::string(error.what())));
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++ended_drains_;
    changed_.notify_all();
  }
}

// Copies one checkpoint to the slow tier. After the commit, which makes the copy durable, the order is:
// acknowledge, write LATEST, remove from pending_, remove old copies, wake the waiting threads. The
// acknowledgement comes before pop_front(), because finalize() returns as soon as pending_ is empty.
void Drainer::drain(const CheckpointManifest& next) {
  const double begin_s = ledger_.now_s();
  const CopyRequest request{.read_back = policy_.read_back,
                            .interruptible = false,
                            .heed_signals = &heed_signals_,
                            .memory = &memory_,
                            .on_written = [this](uint64_t) -> Result<void> {
                              const std::lock_guard lock(mutex_);
                              if (stop_) return make_error(Errc::interrupted, "stopped while draining");
                              return success();
                            }};
  Result<CheckpointManifest> copied = copy_checkpoint(fast_, slow_, next, request);
  if (!copied.ok()) {
    handle_failure(next, std::move(copied).error());
    return;
  }
  ledger_.record_level(next.id, Reached::durable);
  ledger_.record_drain(next.id, begin_s, ledger_.now_s() - begin_s);
  slow_.hint_latest(policy_.run, next.id);
  {
    const std::lock_guard lock(mutex_);
    pending_.pop_front();
    durable_.push_back(next);
    drained_one_ = true;
    last_error_.reset();
    retry_pause_ = std::chrono::nanoseconds{0};
    count_backlog();
  }
  // The checkpoint is durable even if old copies cannot be removed now. The next drain tries to remove them
  // again.
  if (const Result<void> removed = remove_old_copies(next.id); !removed.ok()) {
    const std::lock_guard lock(mutex_);
    last_error_ = removed.error();
  }
  // Wakes the waiting threads only after remove_old_copies(), since wait_for_next_drain() waits for free
  // space.
  const std::lock_guard lock(mutex_);
  ++ended_drains_;
  changed_.notify_all();
}

// Finds out why a drain failed, by reading the copy that may be wrong; mutex_ is not held meanwhile. Then
// waits before the next try, longer each time; the destructor ends that wait. Runs on the drainer's thread.
void Drainer::handle_failure(const CheckpointManifest& manifest, Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
  }
  ledger_.set_counts([](CheckpointCounts& counts) { ++counts.drain_failures; });
  const auto failed_drain = look_into_failed_drain(fast_, slow_, manifest, error);
  if (failed_drain.quarantined) ledger_.set_counts([](CheckpointCounts& counts) { ++counts.quarantined; });
  const bool lost = failed_drain.is_lost();
  if (lost) {
    error.what = "the checkpoint of step " + std::to_string(manifest.id.step) +
                 " cannot become durable: " + error.what;
    ledger_.record_failure(error);
  }
  std::chrono::nanoseconds pause{0};
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (lost) {
      pending_.pop_front();
      count_backlog();
    }
    first = retry_pause_.count() == 0;
    last_error_ = error;
    ++ended_drains_;
    if (!lost)
      retry_pause_ =
          retry_pause_.count() == 0 ? policy_.retry_after : std::min(2 * retry_pause_, kLongestPause);
    pause = lost ? std::chrono::nanoseconds{0} : retry_pause_;
  }
  changed_.notify_all();
  if (first && !lost && policy_.log)
    policy_.log("the drain of the checkpoint of step " + std::to_string(manifest.id.step) +
                " failed and will be retried: " + error.message());
  sleep_unless_stopped(pause);
}

// Removes the oldest copies from the slow tier until policy_.keep_on_slow are left, then from the fast tier
// until policy_.keep_on_fast are left. The checkpoint that was just drained always stays on the slow tier.
// Runs on the drainer's thread.
Result<void> Drainer::remove_old_copies(const CheckpointId& newest) {
  PENSTOCK_ASSIGN(const uint64_t pruned, prune_checkpoints(slow_, policy_.run, policy_.keep_on_slow, newest));
  ledger_.set_counts([&](CheckpointCounts& counts) { counts.pruned += pruned; });
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (durable_.size() <= policy_.keep_on_fast) return success();
    }
    PENSTOCK_ASSIGN(const bool evicted, evict_one());
    if (!evicted) return success();
  }
}

}  // namespace penstock
