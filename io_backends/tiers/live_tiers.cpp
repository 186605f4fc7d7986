// Threads: the thread that answers requests calls figures(), the command's own thread calls the rest.
// Locks: LiveTiers::mutex_ is held while the counters of a back end are read. So a back end whose token is
// destroyed first is not read any more. Reading a counter takes no lock and does not wait.
#include "io_backends/tiers/live_tiers.hpp"

#include <algorithm>
#include <utility>

#include "io_backends/tiers/tier.hpp"

namespace penstock {

void TierActivity::raise_operations(uint64_t count) {
  // Only the thread that measures writes it, so there is no other write between the two calls.
  if (count > operations.load(std::memory_order_relaxed)) operations.store(count, std::memory_order_relaxed);
}

LiveTiers::Figures LiveTiers::Entry::figures() const {
  if (activity == nullptr) return last;
  Figures now = last;
  if (backend != nullptr) now.bytes = backend->moved_bytes();
  now.bytes.read += activity->foreign_read_bytes.load(std::memory_order_relaxed);
  now.operations = activity->operations.load(std::memory_order_relaxed);
  now.errors = activity->errors.load(std::memory_order_relaxed);
  now.repeat = activity->repeat.load(std::memory_order_relaxed);
  return now;
}

std::shared_ptr<void> LiveTiers::add(const Tier& tier) {
  const TierActivity* const activity = tier.activity.get();
  const std::lock_guard lock(mutex_);
  if (std::any_of(entries_.begin(), entries_.end(),
                  [&](const Entry& one) { return one.activity == activity; }))
    return nullptr;
  entries_.push_back({{.tier = tier.name}, tier.backend.get(), activity});
  return {this, [activity](LiveTiers* tiers) { tiers->remove(activity); }};
}

void LiveTiers::remove(const TierActivity* activity) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.activity != activity) continue;
    entry.last = entry.figures();
    entry.backend = nullptr;
    entry.activity = nullptr;
  }
}

std::vector<LiveTiers::Figures> LiveTiers::figures() const {
  const std::lock_guard lock(mutex_);
  std::vector<Figures> all;
  for (const Entry& entry : entries_) {
    const Figures one = entry.figures();
    const auto same_name =
        std::find_if(all.begin(), all.end(), [&](const Figures& other) { return other.tier == one.tier; });
    if (same_name == all.end()) {
      all.push_back(one);
      continue;
    }
    same_name->bytes.read += one.bytes.read;
    same_name->bytes.written += one.bytes.written;
    same_name->operations += one.operations;
    same_name->errors += one.errors;
    same_name->repeat = std::max(same_name->repeat, one.repeat);
  }
  return all;
}

}  // namespace penstock
