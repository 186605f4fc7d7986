// Decides which sample is read next, and when. SampleSource gives positions of a pass to the threads of a
// run, PassOrder says which sample is at a position, and Arrivals says when a sample is due.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {

enum class SampleOrder : uint8_t {
  sequential,
  shuffled,
  physical,  // shuffled, and then sorted by device offset within each window of samples
};

// Neighbouring positions of one pass, which one thread reads.
struct Slice {
  uint64_t pass = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Gives the positions of passes to threads. In each pass, each position from 0 to samples - 1 is given once.
// Passes are always given completely. When all positions of a pass are given, it decides whether another pass
// follows.
// take() is one relaxed fetch_add, and takes a lock only between passes. Any thread may use it.
class SampleSource {
 public:
  // `samples` must not be 0. Ends after `max_passes` whole passes (0: no limit), or with the pass in which
  // `min_time_ns` is reached, whichever comes first. If a pass is short, its slices are short too, so that
  // all threads finish at about the same time.
  SampleSource(uint64_t samples, unsigned threads, uint64_t max_passes, int64_t min_time_ns);

  // Sets `slice` to the next positions. Returns false after the last pass. `now_ns` is the time since the
  // start of the run.
  bool take(int64_t now_ns, Slice& slice) {
    const uint64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
    if (ticket >= ticket_limit_.load(std::memory_order_acquire) && !try_start_pass(ticket, now_ns))
      return false;
    slice.pass = ticket / slices_per_pass_;
    slice.begin = (ticket % slices_per_pass_) * slice_samples_;
    slice.end = slice.begin + slice_samples_ < samples_ ? slice.begin + slice_samples_ : samples_;
    return true;
  }

  // The number of passes that were started. Each of them is given to threads completely.
  uint64_t passes() const { return ticket_limit_.load(std::memory_order_acquire) / slices_per_pass_; }

 private:
  bool try_start_pass(uint64_t ticket, int64_t now_ns);

  const uint64_t samples_;
  const uint64_t slice_samples_;
  const uint64_t slices_per_pass_;
  const uint64_t max_passes_;
  const int64_t min_time_ns_;
  alignas(64) std::atomic<uint64_t> next_ticket_{0};
  alignas(64) std::atomic<uint64_t> ticket_limit_;
  std::mutex mutex_;
  bool ended_ = false;
};

// The part of each pass that this rank reads. The corpus is divided into as many parts of neighbouring
// samples as there are ranks; their lengths differ by at most one sample. In each pass a rank reads the part
// that is `shift` parts after that of the pass before.
struct RankShare {
  uint64_t rank = 0;
  uint64_t ranks = 1;
  uint64_t shift = 0;

  uint64_t part_index(uint64_t pass) const { return (rank + pass % ranks * (shift % ranks)) % ranks; }
  uint64_t begin(uint64_t samples, uint64_t pass) const { return samples * part_index(pass) / ranks; }
  uint64_t end(uint64_t samples, uint64_t pass) const { return samples * (part_index(pass) + 1) / ranks; }
  uint64_t largest_part(uint64_t samples) const { return (samples + ranks - 1) / ranks; }
};

// The order of a pass: maps each position in a rank's share to a sample. If shuffled, every pass has a
// different permutation of the share. The permutations depend only on the seed and are equal on every
// machine. Only one thread may use it.
class PassOrder {
 public:
  // `offsets` and `window` are used only for SampleOrder::physical. `offsets` has the device offset of each
  // sample and must outlive the order. `window` is how many samples are sorted together, at least 1.
  PassOrder(SampleOrder order, uint64_t samples, uint64_t seed, RankShare share = {},
            const std::vector<uint64_t>* offsets = nullptr, uint64_t window = 1)
      : order_(order),
        samples_(samples),
        seed_(seed),
        share_(share),
        offsets_(offsets),
        window_(window),
        permutation_(1, 0) {
    begin(0);
  }

  // Starts a pass. Returns the number of positions in this rank's share of it.
  uint64_t begin(uint64_t pass) {
    if (pass == pass_) return share_samples_;
    pass_ = pass;
    first_sample_ = share_.begin(samples_, pass);
    share_samples_ = share_.end(samples_, pass) - first_sample_;
    sorted_samples_.clear();
    if (order_ != SampleOrder::sequential)
      permutation_ =
          Permutation(share_samples_, pass_seed(seed_, pass * share_.ranks + share_.part_index(pass)));
    return share_samples_;
  }

  uint64_t sample(uint64_t pass, uint64_t position) {
    begin(pass);
    if (order_ == SampleOrder::sequential) return first_sample_ + position;
    return order_ == SampleOrder::shuffled ? first_sample_ + permutation_.at(position)
                                           : in_window_order(position);
  }

  static uint64_t pass_seed(uint64_t seed, uint64_t pass) { return RandomStream(seed, "pass").bits(pass); }

 private:
  uint64_t in_window_order(uint64_t position);

  SampleOrder order_;
  uint64_t samples_;
  uint64_t seed_;
  RankShare share_;
  const std::vector<uint64_t>* offsets_;
  uint64_t window_;
  uint64_t pass_ = UINT64_MAX;
  uint64_t first_sample_ = 0;   // first sample of the share
  uint64_t share_samples_ = 0;  // number of samples in the share
  Permutation permutation_;
  uint64_t sorted_window_begin_ = 0;
  // The samples of the window that starts at sorted_window_begin_, sorted by device offset. Empty if no
  // window of this pass was sorted yet.
  std::vector<uint64_t> sorted_samples_;
};

// The rate of an open loop: samples are due at a given rate, as requests of users are, even if the tier is
// slow. In a closed loop, a thread requests the next sample only when its last one has arrived. So if the
// tier stops for a second, a closed loop requests nothing in that time, and only one latency shows the delay.
// In an open loop, all samples due in that second show it.
struct OpenLoop {
  double per_second = 0;  // samples per second, of all ranks together
  bool poisson = false;   // true: exponentially distributed gaps (a Poisson process); false: equal gaps
};

// Gives the times at which samples are due in an open loop, for one rank in one run. Any thread may use it.
class Arrivals {
 public:
  // Divides the rate of `loop` equally among the ranks. If the gaps are equal, the due times of the ranks
  // alternate. If the gaps are random, the due times depend on `seed`, `run` and the rank.
  Arrivals(const OpenLoop& loop, uint64_t seed, const RankShare& share, uint64_t run);

  // The time at which the next sample is due, in ns since the start of the run. Each call returns the time of
  // a different sample.
  int64_t next_ns();

  // How many samples are due in [from_ns, to_ns). It also counts samples that next_ns() has not returned yet.
  uint64_t count_due(int64_t from_ns, int64_t to_ns) const;

 private:
  int64_t due_ns(uint64_t number, double& at_ns) const;

  const bool poisson_;
  const double gap_ns_;
  const double first_due_gaps_;  // due time of the first sample, in gaps; used if the gaps are equal
  const RandomStream random_;
  std::mutex mutex_;          // guards times_given_ and last_due_ns_
  uint64_t times_given_ = 0;  // how many due times next_ns() has returned
  double last_due_ns_ = 0;    // what next_ns() returned last
};

}  // namespace penstock
