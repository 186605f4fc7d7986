// An open loop: samples that are due at a rate which does not wait for the tier, as requests of users do.
// A closed loop asks for the next one when it has the last; where the tier stops for a second, it asks for
// nothing meanwhile, and one bad latency stands for all those that would have waited.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "io_backends/core/random.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct ArrivalRate {
  double per_second = 0;  // of all ranks together
  bool poisson = false;   // independent of each other (exponentially distributed gaps), else evenly spaced
  std::uint64_t seed = 0;
  unsigned rank = 0;
  unsigned ranks = 1;  // each has its own part, between those of the others
};

// "500", "500/s", "2.5k", "500/s,poisson". invalid_argument for anything else and for rates that are not from
// 0.001 to 1e9.
Result<ArrivalRate> parse_arrival_rate(std::string_view text);

// One rank's, of one run. Any thread.
class Arrivals {
 public:
  // `run` tells runs of the same seed apart.
  Arrivals(const ArrivalRate& rate, std::uint64_t run);

  // When the next sample is due, from the start; every time is given out once.
  std::int64_t next_ns();

  // How many are due from `from_ns` on and before `to_ns`, whether they were given out or not.
  std::uint64_t between(std::int64_t from_ns, std::int64_t to_ns) const;

 private:
  std::int64_t due_ns(std::uint64_t number, double& at_ns) const;

  const ArrivalRate rate_;
  const double gap_ns_;
  const RandomStream random_;
  std::mutex mutex_;  // of the two below
  std::uint64_t given_ = 0;
  double at_ns_ = 0;
};

}  // namespace penstock
