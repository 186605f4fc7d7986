// Traces one thread of another process by ptrace. The thread is stopped where it holds no lock of libc. It is
// then made to call functions, and continues where it was. The other threads of the process run all the time.
// Only for x86-64.
//
// Threads: one thread must make all calls, because the kernel binds a tracee to the thread that seized it.
// That thread is the only thread of the helper process (remote_thread.cpp).
// Signals: tracee.cpp says which signals the stopped thread gets.
// Crash: if the helper dies, the kernel detaches, and the thread continues with its current registers. That
// is harmless before prepare() and after detach(). Between them the thread may be inside a call that it makes
// for us, and then the target may crash.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/attach/target.hpp"

namespace penstock {

class Tracee {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts tracing (PTRACE_SEIZE), which does not stop the thread. The destructor detaches.
  static Result<Tracee> seize(const Target& target, pid_t thread);
  Tracee(Tracee&& other) noexcept;
  Tracee& operator=(Tracee&&) = delete;
  Tracee(const Tracee&) = delete;
  ~Tracee();

  // Stops the thread at a safe point (is_safe()). As long as the thread is not at a safe point, it continues
  // to its next system call, at most `most_calls` times. False if it reached no safe point within `patience`
  // and `most_calls`. In that case the thread may still be stopped; detach() lets it continue.
  Result<bool> stop_at_safe_point(std::chrono::milliseconds patience, int most_calls);

  // Makes the thread make a system call with up to six arguments, and returns the result. The thread must be
  // at a safe point.
  Result<uint64_t> system_call(long number, std::span<const uint64_t> arguments);
  // Makes the thread call a function with up to four arguments, and returns the result. The thread must be at
  // a safe point.
  Result<uint64_t> call(uint64_t function, std::span<const uint64_t> arguments);
  // Address of 512 bytes on the thread's stack that neither the program nor a called function uses. A pointer
  // to them can be an argument, for results.
  uint64_t scratch_address() const { return scratch_address_; }

  // Restores the thread and lets it continue from where it was stopped.
  void detach();
  std::chrono::nanoseconds stopped_for() const { return stopped_for_; }

 private:
  Tracee(const Target& target, pid_t thread) : target_(&target), thread_(thread) {}
  enum class Wait { stopped, timed_out, gone };
  Wait wait(int& status, Clock::time_point until) const;
  Result<void> wait_until_stopped(Clock::time_point until);  // called after PTRACE_INTERRUPT
  // Waits until the thread stops. Errors: not_found or io if the thread has ended; timed_out if it has not
  // stopped by the time `until`. The message of timed_out ends with `timeout_text`, for example "makes no
  // call".
  Result<void> wait_for_stop(int& status, Clock::time_point until, std::string_view timeout_text);
  // the thread stops again at the next entry or exit of a system call
  Result<void> continue_to_system_call(Clock::time_point until);
  Result<void> skip_system_call();  // continues from the entry of a call to its exit, without the call
  bool is_safe() const;
  bool is_in_handler() const;
  Result<void> prepare();  // saves the thread's state, so that it can make calls for us
  Result<uint64_t> run_until_return(uint64_t stack, Clock::time_point until);
  Error thread_lost_error(std::string_view what) const;

  const Target* target_;
  pid_t thread_ = -1;
  bool stopped_ = false;
  bool at_call_entry_ = false;  // stopped at the entry of a system call, before the kernel makes it
  bool prepared_ = false;
  Clock::time_point stopped_at_{};
  std::chrono::nanoseconds stopped_for_{0};
  user_regs_struct saved_registers_{};
  std::vector<std::byte> saved_vector_registers_;  // vector and floating-point registers
  uint64_t saved_signal_mask_ = 0;                 // the signals that the thread had blocked
  uint64_t scratch_address_ = 0;
};

}  // namespace penstock
