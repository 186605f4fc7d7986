// Stops one thread of the target at a safe point, and makes it call functions.
//
// Threads: all code runs in the helper process's only thread, the tracer. ptrace stops one thread of the
// target; its other threads run.
// Locks: the helper holds none. The target's thread must be stopped where it holds no lock of malloc or of
// the loader, because the functions that it is made to call (mmap(), pthread_create()) may need these locks.
// If another thread of the target holds such a lock, that thread runs and will release it.
// Memory: the helper may allocate and use stdio.
// Signals: before prepare(), signals to the target's thread are delivered as usual (wait_until_stopped(),
// continue_to_system_call()). From prepare() to detach() the thread has all of them blocked, except SIGKILL
// and SIGSTOP. So no handler of the program runs while the thread makes calls for us on its stack.
// Forks: if another thread of the target forks meanwhile, the child has only the forking thread. The traced
// thread with its changed registers does not exist in the child.
// Crash: if the helper dies, the kernel detaches from the thread (tracee.hpp).
#include "profiling/attach/tracee.hpp"

#if defined(__x86_64__)

#include <elf.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

namespace penstock {
namespace {

constexpr uint64_t kSyscallBytes = 2;  // length of the `syscall` instruction
constexpr uint64_t kRedZoneBytes = 128;
constexpr uint64_t kScratchBytes = 512;
// the called functions need this many free bytes below the thread's stack pointer
constexpr uint64_t kLeastStackBytes = 16384;
constexpr auto kStopTimeout = std::chrono::seconds(5);

// True if this is the result of an interrupted system call that the kernel will make again when the thread
// continues. The kernel uses these results only internally: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND,
// ERESTART_RESTARTBLOCK.
bool is_restarted(uint64_t result) {
  const auto code = int64_t(result);
  return code == -512 || code == -513 || code == -514 || code == -516;
}
constexpr int64_t kRestartBlockResult = -516;

// A thread can be stopped in one of these system calls: after an interruption the kernel makes the call
// again, and the program notices nothing. malloc and the loader never make these calls. So the thread holds
// none of their locks, unless it is in a signal handler that interrupted malloc or the loader.
// SYS_restart_syscall continues an interrupted call that has a timeout: another call of this list, or a futex
// wait.
constexpr std::array kRestartableCalls{SYS_restart_syscall, SYS_nanosleep, SYS_clock_nanosleep, SYS_poll,
                                       SYS_ppoll,           SYS_select,    SYS_pselect6,        SYS_wait4,
                                       SYS_waitid,          SYS_pause,     SYS_rt_sigsuspend};
// A thread can be stopped only at the entry of one of these system calls, before the kernel has done
// anything. An interruption would make the call return early or with EINTR. malloc and the loader never make
// these calls.
constexpr std::array kCallsStoppedAtEntry{
    SYS_write,       SYS_writev,   SYS_pwrite64,  SYS_pwritev,    SYS_pwritev2, SYS_pread64,
    SYS_preadv,      SYS_preadv2,  SYS_readv,     SYS_lseek,      SYS_fstat,    SYS_newfstatat,
    SYS_statx,       SYS_fsync,    SYS_fdatasync, SYS_getdents64, SYS_sendfile, SYS_epoll_wait,
    SYS_epoll_pwait, SYS_recvfrom, SYS_sendto,    SYS_accept4,    SYS_getppid,  SYS_unlink};
// A system call at whose entry a thread can be stopped, but only if this function of libc makes the call.
// malloc and the loader make the same system call, but from functions of their own.
struct CallOfFunction {
  long number;
  const char* function;
};
constexpr std::array kCallsOfFunctions{CallOfFunction{SYS_read, "read"}, CallOfFunction{SYS_openat, "open"},
                                       CallOfFunction{SYS_openat, "open64"},
                                       CallOfFunction{SYS_openat, "openat"},
                                       CallOfFunction{SYS_close, "close"}};

bool is_condition_wait(const user_regs_struct& regs) {
  // True in pthread_cond_wait(), sem_wait() and pthread_join(), which use FUTEX_WAIT_BITSET. False while a
  // thread waits for a lock of malloc or the loader, because these locks use FUTEX_WAIT.
  return long(regs.orig_rax) == SYS_futex && (int(regs.rsi) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

// True if `code` is the code to which signal handlers return. That code calls rt_sigreturn, in one of two
// forms.
bool ends_handler(std::span<const std::byte> code) {
  static constexpr std::array<unsigned char, 9> kLongForm{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  static constexpr std::array<unsigned char, 7> kShortForm{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return std::memcmp(code.data(), kLongForm.data(), kLongForm.size()) == 0 ||
         std::memcmp(code.data(), kShortForm.data(), kShortForm.size()) == 0;
}

}  // namespace

// Begins to trace the thread without stopping it. PTRACE_O_TRACESYSGOOD sets bit 0x80 in the signal number of
// a stop at a system call. Without it, such a stop would look like a SIGTRAP of the program.
Result<Tracee> Tracee::seize(const Target& target, pid_t thread) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0) {
    const int sys_errno = errno;
    const std::string folder = fmt::format("/proc/{}/task/{}", target.pid(), thread);
    if (target.is_running() && (sys_errno == ESRCH || ::access(folder.c_str(), F_OK) != 0))
      return make_error(Errc::busy, "thread {} has ended", thread);
    return not_traceable(target.pid(), sys_errno);
  }
  return Tracee(target, thread);
}

// The new object owns the thread: the destructor of the moved-from object must not detach from it.
Tracee::Tracee(Tracee&& other) noexcept
    : target_(other.target_),
      thread_(std::exchange(other.thread_, -1)),
      stopped_(other.stopped_),
      at_call_entry_(other.at_call_entry_),
      prepared_(other.prepared_),
      stopped_at_(other.stopped_at_),
      stopped_for_(other.stopped_for_),
      saved_registers_(other.saved_registers_),
      saved_vector_registers_(std::move(other.saved_vector_registers_)),
      saved_signal_mask_(other.saved_signal_mask_),
      scratch_address_(other.scratch_address_) {}

Tracee::~Tracee() {
  if (thread_ > 0) detach();
}

Error Tracee::thread_lost_error(std::string_view what) const {
  if (!target_->is_running()) return ended_meanwhile(*target_);
  return make_error(Errc::io, "thread {} of process {} {}", thread_, target_->pid(), what);
}

// Waits until the thread stops or ends. It polls, and gives up at the time `until`, so that a thread that
// never stops cannot block the helper. __WALL makes waitpid() accept threads other than the main thread too.
Tracee::Wait Tracee::wait(int& status, Clock::time_point until) const {
  for (unsigned tries = 0;; ++tries) {
    const pid_t got = ::waitpid(thread_, &status, __WALL | WNOHANG);
    if (got == thread_) return WIFSTOPPED(status) ? Wait::stopped : Wait::gone;
    if (got < 0 && errno != EINTR) return Wait::gone;
    if (Clock::now() > until) return Wait::timed_out;
    if (tries > 64) ::usleep(50);
  }
}

Result<void> Tracee::wait_for_stop(int& status, Clock::time_point until, std::string_view timeout_text) {
  switch (wait(status, until)) {
    case Wait::gone:
      thread_ = -1;
      return thread_lost_error("has ended");
    case Wait::timed_out:
      return make_error(Errc::timed_out, "thread {} {}", thread_, timeout_text);
    case Wait::stopped:
      break;
  }
  return success();
}

// Called after PTRACE_INTERRUPT: waits for the stop that it causes. The thread may stop for other reasons
// first. If it stops for a signal, this function delivers the signal, because otherwise the program would
// lose it. If it stops at a system call, this function continues it. If another process has stopped it
// (SIGSTOP), this function returns an error.
Result<void> Tracee::wait_until_stopped(Clock::time_point until) {
  for (;;) {
    int status = 0;
    PENSTOCK_TRY(wait_for_stop(status, until, "does not stop"));
    if (status >> 16 == PTRACE_EVENT_STOP) {
      stopped_ = true;
      if (WSTOPSIG(status) != SIGTRAP)
        return thread_lost_error("was stopped by a signal; continue it (kill -CONT) and try again");
      return success();
    }
    const int signal = WSTOPSIG(status);
    ::ptrace(PTRACE_CONT, thread_, nullptr, (signal & 0x80) != 0 ? 0 : signal);
  }
}

// Continues the thread to the next entry or exit of a system call. The kernel reports entry and exit
// alternately, so at_call_entry_ changes each time.
// Signals: pending signals are delivered meanwhile, and the thread also stops at the system calls of their
// handlers. If another process stops the thread (SIGSTOP), this function continues it. If the thread makes a
// call for us (prepared_) and causes a fault, this function returns an error instead of delivering the
// signal, because the program's handler does not expect the fault.
Result<void> Tracee::continue_to_system_call(Clock::time_point until) {
  int signal = 0;
  for (;;) {
    if (::ptrace(PTRACE_SYSCALL, thread_, nullptr, signal) != 0) return thread_lost_error("has disappeared");
    stopped_ = false;
    int status = 0;
    PENSTOCK_TRY(wait_for_stop(status, until, "makes no system call"));
    stopped_ = true;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      at_call_entry_ = !at_call_entry_;
      return success();
    }
    signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
    const bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
    if (prepared_ && is_fault) return thread_lost_error("crashed in a call that the attach made");
  }
}

// Replaces a system call by sched_yield, so that it does not happen, and lets the thread continue to the exit
// of sched_yield. Called when the thread is stopped at the entry of a system call.
Result<void> Tracee::skip_system_call() {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("has disappeared");
  // sched_yield has no effect, and seccomp filters allow it wherever the profiler can run
  regs.orig_rax = SYS_sched_yield;
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("has disappeared");
  return continue_to_system_call(Clock::now() + kStopTimeout);
}

// Stops the thread at a safe point and prepares it for calls (prepare()). False if the thread reached no safe
// point within `patience` and `most_calls`. In that case nothing in the thread was changed, and detach() only
// has to let it continue.
Result<bool> Tracee::stop_at_safe_point(std::chrono::milliseconds patience, int most_calls) {
  const auto until = Clock::now() + patience;
  stopped_at_ = Clock::now();
  if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return thread_lost_error("has disappeared");
  const Result<void> stopped = wait_until_stopped(until);
  if (!stopped.ok()) {
    if (stopped.error().code == Errc::timed_out) return false;
    return stopped.error();
  }
  at_call_entry_ = false;
  for (int i = 0; !is_safe(); ++i) {
    if (i == most_calls) return false;
    const Result<void> continued = continue_to_system_call(until);
    if (continued.ok()) continue;
    if (continued.error().code != Errc::timed_out) return continued.error();
    if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0)
      if (const Result<void> stop = wait_until_stopped(Clock::now() + kStopTimeout); !stop.ok())
        return stop.error();
    return false;
  }
  PENSTOCK_TRY(prepare());
  return true;
}

// True if the stopped thread holds no lock that pthread_create() or mmap() may need. Conditions: (1) it is in
// libc, in a system call; (2) that call is about to begin, or will be made again; (3) neither malloc nor the
// loader makes this kind of call; (4) enough stack is free; (5) the thread is not in a signal handler. In
// doubt the result is false: another thread, or this thread's next call, may be safe.
bool Tracee::is_safe() const {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return false;
  const auto number = long(regs.orig_rax);
  if (number < 0 || !target_->is_libc_code(regs.rip)) return false;
  // Not safe: the thread was running outside of a system call, or its system call has ended.
  if (!at_call_entry_ && !is_restarted(regs.rax)) return false;
  // True if the thread is inside this libc function. It is used below to refuse system calls that the program
  // makes by syscall(): programs use syscall() in their own locks and allocators, whose state is unknown.
  const auto is_inside = [&](const char* function) {
    const auto symbol = target_->libc_function(function);
    return symbol && regs.rip >= symbol->address && regs.rip <= symbol->address + symbol->bytes;
  };
  const auto is_one_of = [&](const auto& numbers) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  };
  bool safe_call = is_condition_wait(regs) || is_one_of(kRestartableCalls) ||
                   (at_call_entry_ && is_one_of(kCallsStoppedAtEntry));
  for (const CallOfFunction& allowed : kCallsOfFunctions)
    safe_call = safe_call || (at_call_entry_ && number == allowed.number && is_inside(allowed.function));
  if (!safe_call || is_inside("syscall")) return false;
  const TargetMapping* const stack = target_->mapping_at(regs.rsp);
  return stack != nullptr && stack->writable && regs.rsp - stack->begin > kLeastStackBytes &&
         !is_in_handler();
}

