#include "miniapps/checkpoint/drainer.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/quarantine.hpp"
#include "miniapps/checkpoint/retention.hpp"

namespace penstock {
namespace {

constexpr std::chrono::nanoseconds kLongestPause = std::chrono::seconds(30);

std::uint64_t bytes_of(const std::deque<CheckpointManifest>& manifests) {
  return std::accumulate(
      manifests.begin(), manifests.end(), std::uint64_t{0},
      [](std::uint64_t sum, const CheckpointManifest& manifest) { return sum + manifest.bytes(); });
}

}  // namespace

Drainer::~Drainer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  over_ = true;
  changed_.notify_all();
}

Result<void> Drainer::begin() {
  PENSTOCK_ASSIGN(std::vector<Listed> found, fast_.list(policy_.run));
  for (Listed& one : found) {
    if (!one.manifest.ok()) {
      const Error& error = one.manifest.error();
      if (error.code == Errc::unsupported) continue;  // another version's: it stays as it is
      PENSTOCK_ASSIGN(const bool moved, quarantine_if_wrong(fast_, policy_.run, one.id, error));
      if (!moved) return error;
      ledger_.count([](CheckpointCounts& counts) { ++counts.quarantined; });
      continue;
    }
    const Result<CheckpointManifest> copy = slow_.manifest(policy_.run, one.id);
    const bool same = copy.ok() && copy->files == one.manifest->files;
    if (!copy.ok() && copy.error().code != Errc::not_found && !found_wrong(copy.error().code))
      return copy.error();
    (same ? durable_ : pending_).push_back(*std::move(one.manifest));
  }
  found_ = durable_.size();
  // A copy that a drain committed and was not let to clean up behind.
  while (durable_.size() > policy_.keep_fast) {
    PENSTOCK_ASSIGN(const bool went, evict_one());
    if (!went) break;
  }
  const std::uint64_t backlog = bytes_of(pending_);
  ledger_.count([&](CheckpointCounts& counts) { counts.backlog_bytes = counts.backlog_most = backlog; });
  thread_ = std::jthread([this] { work(); });
  return success();
}

void Drainer::add(CheckpointManifest manifest) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(manifest));
  const std::uint64_t backlog = bytes_of(pending_);
  ledger_.count([&](CheckpointCounts& counts) {
    counts.backlog_bytes = backlog;
    counts.backlog_most = std::max(counts.backlog_most, backlog);
  });
  changed_.notify_all();
}

Result<bool> Drainer::evict_one() {
  for (;;) {
    CheckpointManifest oldest;
    bool found = false;   // it was durable before this process began
    bool unread = false;  // and nobody has looked whether it still is
    {
      const std::lock_guard lock(mutex_);
      if (durable_.empty()) return false;
      oldest = std::move(durable_.front());
      durable_.pop_front();
      found = found_ > 0;
      if (found) --found_;
      unread = found && (policy_.read_back || !drained_one_);
    }
    const auto back = [&](std::deque<CheckpointManifest>& there) {
      const std::lock_guard lock(mutex_);
      if (&there == &pending_) return pending_.push_back(std::move(oldest));
      durable_.push_front(std::move(oldest));
      if (found) ++found_;
    };
    const Result<void> whole = unread ? slow_.verify(policy_.run, oldest) : success();
    if (!whole.ok() && (found_wrong(whole.error().code) || whole.error().code == Errc::not_found)) {
      const Result<bool> moved = quarantine_if_wrong(slow_, policy_.run, oldest.id, whole.error());
      if (moved.ok() && *moved) ledger_.count([](CheckpointCounts& counts) { ++counts.quarantined; });
      back(pending_);
      changed_.notify_all();
      continue;
    }
    if (!whole.ok()) {
      back(durable_);
      if (whole.error().code == Errc::interrupted) return whole.error();
      const std::lock_guard lock(mutex_);
      trouble_ = whole.error();
      return false;
    }
    const Result<void> removed = fast_.remove(policy_.run, oldest.id);
    if (!removed.ok() && removed.error().code != Errc::not_found) {
      back(durable_);
      return removed.error();
    }
    ledger_.count([](CheckpointCounts& counts) { ++counts.evicted; });
    return true;
  }
}

