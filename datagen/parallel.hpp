// Work over many objects by a few threads: the loop that generate, scan, verify, copy and cache control
// share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

// `wanted`, or as many threads as this machine has processors and at least 4, since most of them wait for
// storage.
unsigned worker_threads(std::uint64_t wanted);

// The first error of many threads. Any thread.
class FirstError {
 public:
  void keep(Error error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // When all threads have ended.
  Result<void> result() {
    if (error_) return *std::move(error_);
    return success();
  }

 private:
  std::mutex mutex_;
  std::optional<Error> error_;
  std::atomic<bool> failed_{false};
};

// Runs work(worker) on `threads` threads and waits. Exceptions (no memory) become errors; a thread that the
// machine will not give is done without, as long as there is one.
template <class Work>
Result<void> on_threads(unsigned threads, Work work) {
  FirstError first;
  const auto guarded = [&](unsigned worker) {
    try {
      if (Result<void> done = work(worker); !done.ok()) first.keep(std::move(done).error());
    } catch (const std::exception& thrown) {
      first.keep(make_error(Errc::exhausted, std::string("a worker ran out of something: ") + thrown.what()));
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (unsigned worker = 1; worker < threads; ++worker) others.emplace_back(guarded, worker);
    } catch (const std::exception&) {
      // The ones that started do the work of all.
    }
    guarded(0);
  }
  return first.result();
}

// Neighbours that a thread works on: [begin, end), none when begin is end.
struct IndexRun {
  std::uint64_t begin;
  std::uint64_t end;
};

// The next of `count` indices for one of `threads` threads: up to `most`, and fewer towards the end, so that
// all threads end at about the same time.
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

// Calls each(worker, index) for every index below `count`, in runs of up to `run` neighbours, until one fails
// or the user stops us (Errc::interrupted).
template <class Each>
Result<void> parallel_for(std::uint64_t count, unsigned threads, std::uint64_t run, Each each) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  return on_threads(threads, [&](unsigned worker) -> Result<void> {
    while (!stop.load(std::memory_order_relaxed)) {
      const IndexRun mine = take_run(next, count, threads, run);
      if (mine.begin == mine.end) break;
      for (std::uint64_t index = mine.begin; index < mine.end; ++index) {
        Result<void> done = check_interrupt();
        if (done.ok()) done = each(worker, index);
        if (!done.ok()) {
          stop.store(true, std::memory_order_relaxed);
          return done;
        }
      }
    }
    return success();
  });
}

}  // namespace penstock
