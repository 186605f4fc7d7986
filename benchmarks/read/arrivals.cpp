#include "benchmarks/read/arrivals.hpp"

namespace penstock {
Arrivals::Arrivals(const OpenLoop& loop, std::uint64_t seed, const RankShare& share, std::uint64_t run)
    : poisson_(loop.poisson),
      gap_ns_(1e9 * static_cast<double>(share.ranks) / loop.per_second),
      first_((static_cast<double>(share.rank) + 0.5) / static_cast<double>(share.ranks)),
      random_(RandomStream(seed, "arrivals").substream(run).substream(share.rank)) {}

// `at_ns` is where the one before was.
std::int64_t Arrivals::due_ns(std::uint64_t number, double& at_ns) const {
  if (poisson_)
    at_ns -= gap_ns_ * portable_log(1 - random_.uniform(number));
  else
    // Amid its gap: a run of whole gaps has as many, and none is due at its end.
    at_ns = gap_ns_ * (static_cast<double>(number) + first_);
  return static_cast<std::int64_t>(at_ns);
}

std::int64_t Arrivals::next_ns() {
  const std::lock_guard lock(mutex_);
  return due_ns(given_++, at_ns_);
}

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
