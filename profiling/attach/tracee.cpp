// Stops one thread of the target at a safe point, and makes it call functions there.
//
// All code runs in the helper process's only thread, the tracer. It may allocate and use stdio, and holds no
// locks. The question at each place is what the target's thread holds: it must be stopped where it holds no
// lock of malloc or of the loader, because what it is made to call (mmap(), pthread_create()) may need these.
// ptrace stops this one thread only, so a lock that another thread of the target holds is released in time.
//
// Signals to the target's thread: until prepare() they are delivered as usual (to_stop(), to_system_call()).
// From prepare() to detach() all are blocked in it, so no handler of the program runs on the borrowed stack.
// If another thread of the target forks meanwhile, the child has that thread alone.
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
constexpr std::uint64_t kStackWanted = 16384;  // below the thread's own, for what is called
constexpr auto kStopPatience = std::chrono::seconds(5);

// Results inside the kernel of an interrupted system call that will be made again when the thread continues:
// ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK.
bool is_made_again(std::uint64_t result) {
  const auto code = static_cast<std::int64_t>(result);
  return code == -512 || code == -513 || code == -514 || code == -516;
}
constexpr std::int64_t kWithRestartBlock = -516;

// System calls that neither malloc nor the loader makes, wherever in libc they are: a thread that makes one
// holds no lock of theirs, unless it is in a handler that interrupted one. If they are interrupted, the
// kernel makes them again, and the program does not notice.
constexpr std::array kWaits{SYS_restart_syscall,  // one of these, or a futex, with a timeout
                            SYS_nanosleep,       SYS_clock_nanosleep, SYS_poll,  SYS_ppoll,
                            SYS_select,          SYS_pselect6,        SYS_wait4, SYS_waitid};
// The same, but they must not be interrupted, as they would return early or with EINTR. The thread is stopped
// only at the begin of one, before the kernel has done anything.
constexpr std::array kOthers{SYS_write,      SYS_writev,     SYS_pwrite64,   SYS_pwritev,     SYS_pwritev2,
                             SYS_pread64,    SYS_preadv,     SYS_preadv2,    SYS_readv,       SYS_lseek,
                             SYS_fstat,      SYS_newfstatat, SYS_statx,      SYS_fsync,       SYS_fdatasync,
                             SYS_getdents64, SYS_sendfile,   SYS_epoll_wait, SYS_epoll_pwait, SYS_recvfrom,
                             SYS_sendto,     SYS_accept4,    SYS_getppid,    SYS_unlink};
// malloc and the loader make these as well, but in functions of their own; so the function decides.
struct OfFunction {
  long number;
  const char* function;
};
constexpr std::array kOfFunctions{OfFunction{SYS_read, "read"}, OfFunction{SYS_openat, "open"},
                                  OfFunction{SYS_openat, "open64"}, OfFunction{SYS_openat, "openat"},
                                  OfFunction{SYS_close, "close"}};