Drainer::Held Drainer::held() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t backlog = bytes_of(pending_);
  return {.bytes = backlog + bytes_of(durable_), .backlog = backlog};
}

bool Drainer::wait_for_progress(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  const std::uint64_t seen = ended_;
  changed_.wait_until(lock, until, [&] { return ended_ != seen || pending_.empty() || stop_; });
  return !pending_.empty();
}

bool Drainer::idle() const {
  const std::lock_guard lock(mutex_);
  return pending_.empty();
}

std::optional<Error> Drainer::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

bool Drainer::sleep_unless_stopped(std::chrono::nanoseconds length) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, length, [&] { return stop_; });
}

// A signal does not end it: who drains in a grace waits for it, and stops it when that is over.
void Drainer::work() noexcept {
  const WorkOn in_grace(over_);
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
    ledger_.fail(
        make_error(Errc::internal, "the thread that drains checkpoints died: " + std::string(error.what())));
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++ended_;
    changed_.notify_all();
  }
}

void Drainer::drain(const CheckpointManifest& next) {
  const double begin_s = ledger_.now_s();
  const CopyRequest request{.read_back = policy_.read_back,
                            .interruptible = false,
                            .over = &over_,
                            .memory = &memory_,
                            .gone_on = [this](std::uint64_t) -> Result<void> {
                              const std::lock_guard lock(mutex_);
                              if (stop_) return make_error(Errc::interrupted, "stopped while draining");
                              return success();
                            }};
  Result<CheckpointManifest> copied = copy_checkpoint(fast_, slow_, next, request);
  if (!copied.ok()) {
    failed(next, std::move(copied).error());
    return;
  }
  ledger_.reached(next.id, Reached::durable);
  ledger_.drained(next.id, begin_s, ledger_.now_s() - begin_s);
  slow_.hint_latest(policy_.run, next.id);
  {
    const std::lock_guard lock(mutex_);
    pending_.pop_front();
    durable_.push_back(next);
    drained_one_ = true;
    trouble_.reset();
    pause_ = std::chrono::nanoseconds{0};
    const std::uint64_t backlog = bytes_of(pending_);
    ledger_.count([&](CheckpointCounts& counts) { counts.backlog_bytes = backlog; });
  }
  // What is durable stays so: that its tiers cannot be tidied is no failure of it, and comes up again.
  if (const Result<void> tidied = tidy(next.id); !tidied.ok()) {
    const std::lock_guard lock(mutex_);
    trouble_ = tidied.error();
  }
  const std::lock_guard lock(mutex_);
  ++ended_;
  changed_.notify_all();
}

void Drainer::failed(const CheckpointManifest& manifest, Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
  }
  ledger_.count([](CheckpointCounts& counts) { ++counts.drain_failures; });
  const FailedDrain found = look_into_failed_drain(fast_, slow_, manifest, error);
  if (found.quarantined) ledger_.count([](CheckpointCounts& counts) { ++counts.quarantined; });
  const bool lost = found.fate == DrainFate::lost || found.fate == DrainFate::taken;
  if (lost) {
    error.what = "the checkpoint of step " + std::to_string(manifest.id.step) +
                 " cannot become durable: " + error.what;
    ledger_.fail(error);
  }
  std::chrono::nanoseconds pause{0};
  {
    const std::lock_guard lock(mutex_);
    if (lost) pending_.pop_front();
    trouble_ = std::move(error);
    ++ended_;
    if (!lost) pause_ = pause_.count() == 0 ? policy_.retry_after : std::min(2 * pause_, kLongestPause);
    pause = lost ? std::chrono::nanoseconds{0} : pause_;
  }
  changed_.notify_all();
  sleep_unless_stopped(pause);
}

Result<void> Drainer::tidy(const CheckpointId& newest) {
  PENSTOCK_ASSIGN(const std::uint64_t pruned, prune_checkpoints(slow_, policy_.run, policy_.keep, newest));
  ledger_.count([&](CheckpointCounts& counts) { counts.pruned += pruned; });
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (durable_.size() <= policy_.keep_fast) return success();
    }
    PENSTOCK_ASSIGN(const bool went, evict_one());
    if (!went) return success();
  }
}

}  // namespace penstock
