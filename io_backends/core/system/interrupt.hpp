// Handles the signals that ask a command to stop. After such a signal it starts no more work, writes its
// results so far, cleans up, and exits with 128 + signal.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>

#include "io_backends/core/result.hpp"

namespace penstock {

// Installs the signal handlers of the program. The main program calls this once, before any thread starts.
// SIGINT, SIGTERM, SIGHUP (the terminal was closed) and SIGXCPU (the limit of processor time): the first
// signal is only stored. They are unblocked. SIGHUP and SIGXCPU stay ignored if they were. The handlers are
// without SA_RESTART, so that blocking calls return. A second signal ends the process at once, unless it
// comes within one second of the first. A second signal that comes so early is ignored, because for one
// Ctrl-C both the terminal and the parent process (run_program(), timeout(1)) may send one. A second signal
// that is SIGXCPU is ignored, too.
// SIGCONT: counted (times_continued()).
// SIGXFSZ: ignored, so that a write beyond the limit for the size of a file fails with EFBIG.
// SIGBUS (usually because another process has made a mapped file shorter): ends the process with a message
// and exit code 1.
void catch_interrupts();

// Whether the program was started with this signal ignored, before catch_interrupts() changed that. A program
// that Penstock runs for the user then has to ignore it, too. `signal`: one that catch_interrupts() changes.
bool was_ignored(int signal);

// The signals that were blocked when the program was started. A program that `profile run` starts gets the
// same mask.
const sigset_t& signal_mask_before();

// The first signal that asked the process to stop, or 0. Lock-free and cheap enough for a hot loop. Any
// thread may call it.
int interrupt_signal();
inline bool interrupted() {
  return interrupt_signal() != 0;
}

// How often SIGCONT has arrived, which continues a process that was stopped (SIGSTOP, Ctrl-Z). Any thread may
// call it.
unsigned times_continued();

// Returns Errc::interrupted if the process was asked to stop, unless this thread has an IgnoreInterrupt. Any
// thread may call it.
Result<void> check_interrupt();

// Sleeps until `due`. If the process is asked to stop, returns Errc::interrupted within 50 ms, unless this
// thread has an IgnoreInterrupt. Any thread may call it.
Result<void> sleep_until(std::chrono::steady_clock::time_point due);

// While it exists, check_interrupt() and sleep_until() on this thread ignore the request to stop until
// `time_is_over` is set. It is for work that gets some time to finish after the signal. Each thread has at
// most one IgnoreInterrupt.
// It acts on a whole thread, because the waits that must go on are deep inside back ends (a retry of s3, a
// delay of a throttled tier). An argument would have to go through every call of Backend, Reader, Writer and
// Namespace.
class IgnoreInterrupt {
 public:
  explicit IgnoreInterrupt(const std::atomic<bool>& time_is_over);
  ~IgnoreInterrupt();
  IgnoreInterrupt(const IgnoreInterrupt&) = delete;
  IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;
};

// Behaves as if `signal` had arrived; 0 cancels it. Tests use it, and so does the code that learns of a
// signal at another rank of the job. Any thread may call it.
void simulate_interrupt(int signal);

}  // namespace penstock
