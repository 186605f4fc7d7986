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

// The next of `count` indices for one of `threads` threads: `run` neighbours, and fewer towards the end, so
// that all threads end at about the same time. Begins at `count` or beyond when there are no more.
inline std::uint64_t take_run(std::atomic<std::uint64_t>& next, std::uint64_t count, unsigned threads,
                              std::uint64_t& run) {
  const std::uint64_t most = run;
  std::uint64_t begin = next.load(std::memory_order_relaxed);
  do {
    if (begin >= count) return begin;
    run = std::clamp<std::uint64_t>((count - begin) / (std::uint64_t{4} * threads), 1, most);
  } while (!next.compare_exchange_weak(begin, begin + run, std::memory_order_relaxed));
  return begin;
}

// Calls each(worker, index) for every index below `count`, in runs of up to `run` neighbours, until one fails
// or the user stops us (Errc::interrupted).
template <class Each>
Result<void> parallel_for(std::uint64_t count, unsigned threads, std::uint64_t run, Each each) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  return on_threads(threads, [&](unsigned worker) -> Result<void> {
    while (!stop.load(std::memory_order_relaxed)) {
      std::uint64_t taken = run;
      const std::uint64_t begin = take_run(next, count, threads, taken);
      if (begin >= count) break;
      for (std::uint64_t index = begin; index < begin + taken; ++index) {
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
