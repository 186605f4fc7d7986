// Stops one thread of the target at a safe point, and makes it call functions.
//
// Threads: all code runs in the helper process's only thread, the tracer. ptrace stops one thread of the
// target; its other threads run.
// Locks: the helper holds none. The target's thread must be stopped where it holds no lock of malloc or of
// the loader. The functions that it is made to call (mmap(), pthread_create()) may need these locks.
// A lock that another thread of the target holds is released in time, because that thread runs.
// Memory: the helper may allocate and use stdio.
// Signals: until prepare(), signals to the target's thread are delivered as usual (wait_until_stopped(),
// continue_to_system_call()). From prepare() to detach() the thread has all of them blocked, so no handler of
// the program runs on the borrowed stack.
// Forks: if another thread of the target forks meanwhile, the child has only that other thread.
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

constexpr std::uint64_t kInstruction = 2;  // bytes of `syscall`
constexpr std::uint64_t kRedZone = 128;
constexpr std::uint64_t kScratch = 512;
// free bytes below the thread's stack pointer, for the called functions
constexpr std::uint64_t kLeastFreeStack = 16384;
constexpr auto kStopTimeout = std::chrono::seconds(5);

// True for the kernel's internal result of an interrupted system call that it makes again when the thread
// continues: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK.
bool is_restarted(std::uint64_t result) {
  const auto code = static_cast<std::int64_t>(result);
  return code == -512 || code == -513 || code == -514 || code == -516;
}
constexpr std::int64_t kWithRestartBlock = -516;

// System calls that malloc and the loader never make. A thread in one of them holds no lock of malloc or the
// loader, unless it is in a handler that interrupted them. After an interruption the kernel makes these calls
// again, and the program notices nothing.
constexpr std::array kRestartableCalls{SYS_restart_syscall,  // any of these, or a futex wait, with a timeout
                                       SYS_nanosleep,       SYS_clock_nanosleep, SYS_poll,  SYS_ppoll,
                                       SYS_select,          SYS_pselect6,        SYS_wait4, SYS_waitid};
// More system calls that malloc and the loader never make. But an interruption would make these calls return
// early or with EINTR. So the thread is stopped only at the begin of one, before the kernel has done
// anything.
constexpr std::array kCallsStoppedAtEntry{
    SYS_write,       SYS_writev,   SYS_pwrite64,  SYS_pwritev,    SYS_pwritev2, SYS_pread64,
    SYS_preadv,      SYS_preadv2,  SYS_readv,     SYS_lseek,      SYS_fstat,    SYS_newfstatat,
    SYS_statx,       SYS_fsync,    SYS_fdatasync, SYS_getdents64, SYS_sendfile, SYS_epoll_wait,
    SYS_epoll_pwait, SYS_recvfrom, SYS_sendto,    SYS_accept4,    SYS_getppid,  SYS_unlink};
// malloc and the loader make these system calls too, but from functions of their own. So the libc function
// that makes the call decides.
struct CallOfFunction {
  long number;
  const char* function;
};
constexpr std::array kCallsOfFunctions{CallOfFunction{SYS_read, "read"}, CallOfFunction{SYS_openat, "open"},
                                       CallOfFunction{SYS_openat, "open64"},
                                       CallOfFunction{SYS_openat, "openat"},
                                       CallOfFunction{SYS_close, "close"}};