// True if the thread is in a signal handler, or if that is not known. A handler is not safe, because it may
// have interrupted any code, including malloc. While a handler runs, the stack contains its return address:
// the address of the code that ends handlers (ends_handler()). So this function checks the code at every
// address on the stack, in 256 KiB of the stack at most. An old return address may match by chance; then the
// result is true, and another thread is chosen.
bool Tracee::is_in_handler() const {
  constexpr uint64_t kMostStackBytes = 256 << 10;
  constexpr size_t kCodeBytes = 9;
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return true;
  const TargetMapping* const stack = target_->mapping_at(regs.rsp);
  if (stack == nullptr) return true;
  std::vector<uint64_t> words(std::min<uint64_t>(kMostStackBytes, stack->end - regs.rsp) / sizeof(uint64_t));
  if (words.empty() || !target_->read(regs.rsp, words.data(), words.size() * sizeof(uint64_t))) return true;
  std::set<uint64_t> code;
  for (const uint64_t word : words) {
    const TargetMapping* const mapping = target_->mapping_at(word);
    if (mapping != nullptr && mapping->executable) code.insert(word);
  }
  constexpr size_t kReadsAtOnce = 256;
  std::vector<uint64_t> addresses(code.begin(), code.end());
  for (size_t from = 0; from < addresses.size();) {
    std::array<iovec, kReadsAtOnce> remote{};
    std::array<std::array<std::byte, kCodeBytes>, kReadsAtOnce> code_bytes{};
    const size_t count = std::min(kReadsAtOnce, addresses.size() - from);
    for (size_t i = 0; i < count; ++i)
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      remote[i] = {reinterpret_cast<void*>(addresses[from + i]), kCodeBytes};
    iovec local{code_bytes.data(), count * kCodeBytes};
    const ssize_t got = ::process_vm_readv(target_->pid(), &local, 1, remote.data(), count, 0);
    const size_t complete_reads = got > 0 ? size_t(got) / kCodeBytes : 0;
    for (size_t i = 0; i < complete_reads; ++i)
      if (ends_handler(code_bytes[i])) return true;
    // Moves on by at least 1, so that an address is skipped if it cannot be read (near the end of a mapping,
    // or in the vdso).
    from += std::max<size_t>(complete_reads, 1);
  }
  return false;
}

