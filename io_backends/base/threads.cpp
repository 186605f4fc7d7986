#include "io_backends/base/threads.hpp"

#include <string>
#include <thread>
#include <vector>

namespace penstock {

Error no_more_threads(const std::system_error& error, std::size_t wanted) {
  return Error{Errc::exhausted, error.code().value(),
               "cannot start " + std::to_string(wanted) + " threads; ask for fewer"};
}

Result<void> on_threads(unsigned threads, const std::function<void(unsigned)>& work,
                        const std::function<void()>& give_up) {
  std::vector<std::jthread> others;
  try {
    others.reserve(threads);
    for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  } catch (const std::system_error& error) {
    give_up();
    return no_more_threads(error, threads);
  }
  work(0);
  return success();
}

}  // namespace penstock
