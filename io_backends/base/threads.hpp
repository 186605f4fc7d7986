// Running the same work on several threads.
#pragma once

#include <functional>
#include <system_error>

#include "io_backends/base/result.hpp"

namespace penstock {

// Runs work(0) ... work(threads - 1), each on a thread of its own, the first on the caller's, and returns
// when all have returned. `exhausted` when the machine gives no more threads, or when memory runs out in one
// (std::bad_alloc): `give_up` is called then, by any thread, so that those which run can end, and they are
// waited for.
Result<void> on_threads(unsigned threads, const std::function<void(unsigned)>& work,
                        const std::function<void()>& give_up);

// Seconds of processor time that the calling thread has used.
double thread_seconds();

Error no_more_threads(const std::system_error& error, std::size_t wanted);

}  // namespace penstock
