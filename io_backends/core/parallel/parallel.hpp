// Runs work over many objects on a few threads. generate and its recipes, scan, verify, copy and cache
// control share this loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

// Returns `wanted`. If that is 0, it returns the number of processors and at least 4, since most threads wait
// for storage.
unsigned worker_threads(std::uint64_t wanted);

// For work that does not wait: returns `wanted`, or the number of processors if it is 0.
unsigned compute_threads(unsigned wanted);

// A run of consecutive indices for one thread: [begin, end). Empty if begin equals end.
struct IndexRun {
  std::uint64_t begin;
  std::uint64_t end;
};

// Takes the next run of `count` indices for one of `threads` threads: up to `most` indices, and fewer towards
// the end, so that all threads end at about the same time. Lock-free. `next` guards no other memory, hence
// relaxed.
inline IndexRun take_run(std::atomic<std::uint64_t>& next, std::uint64_t count, unsigned threads,
                         std::uint64_t most) {
  std::uint64_t begin = next.load(std::memory_order_relaxed);
  while (begin < count) {
    const std::uint64_t share = (count - begin) / (std::uint64_t{4} * std::max(threads, 1U));
    const std::uint64_t end = begin + std::clamp<std::uint64_t>(share, 1, most);
    if (next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) return {begin, end};
  }
  return {count, count};
}

// Calls each(thread, index) for every index below `count`, on up to `threads` threads. Each thread takes up
// to `run` consecutive indices at a time. After an error the other threads finish the indices that they have
// and take no more. Returns the first error.
template <class Each>
Result<void> for_each_index(std::uint64_t count, unsigned threads, std::uint64_t run, Each each) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stopped{false};
  const auto stop = [&stopped] { stopped.store(true, std::memory_order_relaxed); };
  threads = static_cast<unsigned>(std::min<std::uint64_t>(threads, count));
  const auto work = [&](unsigned worker) -> Result<void> {
    while (!stopped.load(std::memory_order_relaxed)) {
      const IndexRun mine = take_run(next, count, threads, run);
      if (mine.begin == mine.end) break;
      for (std::uint64_t index = mine.begin; index < mine.end; ++index) {
        Result<void> done = each(worker, index);
        if (done.ok()) continue;
        stop();
        return done;
      }
    }
    return success();
  };
  return on_threads(threads, work, IfFewer::go_on, stop);
}

// Like for_each_index(). Each thread also checks before each index whether the process is asked to stop, and
// then returns `interrupted`.
template <class Each>
Result<void> parallel_for(std::uint64_t count, unsigned threads, std::uint64_t run, Each each) {
  return for_each_index(count, threads, run, [&](unsigned worker, std::uint64_t index) -> Result<void> {
    PENSTOCK_TRY(check_interrupt());
    return each(worker, index);
  });
}

}  // namespace penstock