bool is_condition_wait(const user_regs_struct& regs) {
  // pthread_cond_wait(), sem_wait(), pthread_join(). Locks of malloc and the loader wait by FUTEX_WAIT
  // instead.
  return static_cast<long>(regs.orig_rax) == SYS_futex &&
         (static_cast<int>(regs.rsi) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

// Whether this is the code to which handlers return: rt_sigreturn, in the two forms of libcs.
bool ends_handler(std::span<const std::byte> code) {
  static constexpr std::array<unsigned char, 9> kLong{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  static constexpr std::array<unsigned char, 7> kShort{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return std::memcmp(code.data(), kLong.data(), kLong.size()) == 0 ||
         std::memcmp(code.data(), kShort.data(), kShort.size()) == 0;
}

}  // namespace

// The thread runs on. TRACESYSGOOD marks stops at system calls (0x80), so that they are not taken for a
// SIGTRAP.
Result<Tracee> Tracee::seize(const Target& target, pid_t thread) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0) {
    const int failed = errno;
    const std::string folder = fmt::format("/proc/{}/task/{}", target.pid(), thread);
    if (target.lives() && (failed == ESRCH || ::access(folder.c_str(), F_OK) != 0))
      return make_error(Errc::busy, fmt::format("thread {} has ended", thread));
    return not_traceable(target.pid(), failed);
  }
  return Tracee(target, thread);
}

// The thread goes with it: the moved-from object's destructor must not detach.
Tracee::Tracee(Tracee&& other) noexcept
    : target_(other.target_),
      thread_(std::exchange(other.thread_, -1)),
      stopped_(other.stopped_),
      at_begin_(other.at_begin_),
      prepared_(other.prepared_),
      stopped_at_(other.stopped_at_),
      stopped_for_(other.stopped_for_),
      before_(other.before_),
      vectors_(std::move(other.vectors_)),
      mask_(other.mask_),
      scratch_(other.scratch_) {}

Tracee::~Tracee() {
  if (thread_ > 0) detach();
}

Error Tracee::lost(std::string_view what) const {
  if (!target_->lives()) return ended_meanwhile(*target_);
  return make_error(Errc::io, fmt::format("thread {} of process {} {}", thread_, target_->pid(), what));
}

// Polls, so that a thread that never stops cannot hang the helper. __WALL: also for threads that are not the
// leader.
Tracee::Wait Tracee::wait(int& status, Clock::time_point until) const {
  for (unsigned tries = 0;; ++tries) {
    const pid_t got = ::waitpid(thread_, &status, __WALL | WNOHANG);
    if (got == thread_) return WIFSTOPPED(status) ? Wait::stopped : Wait::gone;
    if (got < 0 && errno != EINTR) return Wait::gone;
    if (Clock::now() > until) return Wait::over;
    if (tries > 64) ::usleep(50);
  }
}

Result<void> Tracee::wait_for_stop(int& status, Clock::time_point until, std::string_view otherwise) {
  switch (wait(status, until)) {
    case Wait::gone:
      thread_ = -1;
      return lost("has ended");
    case Wait::over:
      return make_error(Errc::timed_out, fmt::format("thread {} {}", thread_, otherwise));
    case Wait::stopped:
      break;
  }
  return success();
}

// After PTRACE_INTERRUPT. Other stops may come first: a signal on its way is delivered, or the program would
// lose it; a stop at a system call is just continued. A group stop (SIGSTOP) is not ours to end.
Result<void> Tracee::to_stop(Clock::time_point until) {
  for (;;) {
    int status = 0;
    PENSTOCK_TRY(wait_for_stop(status, until, "does not stop"));
    if (status >> 16 == PTRACE_EVENT_STOP) {
      stopped_ = true;
      if (WSTOPSIG(status) != SIGTRAP) return lost("is being stopped by somebody else");
      return success();
    }
    // A signal on its way is delivered.
    const int signal = WSTOPSIG(status);
    ::ptrace(PTRACE_CONT, thread_, nullptr, (signal & 0x80) != 0 ? 0 : signal);
  }
}

// To the next begin or end of a system call. Signals are delivered on the way; their handlers' system calls
// are stops as well. at_begin_ alternates: the kernel reports begin and end in turn. While the thread runs
// borrowed code, a fault is not delivered, because the program's handler knows nothing of that code.
Result<void> Tracee::to_system_call(Clock::time_point until) {
  int signal = 0;
  for (;;) {
    if (::ptrace(PTRACE_SYSCALL, thread_, nullptr, signal) != 0) return lost("is gone");
    stopped_ = false;
    int status = 0;
    PENSTOCK_TRY(wait_for_stop(status, until, "makes no call"));
    stopped_ = true;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      at_begin_ = !at_begin_;
      return success();
    }
    signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
    const bool fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
    if (prepared_ && fault) return lost("went wrong in what it was made to call");
  }
}

// At the begin of a system call: it is replaced by sched_yield, so that it does not happen, and the thread
// comes to its end.
Result<void> Tracee::skip_system_call() {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return lost("is gone");
  regs.orig_rax = SYS_sched_yield;  // harmless, and allowed wherever the profiler is
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0) return lost("is gone");
  return to_system_call(Clock::now() + kStopPatience);
}

