// Threads: on_threads() joins all its threads before it returns, so `work` may use the caller's local
// variables.
// Lock: `mutex` guards only the first error. It is not held while `work` or `give_up` runs.
// Memory: an error may allocate. If that throws on a thread that on_threads() started, the process ends.
// Ctrl-C: this file does not check for a signal; `work` must do so.
#include "io_backends/core/system/threads.hpp"

#include <time.h>

#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock {

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

Result<void> on_threads(unsigned threads, const std::function<Result<void>(unsigned)>& work, IfFewer if_fewer,
                        const std::function<void()>& give_up, std::string_view fewer) {
  std::mutex mutex;
  Result<void> first_error;
  const auto store_error = [&](Error error) {
    const std::lock_guard lock(mutex);
    if (first_error.ok()) first_error = std::move(error);
  };
  const auto fail_and_give_up = [&](Error error) {
    store_error(std::move(error));
    if (give_up) give_up();
  };
  const auto guarded = [&](unsigned thread) {
    try {
      if (Result<void> done = work(thread); !done.ok()) store_error(std::move(done).error());
    } catch (const std::exception& thrown) {
      fail_and_give_up(error_of(thrown));
    }
  };
  bool all_started = true;
  {
    std::vector<std::jthread> other_threads;
    try {
      for (unsigned thread = 1; thread < threads; ++thread) other_threads.emplace_back(guarded, thread);
    } catch (const std::system_error& error) {
      all_started = if_fewer == IfFewer::go_on;
      if (!all_started) fail_and_give_up(no_more_threads(error, threads, fewer));
    } catch (const std::bad_alloc&) {
      all_started = if_fewer == IfFewer::go_on;
      if (!all_started) fail_and_give_up(make_error(Errc::exhausted, "no memory for threads"));
    }
    if (all_started) guarded(0);
  }
  return first_error;
}

void on_threads_or_here(unsigned threads, const std::function<void(unsigned)>& work) {
  std::vector<std::jthread> other_threads;
  unsigned thread = 1;
  try {
    for (; thread < threads; ++thread) other_threads.emplace_back(work, thread);
  } catch (const std::system_error&) {
    for (; thread < threads; ++thread) work(thread);
  }
  work(0);
}

}  // namespace penstock