// Saves all that detach() restores: registers, vector registers and blocked signals. Then blocks all signals.
// If the thread was stopped in a system call, it makes that call after detach(): the saved rip is set back to
// the `syscall` instruction, and the saved rax to the number of the call. orig_rax = -1 prevents the kernel
// from making the call again as well.
// prepared_ is set last: until then detach() restores nothing. If this function fails, the thread has ended.
// scratch_address_ is below the red zone: the 128 bytes below the stack pointer that the program's code may
// use.
Result<void> Tracee::prepare() {
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &saved_registers_) != 0)
    return thread_lost_error("has disappeared");
  const bool repeats_call = at_call_entry_ || is_restarted(saved_registers_.rax);
  if (at_call_entry_) PENSTOCK_TRY(skip_system_call());
  if (repeats_call) {
    const bool has_restart_block = !at_call_entry_ && int64_t(saved_registers_.rax) == kRestartBlockResult;
    saved_registers_.rip -= kSyscallBytes;
    saved_registers_.rax = has_restart_block ? uint64_t(SYS_restart_syscall) : saved_registers_.orig_rax;
  }
  saved_registers_.orig_rax = ~0ULL;
  saved_vector_registers_.resize(1 << 16);
  iovec xstate{saved_vector_registers_.data(), saved_vector_registers_.size()};
  if (::ptrace(PTRACE_GETREGSET, thread_, NT_X86_XSTATE, &xstate) != 0)
    return thread_lost_error("has disappeared");
  saved_vector_registers_.resize(xstate.iov_len);
  const uint64_t all_signals = ~uint64_t{0};
  if (::ptrace(PTRACE_GETSIGMASK, thread_, sizeof saved_signal_mask_, &saved_signal_mask_) != 0 ||
      ::ptrace(PTRACE_SETSIGMASK, thread_, sizeof all_signals, &all_signals) != 0)
    return thread_lost_error("has disappeared");
  scratch_address_ = (saved_registers_.rsp - kRedZoneBytes - kScratchBytes) & ~uint64_t{63};
  prepared_ = true;
  return success();
}

