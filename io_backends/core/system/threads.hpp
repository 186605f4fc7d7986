// Running the same work on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <system_error>

#include "io_backends/core/result.hpp"

namespace penstock {

// Where the machine gives fewer threads than were asked for.
enum class IfFewer : std::uint8_t {
  go_on,  // those that started do the work of all
  fail,   // exhausted
};

// Runs work(0) ... work(threads - 1), each on a thread of its own, the first on the caller's, and returns the
// first error when all have returned. What a work throws is an error as well (error_of); then, and where too
// few threads are a failure, `give_up` is called, by any thread, so that those which run can end.
Result<void> on_threads(unsigned threads, const std::function<Result<void>(unsigned)>& work,
                        IfFewer if_fewer = IfFewer::go_on, const std::function<void()>& give_up = {});

// Seconds of processor time that the calling thread has used.
double thread_seconds();

Error no_more_threads(const std::system_error& error, std::size_t wanted);

}  // namespace penstock