bool is_condition_wait(const user_regs_struct& regs) {
  // pthread_cond_wait(), sem_wait() and pthread_join() use FUTEX_WAIT_BITSET. The locks of malloc and the
  // loader use FUTEX_WAIT.
  return static_cast<long>(regs.orig_rax) == SYS_futex &&
         (static_cast<int>(regs.rsi) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

// True for the code to which signal handlers return. It calls rt_sigreturn, in one of the two forms that
// libcs have.
bool ends_handler(std::span<const std::byte> code) {
  static constexpr std::array<unsigned char, 9> kLong{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  static constexpr std::array<unsigned char, 7> kShort{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return std::memcmp(code.data(), kLong.data(), kLong.size()) == 0 ||
         std::memcmp(code.data(), kShort.data(), kShort.size()) == 0;
}

}  // namespace

// The thread is not stopped. TRACESYSGOOD marks stops at system calls (0x80), so that they differ from a
// SIGTRAP.
Result<Tracee> Tracee::seize(const Target& target, pid_t thread) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0) {
    const int failed = errno;
    const std::string folder = fmt::format("/proc/{}/task/{}", target.pid(), thread);
    if (target.is_running() && (failed == ESRCH || ::access(folder.c_str(), F_OK) != 0))
      return make_error(Errc::busy, fmt::format("thread {} has ended", thread));
    return not_traceable(target.pid(), failed);
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
      scratch_(other.scratch_) {}

Tracee::~Tracee() {
  if (thread_ > 0) detach();
}

Error Tracee::thread_lost_error(std::string_view what) const {
  if (!target_->is_running()) return ended_meanwhile(*target_);
  return make_error(Errc::io, fmt::format("thread {} of process {} {}", thread_, target_->pid(), what));
}

// Polls with a time limit, so that a thread that never stops cannot block the helper. __WALL: waits also for
// threads that are not the process's main thread.
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
      return make_error(Errc::timed_out, fmt::format("thread {} {}", thread_, timeout_text));
    case Wait::stopped:
      break;
  }
  return success();
}

// Called after PTRACE_INTERRUPT. Other stops may come first. A pending signal is delivered, or the program
// would lose it. A stop at a system call is continued. A group stop (SIGSTOP) was made by another process and
// is reported as an error.
Result<void> Tracee::wait_until_stopped(Clock::time_point until) {
  for (;;) {
    int status = 0;
    PENSTOCK_TRY(wait_for_stop(status, until, "does not stop"));
    if (status >> 16 == PTRACE_EVENT_STOP) {
      stopped_ = true;
      if (WSTOPSIG(status) != SIGTRAP) return thread_lost_error("is being stopped by somebody else");
      return success();
    }
    // A pending signal is delivered.
    const int signal = WSTOPSIG(status);
    ::ptrace(PTRACE_CONT, thread_, nullptr, (signal & 0x80) != 0 ? 0 : signal);
  }
}

// Continues to the next begin or end of a system call. Signals are delivered on the way, and system calls of
// their handlers stop the thread too. The kernel reports begin and end in turn, so at_call_entry_ alternates.
// While the thread runs borrowed code, a fault is not delivered: the program's handler does not know that
// code.
Result<void> Tracee::continue_to_system_call(Clock::time_point until) {
  int signal = 0;
  for (;;) {
    if (::ptrace(PTRACE_SYSCALL, thread_, nullptr, signal) != 0) return thread_lost_error("is gone");
    stopped_ = false;
    int status = 0;
    PENSTOCK_TRY(wait_for_stop(status, until, "makes no call"));
    stopped_ = true;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      at_call_entry_ = !at_call_entry_;
      return success();
    }
    signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
    const bool fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
    if (prepared_ && fault) return thread_lost_error("went wrong in what it was made to call");
  }
}

// Called at the begin of a system call. It replaces the call by sched_yield, so that the call does not
// happen, and continues to its end.
Result<void> Tracee::skip_system_call() {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("is gone");
  // has no effect, and seccomp filters allow it wherever the profiler can run
  regs.orig_rax = SYS_sched_yield;
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("is gone");
  return continue_to_system_call(Clock::now() + kStopTimeout);
}

// Returns false, not an error, if the thread only was at an unsafe point. Then nothing in it was changed, and
// detach() is enough.
Result<bool> Tracee::stop_at_safe_point(std::chrono::milliseconds patience, int calls) {
  const auto until = Clock::now() + patience;
  stopped_at_ = Clock::now();
  if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return thread_lost_error("is gone");
  const Result<void> stopped = wait_until_stopped(until);
  if (!stopped.ok()) {
    if (stopped.error().code == Errc::timed_out) return false;
    return stopped.error();
  }
  at_call_entry_ = false;
  for (int i = 0; !is_safe(); ++i) {
    if (i == calls) return false;
    const Result<void> moved = continue_to_system_call(until);
    if (moved.ok()) continue;
    if (moved.error().code != Errc::timed_out) return moved.error();
    if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0)
      if (const Result<void> again = wait_until_stopped(Clock::now() + kStopTimeout); !again.ok())
        return again.error();
    return false;
  }
  PENSTOCK_TRY(prepare());
  return true;
}

