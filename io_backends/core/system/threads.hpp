// Runs the same work on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "io_backends/core/limits.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What happens if the system starts fewer threads than wanted.
enum class IfFewer : uint8_t {
  // The call of `work` for a thread that did not start is left out. Only for work whose calls take their
  // tasks from one list, so that the other calls do them all.
  go_on,
  fail,  // on_threads() returns `exhausted`
};

// Runs work(0) ... work(threads - 1) at the same time. work(0) runs on the caller's thread, each other call
// on a thread of its own. With IfFewer::go_on, fewer calls may be made, but always work(0). Returns after all
// calls have returned: success, or the first error. An exception of `work` becomes an error (error_of).
// After an exception, or if too few threads start with IfFewer::fail, on_threads() calls `give_up` so that
// the other calls of `work` can end. Any thread may call on_threads(), but not while it holds a lock. `fewer`
// is for no_more_threads().
Result<void> on_threads(unsigned threads, const std::function<Result<void>(unsigned)>& work,
                        IfFewer if_fewer = IfFewer::go_on, const std::function<void()>& give_up = {},
                        std::string_view fewer = "fewer --threads");

// Runs work(0) ... work(threads - 1), each on a thread of its own if one starts, else on the caller's thread.
// Returns after all of them. For work that waits for no other call of it. An exception ends the process.
void on_threads_or_here(unsigned threads, const std::function<void(unsigned)>& work);

// Seconds of processor time that the calling thread has used.
double thread_seconds();

}  // namespace penstock
