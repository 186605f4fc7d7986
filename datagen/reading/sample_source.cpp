#include "datagen/reading/sample_source.hpp"

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

std::uint64_t PassOrder::in_window(std::uint64_t position) {
  const std::uint64_t from = position / window_.samples * window_.samples;
  if (sorted_.empty() || sorted_from_ != from) {
    const std::uint64_t end = std::min(from + window_.samples, length_);
    sorted_.clear();
    for (std::uint64_t i = from; i < end; ++i) sorted_.push_back(first_ + permutation_.at(i));
    const std::vector<std::uint64_t>& places = *window_.places;
    std::sort(sorted_.begin(), sorted_.end(), [&](std::uint64_t a, std::uint64_t b) {
      return places[a] != places[b] ? places[a] < places[b] : a < b;
    });
    sorted_from_ = from;
  }
  return sorted_[position - from];
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
