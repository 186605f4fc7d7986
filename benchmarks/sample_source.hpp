// Which sample is next: one shared counter that a sweep's threads draw from.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "io_backends/base/random.hpp"

namespace penstock {

enum class SampleOrder : std::uint8_t {
  sequential,
  shuffled,
  physical,  // shuffled, and each window of the shuffle as it lies on the device
};

// When a run over a corpus ends. Times in nanoseconds since the run's start.
struct PassLimits {
  std::uint64_t max_passes = 0;  // whole passes; 0: as many as the time asks for
  std::int64_t at_least_ns = 0;  // another pass is added until this much time has gone by
};

// A few neighbouring positions of one pass.
struct Slice {
  std::uint64_t pass = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Hands the positions 0 .. samples-1 of pass after pass to threads, each position of a pass once, and never
// ends in the middle of one: that a pass is the last is decided when it has been given out. take() is one
// relaxed fetch_add, and a lock only between passes. Any thread.
class SampleSource {
 public:
  // `samples` > 0. Slices are short where passes are, so that threads finish together.
  SampleSource(std::uint64_t samples, unsigned threads, PassLimits limits);

  // False when there is no more. `now_ns`: the caller's time since the start.
  bool take(std::int64_t now_ns, Slice& slice) {
    const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    if (ticket >= limit_.load(std::memory_order_acquire) && !extend(ticket, now_ns)) return false;
    slice.pass = ticket / slices_a_pass_;
    slice.begin = (ticket % slices_a_pass_) * slice_;
    slice.end = slice.begin + slice_ < samples_ ? slice.begin + slice_ : samples_;
    return true;
  }

  // Whole passes given out.
  std::uint64_t passes() const { return limit_.load(std::memory_order_acquire) / slices_a_pass_; }

 private:
  bool extend(std::uint64_t ticket, std::int64_t now_ns);

  const std::uint64_t samples_;
  const std::uint64_t slice_;
  const std::uint64_t slices_a_pass_;
  const PassLimits limits_;
  alignas(64) std::atomic<std::uint64_t> next_{0};
  alignas(64) std::atomic<std::uint64_t> limit_;
  std::mutex mutex_;
  bool ended_ = false;
};

// How SampleOrder::physical sorts; nothing else looks at it.
struct PhysicalWindow {
  const std::vector<std::uint64_t>* places = nullptr;  // by sample, smaller first; outlives the order
  std::uint64_t samples = 0;                           // sorted at a time; at least 1
};

// Position in a pass -> sample. Shuffled: another seeded permutation every pass, the same on every machine.
// One thread.
class PassOrder {
 public:
  PassOrder(SampleOrder order, std::uint64_t samples, std::uint64_t seed, PhysicalWindow window = {})
      : order_(order), seed_(seed), window_(window), permutation_(samples, pass_seed(seed, 0)) {}

  std::uint64_t sample(std::uint64_t pass, std::uint64_t position) {
    if (order_ == SampleOrder::sequential) return position;
    if (pass != pass_) {
      permutation_ = Permutation(permutation_.size(), pass_seed(seed_, pass));
      pass_ = pass;
      sorted_.clear();
    }
    return order_ == SampleOrder::shuffled ? permutation_.at(position) : in_window(position);
  }

  static std::uint64_t pass_seed(std::uint64_t seed, std::uint64_t pass) {
    return RandomStream(seed, "pass").bits(pass);
  }

 private:
  std::uint64_t in_window(std::uint64_t position);

  SampleOrder order_;
  std::uint64_t seed_;
  PhysicalWindow window_;
  std::uint64_t pass_ = 0;
  Permutation permutation_;
  std::uint64_t sorted_from_ = 0;
  std::vector<std::uint64_t> sorted_;  // the window's samples; empty: none yet
};

}  // namespace penstock
