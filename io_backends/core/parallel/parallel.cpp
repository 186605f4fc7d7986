// Threads: few indices are done by threads of their own. oneTBB starts its threads when they are first
// needed, and they wait for work until the process ends. A call of for_each_run() returns when none of them
// is in its work any more.
// Lock: `mutex` guards only the first error. It is not held while `work` runs.
// Fork: oneTBB's threads are not in a child, so no process may fork while work runs here.
// Ctrl-C: not checked here; parallel_for() checks it before each index.
#include "io_backends/core/parallel/parallel.hpp"

#ifndef PENSTOCK_THREAD_SANITIZER
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/system/scope.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

constexpr unsigned kMaxThreads = 1024;

#ifndef PENSTOCK_THREAD_SANITIZER  // which knows nothing of the locks in a library that was built without it

// Whether the system lets this process have `threads` more threads at once, and a few for other programs.
// oneTBB ends the process if it cannot start a thread, so this function tries it first.
bool can_start(unsigned threads) {
  constexpr unsigned kMargin = 2;
  std::mutex mutex;
  std::condition_variable changed;
  bool tried = false;
  bool all_started = true;
  std::vector<std::jthread> waiting;
  try {
    for (unsigned i = 0; i < threads + kMargin; ++i)
      waiting.emplace_back([&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return tried; });
      });
  } catch (const std::exception&) {
    all_started = false;
  }
  {
    const std::lock_guard lock(mutex);
    tried = true;
  }
  changed.notify_all();
  return all_started;
}

// The threads of oneTBB that have worked here and still exist. It may have more: it starts them only when
// there is work for them.
std::atomic<unsigned> pool_threads{0};

// Counts the calling thread in pool_threads until it ends.
void count_pool_thread() {
  thread_local const AtScopeEnd counted = [] {
    pool_threads.fetch_add(1, std::memory_order_relaxed);
    return AtScopeEnd([] { pool_threads.fetch_sub(1, std::memory_order_relaxed); });
  }();
}

// Whether oneTBB can use `threads` threads. One of them is the caller.
bool pool_can_have(unsigned threads) {
  const unsigned existing = 1 + pool_threads.load(std::memory_order_relaxed);
  return threads <= existing || can_start(threads - existing);
}

Result<void> on_pool(unsigned threads, const std::function<Result<void>(unsigned)>& work,
                     const std::function<void()>& give_up) {
  // By default oneTBB uses no more threads than there are processors. Here most threads wait for storage.
  static const tbb::global_control kLimit(tbb::global_control::max_allowed_parallelism, kMaxThreads);
  const std::thread::id caller = std::this_thread::get_id();
  std::mutex mutex;
  Result<void> first_error;
  const auto call = [&](unsigned thread) {
    if (std::this_thread::get_id() != caller) count_pool_thread();
    Result<void> done = on_threads(
        1, [&](unsigned) { return work(thread); }, IfFewer::go_on, give_up);
    if (done.ok()) return;
    const std::lock_guard lock(mutex);
    if (first_error.ok()) first_error = std::move(done);
  };
  try {
    tbb::task_arena arena{int(threads)};
    arena.execute([&] { tbb::parallel_for(0U, threads, call, tbb::simple_partitioner()); });
  } catch (const std::exception& error) {  // oneTBB's own: `call` throws nothing
    return make_error(Errc::exhausted, "cannot start threads: {}", error.what());
  }
  return first_error;
}

#endif

}  // namespace

unsigned worker_threads(uint64_t wanted) {
  if (wanted == 0) wanted = std::max(4U, usable_cpus());
  return unsigned(std::min<uint64_t>(wanted, kMaxThreads));
}

unsigned compute_threads(unsigned wanted) {
  return wanted != 0 ? wanted : usable_cpus();
}

Result<void> for_each_run(uint64_t count, unsigned threads, uint64_t max_run,
                          const std::function<Result<void>(unsigned, IndexRun)>& work) {
  std::atomic<uint64_t> next_index{0};
  std::atomic<bool> stopped{false};
  const auto stop = [&stopped] { stopped.store(true, std::memory_order_relaxed); };
  threads = unsigned(std::min<uint64_t>(threads, count));
  const auto take_runs = [&](unsigned thread) -> Result<void> {
    while (!stopped.load(std::memory_order_relaxed)) {
      const IndexRun run = take_run(next_index, count, threads, max_run);
      if (run.begin == run.end) break;
      Result<void> done = work(thread, run);
      if (done.ok()) continue;
      stop();
      return done;
    }
    return success();
  };
#ifndef PENSTOCK_THREAD_SANITIZER
  // The first use of oneTBB takes 4 ms, as long as a scan of about a thousand files.
  constexpr uint64_t kFewest = 1024;
  if (threads > 1 && count >= kFewest && pool_can_have(threads)) return on_pool(threads, take_runs, stop);
#endif
  return on_threads(threads, take_runs, IfFewer::go_on, stop);
}

}  // namespace penstock
