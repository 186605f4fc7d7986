// An open loop: samples that are due at a rate which does not wait for the tier, as requests of users do.
// A closed loop asks for the next one when it has the last; where the tier stops for a second, it asks for
// nothing meanwhile, and one bad latency stands for all those that would have waited.
#pragma once

#include <cstdint>
#include <mutex>

#include "datagen/reading/sample_source.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

struct ClosedLoop {};

struct OpenLoop {
  double per_second = 0;  // of all ranks together
  bool poisson = false;   // independent of each other (exponentially distributed gaps), else evenly spaced
};

// One rank's, of one run. Any thread.
class Arrivals {
 public:
  // Each rank has its own part, between those of the others. `run` tells runs of the same seed apart.
  Arrivals(const OpenLoop& loop, std::uint64_t seed, const RankShare& share, std::uint64_t run);

  // When the next sample is due, from the start; every time is given out once.
  std::int64_t next_ns();

  // How many are due from `from_ns` on and before `to_ns`, whether they were given out or not.
  std::uint64_t between(std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  std::int64_t due_ns(std::uint64_t number, double& at_ns) const;

  const bool poisson_;
  const double gap_ns_;
  const double first_;  // of evenly spaced ones, in gaps
  const RandomStream random_;
  std::mutex mutex_;  // of the two below
  std::uint64_t given_ = 0;
  double at_ns_ = 0;
};

}  // namespace penstock
