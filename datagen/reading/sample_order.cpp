// Threads: all workers of a run share one SampleSource and one Arrivals. A PassOrder belongs to one worker.
// Locks: SampleSource::mutex_ between two passes, Arrivals::mutex_ for each due time. Both are held for a few
// computations and never together.
// Memory: only the first sample of a pass or window allocates, by an order. The shared classes allocate
// nothing.
// Ctrl-C: nothing looks for it, and nothing waits. Crash: nothing is written.
#include "datagen/reading/sample_order.hpp"

#include <algorithm>
#include <cassert>

namespace penstock {

namespace {

std::uint64_t slice_length(std::uint64_t samples, unsigned threads) {
  constexpr std::uint64_t kSlicesAThread = 128;
  constexpr std::uint64_t kLongest = 8;
  return std::clamp<std::uint64_t>(samples / (kSlicesAThread * std::max(threads, 1U)), 1, kLongest);
}

}  // namespace

SampleSource::SampleSource(std::uint64_t samples, unsigned threads, std::uint64_t max_passes,
                           std::int64_t at_least_ns)
    : samples_(samples),
      slice_(slice_length(samples, threads)),
      slices_a_pass_((samples + slice_ - 1) / slice_),
      max_passes_(max_passes),
      at_least_ns_(at_least_ns),
      limit_(slices_a_pass_) {
  assert(samples > 0);
}

// Sorts a window when its first sample is wanted, and keeps it for the others.
std::uint64_t PassOrder::in_window(std::uint64_t position) {
  const std::uint64_t from = position / window_ * window_;
  if (sorted_.empty() || sorted_from_ != from) {
    const std::uint64_t end = std::min(from + window_, length_);
    sorted_.clear();
    for (std::uint64_t i = from; i < end; ++i) sorted_.push_back(first_ + permutation_.at(i));
    const std::vector<std::uint64_t>& offsets = *offsets_;
    std::sort(sorted_.begin(), sorted_.end(), [&](std::uint64_t a, std::uint64_t b) {
      return offsets[a] != offsets[b] ? offsets[a] < offsets[b] : a < b;
    });
    sorted_from_ = from;
  }
  return sorted_[position - from];
}

// By each thread whose ticket is beyond the limit: lets one more pass start, or none. ended_ stays set for
// good. If a later thread could extend after all, the new pass would lack the slices of tickets that were
// refused before.
bool SampleSource::extend(std::uint64_t ticket, std::int64_t now_ns) {
  std::lock_guard lock(mutex_);
  while (ticket >= limit_.load(std::memory_order_relaxed)) {
    if (max_passes_ != 0 && passes() >= max_passes_) ended_ = true;
    if (now_ns >= at_least_ns_) ended_ = true;
    if (ended_) return false;
    limit_.store(limit_.load(std::memory_order_relaxed) + slices_a_pass_, std::memory_order_release);
  }
  return true;
}

Arrivals::Arrivals(const OpenLoop& loop, std::uint64_t seed, const RankShare& share, std::uint64_t run)
    : poisson_(loop.poisson),
      gap_ns_(1e9 * static_cast<double>(share.ranks) / loop.per_second),
      first_((static_cast<double>(share.rank) + 0.5) / static_cast<double>(share.ranks)),
      random_(RandomStream(seed, "arrivals").substream(run).substream(share.rank)) {}

// When sample `number` is due. `at_ns`: the time of the one before, which becomes its own. Without the lock.
std::int64_t Arrivals::due_ns(std::uint64_t number, double& at_ns) const {
  if (poisson_)
    at_ns -= gap_ns_ * portable_log(1 - random_.uniform(number));
  else
    // In the middle of its gap: a run of n gaps has n samples, and none is due at its end.
    at_ns = gap_ns_ * (static_cast<double>(number) + first_);
  return static_cast<std::int64_t>(at_ns);
}

// Number and time change under one lock: with gaps drawn one after the other, each depends on the one before.
std::int64_t Arrivals::next_ns() {
  const std::lock_guard lock(mutex_);
  return due_ns(given_++, at_ns_);
}

// Computes all times again from the first, so it neither needs the lock nor disturbs next_ns().
std::uint64_t Arrivals::between(std::int64_t from_ns, std::int64_t to_ns) const {
  std::uint64_t count = 0;
  double at_ns = 0;
  for (std::uint64_t number = 0;; ++number) {
    const std::int64_t due = due_ns(number, at_ns);
    if (due >= to_ns) return count;
    if (due >= from_ns) ++count;
  }
}

}  // namespace penstock
