// Measures a function in alternation with the simplest loop that does the same work. Both run while the
// machine is in the same condition. So the ratio of their times is reliable even if the times themselves
// vary.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "io_backends/core/result.hpp"

namespace penstock {

struct Turns {
  // Number of calls between two clock reads. It must be so large that the clock reads take a negligible time.
  size_t batch = 1;
  uint64_t bytes = 0;        // bytes that one call processes; 0: the counter is calls per second
  bool has_baseline = true;  // false: no simpler loop does the same work, and `plain` is not called
};

// Calls `measured` and `plain`, one batch of each in turn. Which of the two comes first alternates. Both are
// functions without arguments that return void or Result<void>. The benchmark must have UseManualTime(), and
// its time is that of `measured` alone. Counters: bytes_per_second or items_per_second, and of_baseline,
// which is the time of `plain` divided by the time of `measured` (0.98: `measured` is 2% slower). Ends with
// the first error.
template <class Measured, class Plain>
Result<void> by_turns(benchmark::State& state, const Turns& turns, Measured measured, Plain plain) {
  using Clock = std::chrono::steady_clock;
  const auto run_batch = [&turns](auto& call, double& seconds) -> Result<void> {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < turns.batch; ++i) {
      if constexpr (std::is_void_v<decltype(call())>)
        call();
      else
        PENSTOCK_TRY(call());
    }
    seconds += std::chrono::duration<double>(Clock::now() - start).count();
    return success();
  };
  double measured_s = 0;
  double plain_s = 0;
  // Pauses the timer, so that the benchmark's processor time does not include the plain loop either.
  const auto run_plain_batch = [&]() -> Result<void> {
    state.PauseTiming();
    Result<void> done = run_batch(plain, plain_s);
    state.ResumeTiming();
    return done;
  };
  bool plain_first = false;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(turns.batch))) {
    const double before_s = measured_s;
    if (plain_first && turns.has_baseline) PENSTOCK_TRY(run_plain_batch());
    PENSTOCK_TRY(run_batch(measured, measured_s));
    if (!plain_first && turns.has_baseline) PENSTOCK_TRY(run_plain_batch());
    plain_first = !plain_first;
    state.SetIterationTime(measured_s - before_s);
  }
  if (turns.bytes != 0)
    state.SetBytesProcessed(int64_t(turns.bytes) * state.iterations());
  else
    state.SetItemsProcessed(state.iterations());
  if (turns.has_baseline && measured_s > 0)
    state.counters["of_baseline"] = benchmark::Counter(plain_s / measured_s, benchmark::Counter::kAvgThreads);
  return success();
}

}  // namespace penstock
