#include "io_backends/base/threads.hpp"

#include <time.h>

#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace penstock {

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Error no_more_threads(const std::system_error& error, std::size_t wanted) {
  return Error{Errc::exhausted, error.code().value(),
               "cannot start " + std::to_string(wanted) + " threads; ask for fewer"};
}

Result<void> on_threads(unsigned threads, const std::function<void(unsigned)>& work,
                        const std::function<void()>& give_up) {
  std::atomic<bool> no_memory{false};
  const auto guarded = [&](unsigned thread) {
    try {
      work(thread);
    } catch (const std::bad_alloc&) {
      no_memory.store(true, std::memory_order_relaxed);
      give_up();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      others.reserve(threads);
      for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(guarded, thread);
    } catch (const std::system_error& error) {
      give_up();
      return no_more_threads(error, threads);
    }
    guarded(0);
  }
  if (no_memory) return make_error(Errc::exhausted, "out of memory");
  return success();
}

}  // namespace penstock