// False in all cases where the thread is merely in a bad place. It was never changed then, and detach() is
// enough.
Result<bool> Tracee::stop_at_safe_point(std::chrono::milliseconds patience, int calls) {
  const auto until = Clock::now() + patience;
  stopped_at_ = Clock::now();
  if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return lost("is gone");
  const Result<void> stopped = to_stop(until);
  if (!stopped.ok()) {
    if (stopped.error().code == Errc::timed_out) return false;
    return stopped.error();
  }
  at_begin_ = false;
  for (int i = 0; !is_safe(); ++i) {
    if (i == calls) return false;
    const Result<void> moved = to_system_call(until);
    if (moved.ok()) continue;
    if (moved.error().code != Errc::timed_out) return moved.error();
    if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0)
      if (const Result<void> again = to_stop(Clock::now() + kStopPatience); !again.ok()) return again.error();
    return false;
  }
  PENSTOCK_TRY(prepare());
  return true;
}

// The thread is stopped. Whether it holds nothing that pthread_create() or mmap() may need: it is in a system
// call of libc's that is about to begin or will be made again, of a kind that neither malloc nor the loader
// makes; there is stack; and it is not in a handler. Any doubt is "no": another thread, or this one's next
// call, may do.
bool Tracee::is_safe() const {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return false;
  const auto number = static_cast<long>(regs.orig_rax);
  if (number < 0 || !target_->is_libc_code(regs.rip)) return false;
  if (!at_begin_ && !is_made_again(regs.rax)) return false;  // it was running, or a call has ended
  // Programs use libc's syscall() for their own locks and allocators, about which nothing is known.
  const auto within = [&](const char* function) {
    const auto symbol = target_->libc_function(function);
    return symbol && regs.rip >= symbol->address && regs.rip <= symbol->address + symbol->bytes;
  };
  const auto among = [&](const auto& numbers) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  };
  bool safe = is_condition_wait(regs) || among(kWaits) || (at_begin_ && among(kOthers));
  for (const OfFunction& one : kOfFunctions)
    safe = safe || (at_begin_ && number == one.number && within(one.function));
  if (!safe || within("syscall")) return false;
  const TargetMapping* const stack = target_->mapping_at(regs.rsp);
  return stack != nullptr && stack->writable && regs.rsp - stack->begin > kStackWanted && !is_in_handler();
}

// A handler may have interrupted anything, also malloc. Then the stack has the return address of the code
// that ends handlers, which is the same everywhere. So all words on the stack (256 KiB at most) that point to
// code are checked. A word that only looks like that makes us choose another thread.
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
    from += std::max<std::size_t>(whole, 1);  // it could not be read: a mapping's end, or the vdso
  }
  return false;
}

// Saves all that detach() restores: registers, the vector registers and the blocked signals; then blocks all
// signals. The interrupted system call is not made now: the saved rip is set back to its `syscall`
// instruction with its number in rax, so that the thread makes it again after detach(). orig_rax of -1 tells
// the kernel not to restart anything by itself. Until the last line detach() restores nothing; an error
// before it means that the thread is gone. scratch_ is below the red zone, which the program's code may use
// without moving the stack pointer.
Result<void> Tracee::prepare() {
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &before_) != 0) return lost("is gone");
  const bool again = at_begin_ || is_made_again(before_.rax);
  if (at_begin_) PENSTOCK_TRY(skip_system_call());
  if (again) {
    const bool by_block = !at_begin_ && static_cast<std::int64_t>(before_.rax) == kWithRestartBlock;
    before_.rip -= kInstruction;
    before_.rax = by_block ? static_cast<std::uint64_t>(SYS_restart_syscall) : before_.orig_rax;
  }
  before_.orig_rax = ~0ULL;
  vectors_.resize(1 << 16);
  iovec room{vectors_.data(), vectors_.size()};
  if (::ptrace(PTRACE_GETREGSET, thread_, NT_X86_XSTATE, &room) != 0) return lost("is gone");
  vectors_.resize(room.iov_len);
  const std::uint64_t all = ~std::uint64_t{0};
  if (::ptrace(PTRACE_GETSIGMASK, thread_, sizeof mask_, &mask_) != 0 ||
      ::ptrace(PTRACE_SETSIGMASK, thread_, sizeof all, &all) != 0)
    return lost("is gone");
  scratch_ = (before_.rsp - kRedZone - kScratch) & ~std::uint64_t{63};
  prepared_ = true;
  return success();
}

