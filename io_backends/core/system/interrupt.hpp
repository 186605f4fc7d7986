// SIGINT and SIGTERM ask a command to stop admitting work; it then writes what it measured, cleans up, and
// exits 128 + signal.
#pragma once

#include <atomic>
#include <chrono>

#include "io_backends/core/result.hpp"

namespace penstock {

// Installs handlers for SIGINT and SIGTERM that only remember the signal, without SA_RESTART, so that
// blocking calls return. A second signal ends the process at once, but not within a second of the first: a
// terminal and the parent (run_program(), timeout(1)) both send a signal for one Ctrl-C. SIGXFSZ is ignored:
// EFBIG reports it. SIGBUS, a mapped file that another process truncated, ends the process with a message and
// exit 1. Called once, by the main program, before any thread starts.
void catch_interrupts();

// The first signal that asked us to stop, or 0. Lock-free: fit for a hot loop. Any thread.
int interrupt_signal();
inline bool interrupted() {
  return interrupt_signal() != 0;
}

// Errc::interrupted if we were asked to stop.
Result<void> check_interrupt();

// Sleeps until `due`; Errc::interrupted within 50 ms if we were asked to stop. Any thread.
Result<void> sleep_until(std::chrono::steady_clock::time_point due);

// While it lives, this thread works on although we were asked to stop, as far as check_interrupt() and
// sleep_until() go, and until `over` is set: for work that is given some time to end in. One a thread.
class WorkOn {
 public:
  explicit WorkOn(const std::atomic<bool>& over);
  ~WorkOn();
  WorkOn(const WorkOn&) = delete;
  WorkOn& operator=(const WorkOn&) = delete;
};

// Behaves as if `signal` had come (0 takes it back): for tests, and for one that came to another rank of the
// job.
void simulate_interrupt(int signal);

}  // namespace penstock