// Called when the thread is stopped. True if it holds no lock that pthread_create() or mmap() may need.
// Conditions: it is in libc, in a system call that is about to begin or will be made again; neither malloc
// nor the loader makes this kind of call; enough stack is free; and the thread is not in a signal handler.
// Any doubt gives false: another thread, or this thread's next call, may be safe.
bool Tracee::is_safe() const {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return false;
  const auto number = static_cast<long>(regs.orig_rax);
  if (number < 0 || !target_->is_libc_code(regs.rip)) return false;
  if (!at_call_entry_ && !is_restarted(regs.rax)) return false;  // it was running, or a system call has ended
  // Programs use libc's syscall() in their own locks and allocators. Their state is unknown.
  const auto within = [&](const char* function) {
    const auto symbol = target_->libc_function(function);
    return symbol && regs.rip >= symbol->address && regs.rip <= symbol->address + symbol->bytes;
  };
  const auto among = [&](const auto& numbers) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  };
  bool safe =
      is_condition_wait(regs) || among(kRestartableCalls) || (at_call_entry_ && among(kCallsStoppedAtEntry));
  for (const CallOfFunction& one : kCallsOfFunctions)
    safe = safe || (at_call_entry_ && number == one.number && within(one.function));
  if (!safe || within("syscall")) return false;
  const TargetMapping* const stack = target_->mapping_at(regs.rsp);
  return stack != nullptr && stack->writable && regs.rsp - stack->begin > kLeastFreeStack && !is_in_handler();
}

// A signal handler may have interrupted any code, including malloc. While a handler runs, the stack contains
// the return address of the code that ends handlers, which has the same bytes in every program. So this
// checks all words on the stack (256 KiB at most) that point to code. If a word matches by chance, another
// thread is chosen.
bool Tracee::is_in_handler() const {
  constexpr std::uint64_t kMostStack = 256 << 10;
  constexpr std::size_t kCode = 9;
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return true;
  const TargetMapping* const stack = target_->mapping_at(regs.rsp);
  if (stack == nullptr) return true;
  std::vector<std::uint64_t> words(std::min<std::uint64_t>(kMostStack, stack->end - regs.rsp) /
                                   sizeof(std::uint64_t));
  if (words.empty() || !target_->read(regs.rsp, words.data(), words.size() * sizeof(std::uint64_t)))
    return true;
  std::set<std::uint64_t> code;
  for (const std::uint64_t word : words) {
    const TargetMapping* const at = target_->mapping_at(word);
    if (at != nullptr && at->executable) code.insert(word);
  }
  constexpr std::size_t kAtOnce = 256;
  std::vector<std::uint64_t> left(code.begin(), code.end());
  for (std::size_t from = 0; from < left.size();) {
    std::array<iovec, kAtOnce> there{};
    std::array<std::array<std::byte, kCode>, kAtOnce> bytes{};
    const std::size_t count = std::min(kAtOnce, left.size() - from);
    for (std::size_t i = 0; i < count; ++i)
      there[i] = {reinterpret_cast<void*>(left[from + i]), kCode};  // NOLINT(performance-no-int-to-ptr)
    iovec here{bytes.data(), count * kCode};
    const ssize_t got = ::process_vm_readv(target_->pid(), &here, 1, there.data(), count, 0);
    const std::size_t whole = got > 0 ? static_cast<std::size_t>(got) / kCode : 0;
    for (std::size_t i = 0; i < whole; ++i)
      if (ends_handler(bytes[i])) return true;
    from += std::max<std::size_t>(whole, 1);  // unreadable: the end of a mapping, or the vdso
  }
  return false;
}

// Saves all that detach() restores: registers, vector registers and blocked signals. Then blocks all signals.
// The interrupted system call is postponed: the saved rip is set back to its `syscall` instruction, with its
// number in rax, so that the thread makes the call after detach(). orig_rax = -1 prevents a restart by the
// kernel. Until the last line detach() restores nothing. An error before that line means that the thread has
// ended. scratch_ is below the red zone, because the program's code may use the red zone without moving the
// stack pointer.
Result<void> Tracee::prepare() {
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &saved_registers_) != 0) return thread_lost_error("is gone");
  const bool again = at_call_entry_ || is_restarted(saved_registers_.rax);
  if (at_call_entry_) PENSTOCK_TRY(skip_system_call());
  if (again) {
    const bool by_block =
        !at_call_entry_ && static_cast<std::int64_t>(saved_registers_.rax) == kWithRestartBlock;
    saved_registers_.rip -= kInstruction;
    saved_registers_.rax =
        by_block ? static_cast<std::uint64_t>(SYS_restart_syscall) : saved_registers_.orig_rax;
  }
  saved_registers_.orig_rax = ~0ULL;
  saved_vector_registers_.resize(1 << 16);
  iovec room{saved_vector_registers_.data(), saved_vector_registers_.size()};
  if (::ptrace(PTRACE_GETREGSET, thread_, NT_X86_XSTATE, &room) != 0) return thread_lost_error("is gone");
  saved_vector_registers_.resize(room.iov_len);
  const std::uint64_t all = ~std::uint64_t{0};
  if (::ptrace(PTRACE_GETSIGMASK, thread_, sizeof saved_signal_mask_, &saved_signal_mask_) != 0 ||
      ::ptrace(PTRACE_SETSIGMASK, thread_, sizeof all, &all) != 0)
    return thread_lost_error("is gone");
  scratch_ = (saved_registers_.rsp - kRedZone - kScratch) & ~std::uint64_t{63};
  prepared_ = true;
  return success();
}

