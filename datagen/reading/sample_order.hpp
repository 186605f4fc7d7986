// Which sample is next, and when: the source that the threads of a run take samples from, and the orders of
// a pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {

enum class SampleOrder : std::uint8_t {
  sequential,
  shuffled,
  physical,  // shuffled, and each window of the shuffle sorted by its offsets on the device
};

// A few neighbouring positions of one pass.
struct Slice {
  std::uint64_t pass = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Gives the positions 0 .. samples-1 of pass after pass to threads, each position of a pass once. Never ends
// in the middle of a pass: whether a pass is the last is decided when all of it was given out. take() is one
// relaxed fetch_add, and takes a lock only between passes. Any thread.
class SampleSource {
 public:
  // `samples` > 0. Ends after `max_passes` whole passes (0: no bound), or with the pass in which
  // `at_least_ns` is over. Slices of short passes are short, so that threads finish together.
  SampleSource(std::uint64_t samples, unsigned threads, std::uint64_t max_passes, std::int64_t at_least_ns);

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
  const std::uint64_t max_passes_;
  const std::int64_t at_least_ns_;
  alignas(64) std::atomic<std::uint64_t> next_{0};
  alignas(64) std::atomic<std::uint64_t> limit_;
  std::mutex mutex_;
  bool ended_ = false;
};

// The part of each pass that is this rank's. The corpus is cut into runs of neighbours, one a rank, equally
// long but for one sample; from a pass to the next a rank moves on by `shift` runs.
struct RankShare {
  std::uint64_t rank = 0;
  std::uint64_t ranks = 1;
  std::uint64_t shift = 0;

  std::uint64_t run(std::uint64_t pass) const { return (rank + pass % ranks * (shift % ranks)) % ranks; }
  std::uint64_t begin(std::uint64_t samples, std::uint64_t pass) const { return samples * run(pass) / ranks; }
  std::uint64_t end(std::uint64_t samples, std::uint64_t pass) const {
    return samples * (run(pass) + 1) / ranks;
  }
  std::uint64_t longest(std::uint64_t samples) const { return (samples + ranks - 1) / ranks; }
};

// Position in a rank's share of a pass -> sample. Shuffled: another seeded permutation of the share every
// pass, the same on every machine. One thread.
class PassOrder {
 public:
  // `offsets` (by sample; they outlive the order) and `window` (samples sorted at a time, at least 1) are of
  // SampleOrder::physical.
  PassOrder(SampleOrder order, std::uint64_t samples, std::uint64_t seed, RankShare share = {},
            const std::vector<std::uint64_t>* offsets = nullptr, std::uint64_t window = 1)
      : order_(order),
        samples_(samples),
        seed_(seed),
        share_(share),
        offsets_(offsets),
        window_(window),
        permutation_(1, 0) {
    begin(0);
  }

  // The positions that the pass has here.
  std::uint64_t begin(std::uint64_t pass) {
    if (pass == pass_) return length_;
    pass_ = pass;
    first_ = share_.begin(samples_, pass);
    length_ = share_.end(samples_, pass) - first_;
    sorted_.clear();
    if (order_ != SampleOrder::sequential)
      permutation_ = Permutation(length_, pass_seed(seed_, pass * share_.ranks + share_.run(pass)));
    return length_;
  }

  std::uint64_t sample(std::uint64_t pass, std::uint64_t position) {
    begin(pass);
    if (order_ == SampleOrder::sequential) return first_ + position;
    return order_ == SampleOrder::shuffled ? first_ + permutation_.at(position) : in_window(position);
  }

  static std::uint64_t pass_seed(std::uint64_t seed, std::uint64_t pass) {
    return RandomStream(seed, "pass").bits(pass);
  }

 private:
  std::uint64_t in_window(std::uint64_t position);

  SampleOrder order_;
  std::uint64_t samples_;
  std::uint64_t seed_;
  RankShare share_;
  const std::vector<std::uint64_t>* offsets_;
  std::uint64_t window_;
  std::uint64_t pass_ = UINT64_MAX;
  std::uint64_t first_ = 0;   // of the share
  std::uint64_t length_ = 0;  // of the share
  Permutation permutation_;
  std::uint64_t sorted_from_ = 0;
  std::vector<std::uint64_t> sorted_;  // the window's samples; empty: none yet
};

// In an open loop, samples are due at a rate that does not wait for the tier, as requests of users do. A
// closed loop requests the next sample when it has the last one. If the tier stops for a second, it requests
// nothing meanwhile, and only one latency shows what many requests would have waited.
struct ClosedLoop {};

struct OpenLoop {
  double per_second = 0;  // of all ranks together
  bool poisson = false;   // independent of each other (exponentially distributed gaps), else evenly spaced
};

// The due times of one rank in one run. Any thread.
class Arrivals {
 public:
  // The times of a rank are between those of the others. Runs of the same seed and another `run` differ.
  Arrivals(const OpenLoop& loop, std::uint64_t seed, const RankShare& share, std::uint64_t run);

  // When the next sample is due, from the start of the run. Returns each time once.
  std::int64_t next_ns();

  // How many samples are due from `from_ns` on and before `to_ns`, whether next_ns() returned them or not.
  std::uint64_t between(std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  std::int64_t due_ns(std::uint64_t number, double& at_ns) const;

  const bool poisson_;
  const double gap_ns_;
  const double first_;  // time of the first, in gaps, if evenly spaced
  const RandomStream random_;
  std::mutex mutex_;         // of the two below
  std::uint64_t given_ = 0;  // times that next_ns() has returned
  double at_ns_ = 0;         // the last of them
};

}  // namespace penstock
