#include "miniapps/pipeline/step_barrier.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace penstock {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

Result<SteadyTime> StepBarrier::begin() {
  PENSTOCK_TRY(ranks_.barrier());
  together_ = Clock::now();
  return together_;
}

Result<StepBarrier::Over> StepBarrier::arrive(bool made) {
  const SteadyTime came = Clock::now();
  const double since = std::chrono::duration<double, std::nano>(came - together_).count();
  std::array<double, 2> most{since, made ? 0.0 : 1.0};
  PENSTOCK_TRY(ranks_.all_reduce(std::span<double>(most), Reduction::max));
  Over over;
  over.at = together_ = Clock::now();
  const nanoseconds waited = over.at - came;
  over.for_all = most[1] == 0.0;
  over.straggler = std::min(waited, nanoseconds(static_cast<std::int64_t>(most[0] - since)));
  over.barrier = waited - over.straggler;
  over.last = most[0] == since;
  return over;
}

}  // namespace penstock