// Runs until the called function returns. Its return address is the `syscall` instruction at the saved rip.
// So the thread stops at the begin of a system call, with our stack pointer. The number of that call, in
// orig_rax, is the function's result. The call is skipped. A stop at the same address with another stack
// pointer is a system call of the function itself.
Result<std::uint64_t> Tracee::run_until_return(std::uint64_t stack, Clock::time_point until) {
  for (;;) {
    PENSTOCK_TRY(continue_to_system_call(until));
    if (!at_call_entry_) continue;
    user_regs_struct regs{};
    if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("is gone");
    if (regs.rip != saved_registers_.rip + kInstruction || regs.rsp != stack) continue;
    const std::uint64_t result = regs.orig_rax;
    PENSTOCK_TRY(skip_system_call());
    return result;
  }
}

// Makes the thread execute the `syscall` instruction at the saved rip with other registers. The thread stops
// twice: at the begin and at the end of the call.
Result<std::uint64_t> Tracee::system_call(long number, std::span<const std::uint64_t> arguments) {
  user_regs_struct regs = saved_registers_;
  std::array<unsigned long long*, 6> places{&regs.rdi, &regs.rsi, &regs.rdx, &regs.r10, &regs.r8, &regs.r9};
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = i < arguments.size() ? arguments[i] : 0;
  regs.rax = static_cast<std::uint64_t>(number);
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("is gone");
  const auto until = Clock::now() + kStopTimeout;
  PENSTOCK_TRY(continue_to_system_call(until));
  PENSTOCK_TRY(continue_to_system_call(until));
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return thread_lost_error("is gone");
  return std::uint64_t{regs.rax};
}

// rax = 0 tells a variadic function that no vector register has an argument. The return address is written
// directly below scratch(), and rsp has the value after a call instruction, so that the stack is aligned.
Result<std::uint64_t> Tracee::call(std::uint64_t function, std::span<const std::uint64_t> arguments) {
  user_regs_struct regs = saved_registers_;
  std::array<unsigned long long*, 4> places{&regs.rdi, &regs.rsi, &regs.rdx, &regs.rcx};
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = i < arguments.size() ? arguments[i] : 0;
  regs.rip = function;
  regs.rax = 0;
  regs.rsp = scratch_ - sizeof(std::uint64_t);
  const std::uint64_t back = saved_registers_.rip;
  if (!target_->write(regs.rsp, &back, sizeof back) || ::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0)
    return thread_lost_error("is gone");
  return run_until_return(scratch_, Clock::now() + kStopTimeout);
}

// Restores the thread and lets it run. The destructor calls it too, after any error. Registers can be
// restored only while the thread is stopped, so it is stopped first. Signals are unblocked after the
// registers are restored. They are delivered once the thread runs.
void Tracee::detach() {
  if (thread_ <= 0) return;
  if (!stopped_) {
    // A running thread cannot be restored. It stops now, or it has ended.
    ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
    int status = 0;
    stopped_ = wait(status, Clock::now() + kStopTimeout) == Wait::stopped;
  }
  if (prepared_ && stopped_) {
    if (at_call_entry_) static_cast<void>(skip_system_call().ok());
    iovec room{saved_vector_registers_.data(), saved_vector_registers_.size()};
    ::ptrace(PTRACE_SETREGSET, thread_, NT_X86_XSTATE, &room);
    ::ptrace(PTRACE_SETREGS, thread_, nullptr, &saved_registers_);
    ::ptrace(PTRACE_SETSIGMASK, thread_, sizeof saved_signal_mask_, &saved_signal_mask_);
  }
  ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  stopped_for_ = Clock::now() - stopped_at_;
  thread_ = -1;
}

}  // namespace penstock

#endif
