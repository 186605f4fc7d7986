// One thread of another process, traced by ptrace: it is stopped where nothing of libc's is held, made to
// call a function, and released where it was. The process's other threads run on. x86-64 only.
//
// The tracer must be one thread of one process: the kernel binds a tracee to the thread that seized it. That
// is the helper process of remote_thread.cpp. If it dies, the kernel detaches and the thread runs on with the
// registers that it has at that moment: outside of prepare() ... detach() that is as if nothing had happened,
// inside it the target may crash.
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

  // PTRACE_SEIZE: the thread is not stopped by it. The destructor detaches.
  static Result<Tracee> seize(const Target& target, pid_t thread);
  Tracee(Tracee&& other) noexcept;
  Tracee& operator=(Tracee&&) = delete;
  Tracee(const Tracee&) = delete;
  ~Tracee();

  // Stops the thread. If that is not a safe point (is_safe()), it runs to its next system calls, at most
  // `calls` of them, until one is. False: it came to none in that time; then it may be stopped, and detach()
  // releases it.
  Result<bool> stop_at_safe_point(std::chrono::milliseconds patience, int calls);

  // At a safe point: makes the system call, or calls the function, with up to six or four words. Returns the
  // result.
  Result<std::uint64_t> system_call(long number, std::span<const std::uint64_t> words);
  Result<std::uint64_t> call(std::uint64_t function, std::span<const std::uint64_t> words);
  // 512 bytes on the thread's stack that no call uses, for results that functions write.
  std::uint64_t scratch() const { return scratch_; }

  // Restores the thread and lets it continue from where it was stopped.
  void detach();
  std::chrono::nanoseconds stopped_for() const { return stopped_for_; }

 private:
  Tracee(const Target& target, pid_t thread) : target_(&target), thread_(thread) {}
  enum class Wait { stopped, over, gone };
  Wait wait(int& status, Clock::time_point until) const;
  Result<void> to_stop(Clock::time_point until);  // after PTRACE_INTERRUPT
  // not_found or io if the thread has ended; timed_out: the thread `otherwise` ("makes no call").
  Result<void> wait_for_stop(int& status, Clock::time_point until, std::string_view otherwise);
  Result<void> to_system_call(Clock::time_point until);  // to the next begin or end of a system call
  Result<void> skip_system_call();                       // from the begin of one to its end
  bool is_safe() const;
  bool is_in_handler() const;
  Result<void> prepare();  // to call something
  Result<std::uint64_t> run_to(std::uint64_t stack, Clock::time_point until);
  Error lost(std::string_view what) const;

  const Target* target_;
  pid_t thread_ = -1;
  bool stopped_ = false;
  bool at_begin_ = false;  // of a system call, which has not been made
  bool prepared_ = false;
  Clock::time_point stopped_at_{};
  std::chrono::nanoseconds stopped_for_{0};
  user_regs_struct before_{};
  std::vector<std::byte> vectors_;  // the processor's other registers
  std::uint64_t mask_ = 0;          // blocked signals
  std::uint64_t scratch_ = 0;
};

}  // namespace penstock