// Lets the thread run until the called function returns, and returns the function's result. The function
// returns to the `syscall` instruction at the saved rip. So the thread then stops at the entry of a system
// call, with the stack pointer `stack`, and orig_rax has the function's result. This system call is skipped.
// If the thread stops at the same address with another stack pointer, the function itself makes a system call
// there.
Result<uint64_t> Tracee::run_until_return(uint64_t stack, Clock::time_point until) {
  for (;;) {
    PENSTOCK_TRY(continue_to_system_call(until));
    if (!at_call_entry_) continue;
    user_regs_struct regs{};
    if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("has disappeared");
    if (regs.rip != saved_registers_.rip + kSyscallBytes || regs.rsp != stack) continue;
    const uint64_t result = regs.orig_rax;
    PENSTOCK_TRY(skip_system_call());
    return result;
  }
}

// Sets the thread's registers for the system call, and makes the thread execute the `syscall` instruction at
// the saved rip. The thread stops twice: at the entry and at the exit of the system call.
Result<uint64_t> Tracee::system_call(long number, std::span<const uint64_t> arguments) {
  user_regs_struct regs = saved_registers_;
  std::array<unsigned long long*, 6> fields{&regs.rdi, &regs.rsi, &regs.rdx, &regs.r10, &regs.r8, &regs.r9};
  for (size_t i = 0; i < fields.size(); ++i) *fields[i] = i < arguments.size() ? arguments[i] : 0;
  regs.rax = uint64_t(number);
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("has disappeared");
  const auto until = Clock::now() + kStopTimeout;
  PENSTOCK_TRY(continue_to_system_call(until));
  PENSTOCK_TRY(continue_to_system_call(until));
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("has disappeared");
  return uint64_t{regs.rax};
}

