// Starts a thread in the target, by means of a helper process.
//
// Threads: begin_thread_in() and hear() run in the command's main thread. All other functions run in the
// helper, which is forked from the command and has one thread.
// Locks: none.
// Memory: the helper allocates and uses streams. That is safe, because the command has no other thread that
// could hold a lock at the fork.
// Ctrl-C: the command forwards the signal to the helper. The helper stops only between two attempts
// (check_interrupt()), never while a thread of the target is stopped.
// Crash: the helper finishes even if the command is killed (setsid()). If the helper itself is killed between
// prepare() and detach(), the target may crash (tracee.hpp).
#include "profiling/attach/remote_thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <vector>

#if defined(__x86_64__)
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "profiling/attach/tracee.hpp"
#endif

namespace penstock {

#if defined(__x86_64__)
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Threads may start and end during the listing, so the list is a hint only.
std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code failed;
  for (fs::directory_iterator at(fmt::format("/proc/{}/task", pid), failed), end; !failed && at != end;
       at.increment(failed))
    threads.push_back(static_cast<pid_t>(std::strtol(at->path().filename().c_str(), nullptr, 10)));
  return threads;
}

enum class At { waits, runs, elsewhere };
// The kernel's view of a thread, without stopping it. It may be out of date a moment later; Tracee::is_safe()
// makes the decision.
At where_is(pid_t pid, pid_t thread) {
  std::ifstream in(fmt::format("/proc/{}/task/{}/syscall", pid, thread));
  std::string word;
  if (!(in >> word)) return At::runs;  // the kernel has no such file, or the thread has ended
  if (word == "running") return At::runs;
  const long number = std::strtol(word.c_str(), nullptr, 0);
  std::uint64_t futex = 0;
  std::uint64_t what = 0;
  in >> std::hex >> futex >> what;
  switch (number) {
    case SYS_futex:
      return (static_cast<int>(what) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? At::waits : At::elsewhere;
    case SYS_restart_syscall:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_wait4:
    case SYS_waitid:
      return At::waits;
    case SYS_read:
    case SYS_pread64:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_openat:
      return At::runs;  // probably waits for a device, so it continues soon
    default:
      return At::elsewhere;  // an interrupted epoll_wait() would fail with EINTR
  }
}

// The threads that wait: stopping them has no effect on the program. If none waits, or if `all`, also the
// threads that run.
std::vector<pid_t> candidates(pid_t pid, bool all) {
  std::vector<pid_t> waiting;
  std::vector<pid_t> running;
  for (const pid_t one : threads_of(pid)) {
    const At at = where_is(pid, one);
    if (at == At::waits) waiting.push_back(one);
    if (at == At::runs) running.push_back(one);
  }
  if (waiting.empty() || all) waiting.insert(waiting.end(), running.begin(), running.end());
  return waiting;
}

Result<std::uint64_t> kernel_result(Result<std::uint64_t> result, std::string_view what, pid_t pid) {
  if (!result.ok()) return result;
  const auto code = static_cast<std::int64_t>(*result);
  if (code < 0 && code > -4096)
    return errno_error(static_cast<int>(-code), what, fmt::format("process {}", pid));
  return result;
}

// Called when the thread is stopped and prepared (tracee.cpp). Returns the address of the mapped memory, or
// 0. Order: the memory is filled before it becomes code, and pthread_create() is called last. So the new
// thread finds everything that it reads. On an error the memory stays mapped, because unmapping it would need
// one more call.
Result<std::uint64_t> begin_by(Tracee& tracee, const Target& target, RemoteThread& thread,
                               std::uint64_t create) {
  std::uint64_t memory = 0;
  if (thread.memory_bytes != 0) {
    const std::array<std::uint64_t, 6> map{
        0, thread.memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~std::uint64_t{0}, 0};
    PENSTOCK_ASSIGN(memory,
                    kernel_result(tracee.system_call(SYS_mmap, map), "no memory to be had in", target.pid()));
    PENSTOCK_TRY(thread.fill(memory, thread));
    const std::array<std::uint64_t, 3> protect{memory, thread.code_bytes, PROT_READ | PROT_EXEC};
    PENSTOCK_TRY(
        kernel_result(tracee.system_call(SYS_mprotect, protect), "no code can be put into", target.pid()));
  }
  const std::array<std::uint64_t, 4> words{tracee.scratch(), 0, thread.function, thread.argument};
  PENSTOCK_ASSIGN(const std::uint64_t failed, tracee.call(create, words));
  if (static_cast<int>(failed) != 0)
    return errno_error(static_cast<int>(failed), "no thread can be begun in",
                       fmt::format("process {}", target.pid()));
  return memory;
}

// Runs in the helper. Tries one thread after another, and detaches from each before the next, so only one is
// stopped at a time. The first round tries threads that wait. Later rounds try any thread, and let it make
// more system calls.
Result<StartedThread> begin_from_here(const Target& seen, RemoteThread thread,
                                      std::chrono::milliseconds patience) {
  Target target = seen;
  const auto create = target.libc_function("pthread_create");
  if (!create && !target.lives()) return ended_meanwhile(target);
  if (!create)
    return make_error(Errc::unsupported,
                      fmt::format("cannot attach to process {}: its libc is older than 2.34 and it has no "
                                  "threads; begin it with 'penstock profile run'",
                                  target.pid()));
  const auto until = Clock::now() + patience;
  for (bool hurried = false; Clock::now() < until; hurried = true) {
    PENSTOCK_TRY(target.refresh());
    for (const pid_t one : candidates(target.pid(), hurried)) {
      PENSTOCK_TRY(check_interrupt());
      Result<Tracee> tracee = Tracee::seize(target, one);
      if (!tracee.ok() && tracee.error().code != Errc::busy) return tracee.error();
      if (!tracee.ok()) continue;
      const Result<bool> safe = tracee->stop_at_safe_point(std::chrono::milliseconds(20), hurried ? 64 : 8);
      if (!safe.ok() || !*safe) continue;
      const Result<std::uint64_t> memory = begin_by(*tracee, target, thread, create->address);
      tracee->detach();
      if (!memory.ok()) return memory.error();
      return StartedThread{tracee->stopped_for(), *memory};
    }
    if (!target.lives()) return ended_meanwhile(target);
    ::usleep(1000);
  }
  return make_error(
      Errc::timed_out,
      fmt::format("no thread of process {} came to a call from which another thread may be begun; "
                  "try again when it reads, writes or waits",
                  target.pid()));
}

// The helper's report. It is written in one write, followed by the text of an error.
struct Said {
  StartedThread started;
  Errc code = Errc::internal;
  int sys_errno = 0;
  std::uint32_t words = 0;
  bool ok = false;
};

// The main function of the helper. setsid(): a signal to the command's process group does not reach the
// helper. _exit(): the helper must not run the command's destructors and exit handlers. For the same reason
// no exception leaves this function.
[[noreturn]] void help(int pipe, const Target& target, const RemoteThread& thread,
                       std::chrono::milliseconds patience) {
  // less than PIPE_BUF with the rest, so the kernel does not split the write
  constexpr std::size_t kMostWords = 2048;
  ::setsid();
  ::prctl(PR_SET_NAME, "profile-attach");
  Said said;
  std::string out;
  try {
    const Result<StartedThread> started = begin_from_here(target, thread, patience);
    said.ok = started.ok();
    if (started.ok()) {
      said.started = *started;
    } else {
      out = started.error().what.substr(0, kMostWords);
      said.code = started.error().code;
      said.sys_errno = started.error().sys_errno;
    }
  } catch (const std::exception& thrown) {
    out = thrown.what();
  }
  said.words = static_cast<std::uint32_t>(out.size());
  out.insert(0, reinterpret_cast<const char*>(&said), sizeof said);
  ::_exit(::write(pipe, out.data(), out.size()) < 0 ? 1 : 0);
}

// Runs in the command: reads the helper's report until the pipe is closed. On Ctrl-C it sends SIGINT to the
// helper, which stops at its next safe place.
std::string hear(int pipe, pid_t helper) {
  std::string heard;
  for (bool passed_on = false;;) {
    if (!passed_on && !check_interrupt().ok()) passed_on = ::kill(helper, SIGINT) == 0;
    pollfd ready{pipe, POLLIN, 0};
    if (::poll(&ready, 1, 50) <= 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return heard;
    heard.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

// The command closes its write end after the fork; otherwise the pipe would never report its end. It always
// waits for the helper, whatever was reported. So no zombie remains, and the target is released before this
// returns.
Result<StartedThread> begin_thread_in(const Target& target, RemoteThread thread,
                                      std::chrono::milliseconds patience) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return errno_error(errno, "no pipe to attach by to", fmt::format("process {}", target.pid()));
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t helper = ::fork();
  if (helper < 0)
    return errno_error(errno, "no helper to be had to attach to", fmt::format("process {}", target.pid()));
  if (helper == 0) help(to.get(), target, thread, patience);
  to = Fd();
  const std::string heard = hear(from.get(), helper);
  while (::waitpid(helper, nullptr, 0) < 0 && errno == EINTR) {
  }
  Said said;
  if (heard.size() < sizeof said)
    return make_error(
        Errc::io,
        fmt::format("what attaches to process {} was killed, and may have left it broken", target.pid()));
  std::memcpy(&said, heard.data(), sizeof said);
  if (said.ok) return said.started;
  return Error{said.code, said.sys_errno, heard.substr(sizeof said, said.words)};
}
#else
Result<StartedThread> begin_thread_in(const Target& target, RemoteThread, std::chrono::milliseconds) {
  return make_error(
      Errc::unsupported,
      fmt::format("cannot attach to process {}: attaching knows x86-64 alone; the program may call "
                  "penstock_profile_start() itself",
                  target.pid()));
}
#endif

}  // namespace penstock
