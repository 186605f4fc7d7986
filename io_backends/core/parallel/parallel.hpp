// Runs work over many objects on a few threads. Generating, scanning, verifying, copying and the control of
// the page cache all use it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {

// Returns the number of threads for work that waits for storage: `wanted` if it is not 0. Otherwise it is the
// number of processors that can be used, but at least 4.
unsigned worker_threads(uint64_t wanted);

// Returns the number of threads for work that only computes: `wanted` if it is not 0. Otherwise it is the
// number of processors that can be used (usable_cpus()).
unsigned compute_threads(unsigned wanted);

// The consecutive indices [begin, end) for one thread. There are none if begin equals end.
struct IndexRun {
  uint64_t begin;
  uint64_t end;
};

// Takes the next indices below `count` for one of `threads` threads: up to `max_run` of them, and fewer
// towards the end, so that all threads end at about the same time. Lock-free. Its atomic operations are
// relaxed, because no other memory depends on `next_index`.
inline IndexRun take_run(std::atomic<uint64_t>& next_index, uint64_t count, unsigned threads,
                         uint64_t max_run) {
  uint64_t begin = next_index.load(std::memory_order_relaxed);
  while (begin < count) {
    const uint64_t fair_share = (count - begin) / (uint64_t{4} * std::max(threads, 1U));
    const uint64_t end = begin + std::clamp<uint64_t>(fair_share, 1, max_run);
    if (next_index.compare_exchange_weak(begin, end, std::memory_order_relaxed)) return {begin, end};
  }
  return {count, count};
}

// Calls work(thread, run) with runs of consecutive indices, until every index below `count` was in one of
// them. `thread` is below `threads`, and no two calls with the same `thread` run at the same time. A run has
// up to `max_run` indices. After an error the other threads finish their runs and take no more. Returns the
// first error; an exception becomes an error. Uses the threads of oneTBB; threads of its own if `count` is
// small, and fewer of them where the system refuses threads.
Result<void> for_each_run(uint64_t count, unsigned threads, uint64_t max_run,
                          const std::function<Result<void>(unsigned thread, IndexRun run)>& work);

// Calls each(thread, index) for every index below `count`, on up to `threads` threads. Each thread takes up
// to `max_run` consecutive indices at a time. After an error the other threads finish the indices that they
// have and take no more. Returns the first error.
template <class Each>
Result<void> for_each_index(uint64_t count, unsigned threads, uint64_t max_run, Each each) {
  return for_each_run(count, threads, max_run, [&](unsigned thread, IndexRun run) -> Result<void> {
    for (uint64_t index = run.begin; index < run.end; ++index) PENSTOCK_TRY(each(thread, index));
    return success();
  });
}

// Does the same as for_each_index(), but checks before each index whether the process is asked to stop. After
// such a request it returns `interrupted`.
template <class Each>
Result<void> parallel_for(uint64_t count, unsigned threads, uint64_t max_run, Each each) {
  return for_each_index(count, threads, max_run, [&](unsigned worker, uint64_t index) -> Result<void> {
    PENSTOCK_TRY(check_interrupt());
    return each(worker, index);
  });
}

}  // namespace penstock
