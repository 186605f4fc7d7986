// Handles SIGINT and SIGTERM. After such a signal a command starts no more work, writes its results so far,
// cleans up, and exits with 128 + signal.
#pragma once

#include <atomic>
#include <chrono>

#include "io_backends/core/result.hpp"

namespace penstock {

// Installs handlers for SIGINT and SIGTERM that only store the signal. They are without SA_RESTART, so that
// blocking calls return. A second signal ends the process at once. It is ignored within one second of the
// first, because for one Ctrl-C both the terminal and the parent (run_program(), timeout(1)) may send a
// signal. SIGXFSZ is ignored, so that a write beyond the limit fails with EFBIG. SIGBUS (a mapped file was
// truncated by another process) ends the process with a message and exit code 1. The main program calls this
// once, before any thread starts.
void catch_interrupts();

// The first signal that asked the process to stop, or 0. Lock-free and cheap enough for a hot loop. Any
// thread may call it.
int interrupt_signal();
inline bool interrupted() {
  return interrupt_signal() != 0;
}

// Returns Errc::interrupted if the process was asked to stop, unless this thread has an IgnoreInterrupt. Any
// thread may call it.
Result<void> check_interrupt();

// Sleeps until `due`. If the process is asked to stop, returns Errc::interrupted within 50 ms, unless this
// thread has an IgnoreInterrupt. Any thread may call it.
Result<void> sleep_until(std::chrono::steady_clock::time_point due);

// While it exists, check_interrupt() and sleep_until() on this thread ignore the request to stop until `over`
// is set. For work that gets some time to finish after the signal. Each thread has at most one. It acts on a
// whole thread instead of being passed as an argument: the waits that must go on are deep inside back ends (a
// retry of s3, a delay of a throttled tier). An argument would have to go through every call of Backend,
// Reader, Writer and Namespace.
class IgnoreInterrupt {
 public:
  explicit IgnoreInterrupt(const std::atomic<bool>& over);
  ~IgnoreInterrupt();
  IgnoreInterrupt(const IgnoreInterrupt&) = delete;
  IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;
};

// Behaves as if `signal` had arrived; 0 cancels it. For tests, and for a signal that arrived at another rank
// of the job. Any thread may call it.
void simulate_interrupt(int signal);

}  // namespace penstock
