// Threads: all workers of a run share one SampleSource and one Arrivals. A PassOrder belongs to one worker.
// Locks: SampleSource::mutex_ is taken between two passes, Arrivals::mutex_ for each due time. Both are held
// for a few computations, and never at the same time.
// Memory: PassOrder allocates at the first sample of a pass or window. SampleSource and Arrivals allocate
// nothing.
// Ctrl-C: not checked, since no function waits for long.
// Crash: nothing is written.
#include "datagen/reading/sample_order.hpp"

#include <algorithm>
#include <cassert>

namespace penstock {

namespace {

uint64_t slice_length(uint64_t samples, unsigned threads) {
  constexpr uint64_t kSlicesPerThread = 128;
  constexpr uint64_t kLongestSlice = 8;
  return std::clamp<uint64_t>(samples / (kSlicesPerThread * std::max(threads, 1U)), 1, kLongestSlice);
}

}  // namespace

SampleSource::SampleSource(uint64_t samples, unsigned threads, uint64_t max_passes, int64_t min_time_ns)
    : samples_(samples),
      slice_samples_(slice_length(samples, threads)),
      slices_per_pass_((samples + slice_samples_ - 1) / slice_samples_),
      max_passes_(max_passes),
      min_time_ns_(min_time_ns),
      ticket_limit_(slices_per_pass_) {
  assert(samples > 0);
}

// Returns the sample at `position` if each window of the shuffle is sorted by device offset. A window is
// sorted when its first sample is requested, and is kept for its other samples.
uint64_t PassOrder::in_window_order(uint64_t position) {
  const uint64_t window_begin = position / window_ * window_;
  if (sorted_samples_.empty() || sorted_window_begin_ != window_begin) {
    const uint64_t end = std::min(window_begin + window_, share_samples_);
    sorted_samples_.clear();
    for (uint64_t i = window_begin; i < end; ++i)
      sorted_samples_.push_back(first_sample_ + permutation_.at(i));
    const std::vector<uint64_t>& offsets = *offsets_;
    std::sort(sorted_samples_.begin(), sorted_samples_.end(), [&](uint64_t a, uint64_t b) {
      return offsets[a] != offsets[b] ? offsets[a] < offsets[b] : a < b;
    });
    sorted_window_begin_ = window_begin;
  }
  return sorted_samples_[position - window_begin];
}

// Starts another pass for a thread whose ticket is beyond the passes that were started. Returns false if no
// other pass follows. After false, ended_ stays true. Otherwise a later thread could start a pass, in which
// the slices of the refused tickets would be missing.
bool SampleSource::try_start_pass(uint64_t ticket, int64_t now_ns) {
  std::lock_guard lock(mutex_);
  while (ticket >= ticket_limit_.load(std::memory_order_relaxed)) {
    if (max_passes_ != 0 && passes() >= max_passes_) ended_ = true;
    if (now_ns >= min_time_ns_) ended_ = true;
    if (ended_) return false;
    ticket_limit_.store(ticket_limit_.load(std::memory_order_relaxed) + slices_per_pass_,
                        std::memory_order_release);
  }
  return true;
}

Arrivals::Arrivals(const OpenLoop& loop, uint64_t seed, const RankShare& share, uint64_t run)
    : poisson_(loop.poisson),
      gap_ns_(1e9 * double(share.ranks) / loop.per_second),
      first_due_gaps_((double(share.rank) + 0.5) / double(share.ranks)),
      random_(RandomStream(seed, "arrivals").substream(run).substream(share.rank)) {}

// The time at which sample `number` is due. `at_ns` must have the time of the previous sample, and gets the
// time of this sample. Takes no lock.
int64_t Arrivals::due_ns(uint64_t number, double& at_ns) const {
  if (poisson_)
    at_ns -= gap_ns_ * portable_log(1 - random_.uniform(number));
  else
    // first_due_gaps_ is above 0 and below 1. So in a run of n gaps exactly n samples are due, and none of
    // them is due exactly at the end of the run.
    at_ns = gap_ns_ * (double(number) + first_due_gaps_);
  return int64_t(at_ns);
}

// Number and time change under one lock: with random gaps, the due time of a sample depends on that of the
// previous one.
int64_t Arrivals::next_ns() {
  const std::lock_guard lock(mutex_);
  return due_ns(times_given_++, last_due_ns_);
}

// Computes the due times of all samples again from the first one, instead of using last_due_ns_. So it needs
// no lock, and does not change what next_ns() returns.
uint64_t Arrivals::count_due(int64_t from_ns, int64_t to_ns) const {
  uint64_t count = 0;
  double at_ns = 0;
  for (uint64_t number = 0;; ++number) {
    const int64_t sample_due_ns = due_ns(number, at_ns);
    if (sample_due_ns >= to_ns) return count;
    if (sample_due_ns >= from_ns) ++count;
  }
}

}  // namespace penstock
