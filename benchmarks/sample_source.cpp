#include "benchmarks/sample_source.hpp"

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

SampleSource::SampleSource(std::uint64_t samples, unsigned threads, PassLimits limits)
    : samples_(samples),
      slice_(slice_length(samples, threads)),
      slices_a_pass_((samples + slice_ - 1) / slice_),
      limits_(limits),
      limit_(slices_a_pass_) {
  assert(samples > 0);
}

bool SampleSource::extend(std::uint64_t ticket, std::int64_t now_ns) {
  std::lock_guard lock(mutex_);
  while (ticket >= limit_.load(std::memory_order_relaxed)) {
    if (limits_.max_passes != 0 && passes() >= limits_.max_passes) ended_ = true;
    if (now_ns >= limits_.at_least_ns) ended_ = true;
    if (ended_) return false;
    limit_.store(limit_.load(std::memory_order_relaxed) + slices_a_pass_, std::memory_order_release);
  }
  return true;
}

}  // namespace penstock