// Makes the thread call `function`, on its own stack below scratch_address(). The return address is written
// directly below scratch_address(), and rsp points to it, as after a call instruction. So the stack is
// aligned as the function expects. rax = 0 tells a variadic function that no vector register has an argument.
Result<uint64_t> Tracee::call(uint64_t function, std::span<const uint64_t> arguments) {
  user_regs_struct regs = saved_registers_;
  std::array<unsigned long long*, 4> fields{&regs.rdi, &regs.rsi, &regs.rdx, &regs.rcx};
  for (size_t i = 0; i < fields.size(); ++i) *fields[i] = i < arguments.size() ? arguments[i] : 0;
  regs.rip = function;
  regs.rax = 0;
  regs.rsp = scratch_address_ - sizeof(uint64_t);
  const uint64_t return_address = saved_registers_.rip;
  if (!target_->write(regs.rsp, &return_address, sizeof return_address) ||
      ::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0)
    return thread_lost_error("has disappeared");
  return run_until_return(scratch_address_, Clock::now() + kStopTimeout);
}

// Restores the thread and lets it run. The destructor calls this too, so the thread is also restored after an
// error. First the thread is stopped, if it runs. Then its registers are restored, and then its signals are
// unblocked. Pending signals are delivered when the thread runs again.
void Tracee::detach() {
  if (thread_ <= 0) return;
  if (!stopped_) {
    // Only a stopped thread can be restored, so it is stopped now, unless it has ended.
    ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
    int status = 0;
    stopped_ = wait(status, Clock::now() + kStopTimeout) == Wait::stopped;
  }
  if (prepared_ && stopped_) {
    if (at_call_entry_) static_cast<void>(skip_system_call().ok());
    iovec xstate{saved_vector_registers_.data(), saved_vector_registers_.size()};
    ::ptrace(PTRACE_SETREGSET, thread_, NT_X86_XSTATE, &xstate);
    ::ptrace(PTRACE_SETREGS, thread_, nullptr, &saved_registers_);
    ::ptrace(PTRACE_SETSIGMASK, thread_, sizeof saved_signal_mask_, &saved_signal_mask_);
  }
  ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  stopped_for_ = Clock::now() - stopped_at_;
  thread_ = -1;
}

}  // namespace penstock

#endif