// Runs until the called function returns. Its return address is the `syscall` instruction at the saved rip;
// so the thread stops at the begin of a system call, with our stack pointer and the function's result as the
// number in orig_rax. That call is skipped. The same address with another stack pointer is a system call that
// the function itself makes there.
Result<std::uint64_t> Tracee::run_to(std::uint64_t stack, Clock::time_point until) {
  for (;;) {
    PENSTOCK_TRY(to_system_call(until));
    if (!at_begin_) continue;
    user_regs_struct regs{};
    if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return lost("is gone");
    if (regs.rip != before_.rip + kInstruction || regs.rsp != stack) continue;
    const std::uint64_t given = regs.orig_rax;
    PENSTOCK_TRY(skip_system_call());
    return given;
  }
}

// Makes the thread execute the `syscall` instruction at the saved rip with other registers: two stops, begin
// and end.
Result<std::uint64_t> Tracee::system_call(long number, std::span<const std::uint64_t> words) {
  user_regs_struct regs = before_;
  std::array<unsigned long long*, 6> places{&regs.rdi, &regs.rsi, &regs.rdx, &regs.r10, &regs.r8, &regs.r9};
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = i < words.size() ? words[i] : 0;
  regs.rax = static_cast<std::uint64_t>(number);
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0) return lost("is gone");
  const auto until = Clock::now() + kStopPatience;
  PENSTOCK_TRY(to_system_call(until));
  PENSTOCK_TRY(to_system_call(until));
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return lost("is gone");
  return std::uint64_t{regs.rax};
}

// rax = 0: a variadic function has no vector arguments. The return address is written below scratch(), and
// rsp is as after a call instruction, so that the stack is aligned.
Result<std::uint64_t> Tracee::call(std::uint64_t function, std::span<const std::uint64_t> words) {
  user_regs_struct regs = before_;
  std::array<unsigned long long*, 4> places{&regs.rdi, &regs.rsi, &regs.rdx, &regs.rcx};
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = i < words.size() ? words[i] : 0;
  regs.rip = function;
  regs.rax = 0;
  regs.rsp = scratch_ - sizeof(std::uint64_t);
  const std::uint64_t back = before_.rip;
  if (!target_->write(regs.rsp, &back, sizeof back) || ::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0)
    return lost("is gone");
  return run_to(scratch_, Clock::now() + kStopPatience);
}

// Also from the destructor, whatever failed before. Registers can only be restored while the thread is
// stopped, so it is stopped first. Signals are unblocked after the registers are right, and delivered once
// the thread runs.
void Tracee::detach() {
  if (thread_ <= 0) return;
  if (!stopped_) {
    // While it runs nothing can be restored; it comes to a stop, or ends.
    ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
    int status = 0;
    stopped_ = wait(status, Clock::now() + kStopPatience) == Wait::stopped;
  }
  if (prepared_ && stopped_) {
    if (at_begin_) static_cast<void>(skip_system_call().ok());
    iovec room{vectors_.data(), vectors_.size()};
    ::ptrace(PTRACE_SETREGSET, thread_, NT_X86_XSTATE, &room);
    ::ptrace(PTRACE_SETREGS, thread_, nullptr, &before_);
    ::ptrace(PTRACE_SETSIGMASK, thread_, sizeof mask_, &mask_);
  }
  ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  stopped_for_ = Clock::now() - stopped_at_;
  thread_ = -1;
}

}  // namespace penstock

#endif
