// What is measured, by turns with the simplest loop that does the same work: both see the same minutes of the
// machine, so that the ratio of their times holds where neither time does.
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
  size_t batch = 1;          // calls in a row: many enough that two looks at the clock are nothing to them
  uint64_t bytes = 0;        // of a call; 0: calls are counted, not bytes
  bool has_baseline = true;  // false: nothing simpler does the same, and `plain` is not called
};

// Calls `measured` and `plain` (no arguments; void or Result<void>), a batch of either after one of the
// other, who is first changing. Of the benchmark, which has to be UseManualTime(), the time is that of
// `measured` alone. Counters: bytes_per_second or items_per_second, and of_baseline, the plain loop's time
// over that of the measured one: 0.98 means that it is 2% slower. Ends with the first error.
template <class Measured, class Plain>
Result<void> by_turns(benchmark::State& state, const Turns& turns, Measured measured, Plain plain) {
  using Clock = std::chrono::steady_clock;
  const auto take = [&turns](auto& call, double& seconds) -> Result<void> {
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
  // Not in the benchmark's processor time, either.
  const auto take_plain = [&]() -> Result<void> {
    state.PauseTiming();
    Result<void> done = take(plain, plain_s);
    state.ResumeTiming();
    return done;
  };
  bool plain_first = false;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(turns.batch))) {
    const double before_s = measured_s;
    if (plain_first && turns.has_baseline) PENSTOCK_TRY(take_plain());
    PENSTOCK_TRY(take(measured, measured_s));
    if (!plain_first && turns.has_baseline) PENSTOCK_TRY(take_plain());
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
