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

// What the kernel gives for a system call that is to be made again when the thread goes on.
bool is_made_again(std::uint64_t result) {
  const auto code = static_cast<std::int64_t>(result);
  return code == -512 || code == -513 || code == -514 || code == -516;
}
constexpr std::int64_t kWithRestartBlock = -516;

// System calls that neither malloc nor the loader makes, wherever in libc they stand: a thread that makes one
// holds no lock of theirs, unless a handler came upon it. They are made again, if they were interrupted,
// without the program noticing.
constexpr std::array kWaits{SYS_restart_syscall,  // of one of these, or of a futex, with a time
                            SYS_nanosleep,       SYS_clock_nanosleep, SYS_poll,  SYS_ppoll,
                            SYS_select,          SYS_pselect6,        SYS_wait4, SYS_waitid};
// The same, but not to be interrupted: the thread is followed to the begin of one.
constexpr std::array kOthers{SYS_write,      SYS_writev,     SYS_pwrite64,   SYS_pwritev,     SYS_pwritev2,
                             SYS_pread64,    SYS_preadv,     SYS_preadv2,    SYS_readv,       SYS_lseek,
                             SYS_fstat,      SYS_newfstatat, SYS_statx,      SYS_fsync,       SYS_fdatasync,
                             SYS_getdents64, SYS_sendfile,   SYS_epoll_wait, SYS_epoll_pwait, SYS_recvfrom,
                             SYS_sendto,     SYS_accept4,    SYS_getppid,    SYS_unlink};
// These malloc and the loader make as well, but by functions of their own.
struct OfFunction {
  long number;
  const char* function;
};
constexpr std::array kOfFunctions{OfFunction{SYS_read, "read"}, OfFunction{SYS_openat, "open"},
                                  OfFunction{SYS_openat, "open64"}, OfFunction{SYS_openat, "openat"},
                                  OfFunction{SYS_close, "close"}};

bool is_condition_wait(const user_regs_struct& regs) {
  // pthread_cond_wait, sem_wait, pthread_join; malloc's and the loader's locks wait by FUTEX_WAIT.
  return static_cast<long>(regs.orig_rax) == SYS_futex &&
         (static_cast<int>(regs.rsi) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

bool ends_handler(std::span<const std::byte> code) {
  static constexpr std::array<unsigned char, 9> kLong{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  static constexpr std::array<unsigned char, 7> kShort{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return std::memcmp(code.data(), kLong.data(), kLong.size()) == 0 ||
         std::memcmp(code.data(), kShort.data(), kShort.size()) == 0;
}

}  // namespace

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

Result<void> Tracee::to_stop(Clock::time_point until) {
  for (;;) {
    int status = 0;
    PENSTOCK_TRY(wait_for_stop(status, until, "does not stop"));
    if (status >> 16 == PTRACE_EVENT_STOP) {
      stopped_ = true;
      if (WSTOPSIG(status) != SIGTRAP) return lost("is being stopped by somebody else");
      return success();
    }
    // A signal on its way: it has it.
    const int signal = WSTOPSIG(status);
    ::ptrace(PTRACE_CONT, thread_, nullptr, (signal & 0x80) != 0 ? 0 : signal);
  }
}

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

Result<void> Tracee::skip_system_call() {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return lost("is gone");
  regs.orig_rax = SYS_sched_yield;  // harmless, and allowed wherever the profiler is
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0) return lost("is gone");
  return to_system_call(Clock::now() + kStopPatience);
}

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

bool Tracee::is_safe() const {
  user_regs_struct regs{};
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &regs) != 0) return false;
  const auto number = static_cast<long>(regs.orig_rax);
  if (number < 0 || !target_->is_libc_code(regs.rip)) return false;
  if (!at_begin_ && !is_made_again(regs.rax)) return false;  // it runs, or has just made a call
  // By libc's syscall() programs make the calls of their own locks, and of allocators of their own.
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

// A handler may have come upon anything, malloc included. On its stack stands the address of the code that
// ends it, which is the same everywhere. What merely looks so makes us choose another thread.
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
    from += std::max<std::size_t>(whole, 1);  // at a mapping's end, or the kernel's own
  }
  return false;
}

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

// Until it comes back to the `syscall` that it stood behind, with its stack where we put it: what it has in
// rax is the number of a call, which is not made, and what the function gave.
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

Result<std::uint64_t> Tracee::call(std::uint64_t function, std::span<const std::uint64_t> words) {
  user_regs_struct regs = before_;
  std::array<unsigned long long*, 4> places{&regs.rdi, &regs.rsi, &regs.rdx, &regs.rcx};
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = i < words.size() ? words[i] : 0;
  regs.rip = function;
  regs.rax = 0;
  regs.rsp = scratch_ - sizeof(std::uint64_t);  // as if somebody had called it
  const std::uint64_t back = before_.rip;
  if (!target_->write(regs.rsp, &back, sizeof back) || ::ptrace(PTRACE_SETREGS, thread_, nullptr, &regs) != 0)
    return lost("is gone");
  return run_to(scratch_, Clock::now() + kStopPatience);
}

void Tracee::detach() {
  if (thread_ <= 0) return;
  if (!stopped_) {
    // Between stops nothing can be taken back; it comes to one, or ends.
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
