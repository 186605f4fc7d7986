// Threads: all workers of a run share one SampleSource and one Arrivals. A PassOrder belongs to one worker.
// Locks: SampleSource::mutex_ is taken between two passes, Arrivals::mutex_ for each due time. Both are held
// for a few computations, and never at the same time.
// Memory: PassOrder allocates at the first sample of a pass or window. The shared classes allocate nothing.
// Ctrl-C: not checked, since no function waits for long.
// Crash: nothing is written.
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
      slice_samples_(slice_length(samples, threads)),
      slices_a_pass_((samples + slice_samples_ - 1) / slice_samples_),
      max_passes_(max_passes),
      at_least_ns_(at_least_ns),
      limit_(slices_a_pass_) {
  assert(samples > 0);
}

// Sorts a window when its first sample is requested, and keeps the result for the others.
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

// Called by each thread whose ticket is beyond the limit. Starts one more pass, or refuses. After one refusal
// ended_ stays true. If a later thread could still start a pass, the slices of the refused tickets would be
// missing in it.
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
      first_in_gaps_((static_cast<double>(share.rank) + 0.5) / static_cast<double>(share.ranks)),
      random_(RandomStream(seed, "arrivals").substream(run).substream(share.rank)) {}

// The time at which sample `number` is due. `at_ns` is the time of the previous sample, and is set to that of
// this one. Takes no lock.
std::int64_t Arrivals::due_ns(std::uint64_t number, double& at_ns) const {
  if (poisson_)
    at_ns -= gap_ns_ * portable_log(1 - random_.uniform(number));
  else
    // A sample is due in the middle of its gap. So a run of n gaps has n samples, and none is due exactly at
    // its end.
    at_ns = gap_ns_ * (static_cast<double>(number) + first_in_gaps_);
  return static_cast<std::int64_t>(at_ns);
}

// Number and time change under one lock, because with random gaps each time depends on the previous one.
std::int64_t Arrivals::next_ns() {
  const std::lock_guard lock(mutex_);
  return due_ns(given_++, at_ns_);
}

// Computes all times again from the first, so it needs no lock and does not affect next_ns().
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
