// Threads: only rank 0 has a Drainer. Its training thread makes and destroys it and calls begin(),
// evict_one(), held_bytes(), wait_for_next_drain(), is_idle(), wait_until_idle() and trouble_text(). add() is
// called by the thread that committed: the training thread, or the snapshot thread. The drainer's own thread
// runs drain_loop(), drain(), handle_failure(), remove_old_copies() and evict_one().
// Locks: mutex_ guards all members from the one after it to stop_. No I/O happens while it is held. The
// ledger's lock may be taken under it, never the other way round.
// Memory: manifests are copied and queued, also with the lock held. A std::bad_alloc in the thread ends the
// thread, and the ledger reports that.
// Ctrl-C: does not end a drain (IgnoreInterrupt, interruptible = false). finalize() waits for it as long as
// its patience lasts; the destructor then stops it.
// Crash: the slow copy is committed by one rename, and the fast copy is removed only after that. begin() of
// the next process finds the rest: it drains a checkpoint again that is only on the fast tier.
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
constexpr std::chrono::milliseconds kFailurePoll{50};  // how often a wait checks for a failure

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

// On the thread that committed or drained. The acknowledgement runs with acknowledge_mutex_ held, but without
// mutex_, so it may sync a file and read the ledger. Only then the times are set: wait() returns when it
// reads them.
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

// The order matters. stop_ before heed_signals_: once heed_signals_ is set, a signal may make the copy fail,
// and handle_failure() must see stop_ by then, or it would report a lost checkpoint. Then thread_ is joined,
// as the last member.
Drainer::~Drainer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  heed_signals_ = true;
  changed_.notify_all();
}

// Runs before the thread exists, so nothing here needs the lock. The caller holds the run's locks of both
// stores: no other process adds or removes checkpoints of this run meanwhile.
Result<void> Drainer::begin() {
  PENSTOCK_ASSIGN(const uint64_t quarantined,
                  sort_fast_checkpoints(fast_, slow_, policy_.run, durable_, pending_));
  ledger_.set_counts([&](CheckpointCounts& counts) { counts.quarantined += quarantined; });
  drained_earlier_ = durable_.size();
  // A process may have been killed after its commit on the slow tier and before it removed the fast copies.
  while (durable_.size() > policy_.keep_on_fast) {
    PENSTOCK_ASSIGN(const bool evicted, evict_one());
    if (!evicted) break;
  }
  count_backlog();
  // Last: from here on the lists need the lock.
  thread_ = std::jthread([this] { drain_loop(); });
  return success();
}

// Call it with the lock held after each change of pending_. Without the lock, two calls could store their
// counts in the wrong order.
void Drainer::count_backlog() {
  const uint64_t backlog = bytes_of(pending_);
  ledger_.set_counts([&](CheckpointCounts& counts) {
    counts.backlog_bytes = backlog;
    counts.most_backlog_bytes = std::max(counts.most_backlog_bytes, backlog);
  });
}

// Called when the checkpoint is committed on the fast tier. Does not wait.
void Drainer::add(CheckpointManifest manifest) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(manifest));
  count_backlog();
  changed_.notify_all();
}

// Called by the training thread (to make room) and by the drainer's thread (remove_old_copies()), perhaps at
// the same time. Each call takes a different checkpoint out of durable_, so the reads and the removal need no
// lock. During that time held_bytes() does not count it. Every path that does not remove the checkpoint puts
// it into a list again.
Result<bool> Drainer::evict_one() {
  for (;;) {
    CheckpointManifest oldest;
    bool drained_earlier = false;  // by an earlier process
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
      trouble_ = verified.error();
      return false;
    }
    // The slow copy is known to be good now. Before that, the fast copy may have been the last good one.
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

// A signal does not end this wait. The training thread, which calls it, checks for signals between two calls.
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
      return make_error(Errc::timed_out,
                        format_size(ledger_.counts().backlog_bytes) + " on '" + fast_.tier().name +
                            "' are not durable yet; `penstock checkpoint drain` goes on" + trouble_text());
    }
    wait_for_next_drain(std::min(until, now + kFailurePoll));
  }
  return ledger_.failure();
}

std::string Drainer::trouble_text() const {
  const std::lock_guard lock(mutex_);
  return trouble_ ? "; the drain says: " + trouble_->message() : "";
}

bool Drainer::sleep_unless_stopped(std::chrono::nanoseconds length) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, length, [&] { return stop_; });
}

// Runs on the drainer's thread. Only stop_ ends it, not a signal. During its drain, a checkpoint stays the
// first of pending_: is_idle() must be false until it is durable. Only this thread removes from pending_, so
// the later pop_front() removes the same checkpoint.
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
    // The exception has released the lock. Record the error first, since the threads that are woken look for
    // it. The pending checkpoints stay on the fast tier, and the next process drains them.
    ledger_.record_failure(
        make_error(Errc::internal, "the thread that drains checkpoints died: " + std::string(error.what())));
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++ended_drains_;
    changed_.notify_all();
  }
}

// When the copy is committed and so durable, the order is: acknowledge, write LATEST, remove from pending_,
// tidy, wake. The acknowledgement comes before pop_front(): finalize() returns when pending_ is empty, and by
// then the acknowledgement must have been made.
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
    trouble_.reset();
    retry_pause_ = std::chrono::nanoseconds{0};
    count_backlog();
  }
  // A failure to remove old copies does not undo that this one is durable. The next drain tries again.
  if (const Result<void> removed = remove_old_copies(next.id); !removed.ok()) {
    const std::lock_guard lock(mutex_);
    trouble_ = removed.error();
  }
  // This comes after remove_old_copies(), since threads in wait_for_next_drain() wait for free space.
  const std::lock_guard lock(mutex_);
  ++ended_drains_;
  changed_.notify_all();
}

// On the drainer's thread. Reads both copies, without the lock, to find out what is wrong. Then waits before
// the next try, longer each time; the destructor ends that wait.
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
  {
    const std::lock_guard lock(mutex_);
    if (lost) {
      pending_.pop_front();
      count_backlog();
    }
    trouble_ = std::move(error);
    ++ended_drains_;
    if (!lost)
      retry_pause_ =
          retry_pause_.count() == 0 ? policy_.retry_after : std::min(2 * retry_pause_, kLongestPause);
    pause = lost ? std::chrono::nanoseconds{0} : retry_pause_;
  }
  changed_.notify_all();
  sleep_unless_stopped(pause);
}

// On the drainer's thread. Removes copies beyond policy_.keep_on_slow from the slow tier, then those beyond
// policy_.keep_on_fast from the fast one. The checkpoint that was just drained always stays on the slow tier.
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
