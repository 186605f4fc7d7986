// Starts a thread in the target, by means of a helper process.
//
// Threads: start_thread_in() and read_report() run in the command's main thread. All other functions run in
// the helper, which is forked from the command and has one thread.
// Locks: none.
// Memory: the helper allocates and uses streams. That is safe, because the command has no other thread that
// could hold a lock at the fork.
// Ctrl-C: the command forwards the signal to the helper. The helper gives up only between two attempts
// (check_interrupt()), never while a thread of the target is stopped.
// Crash: the helper finishes even if the command is killed (setsid()). If the helper itself is killed between
// Tracee::prepare() and Tracee::detach(), the target may crash (tracee.hpp).
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

// Lists the threads of a process. Threads may start and end meanwhile, so the list may be wrong a moment
// later.
std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (fs::directory_iterator at(fmt::format("/proc/{}/task", pid), error), end; !error && at != end;
       at.increment(error))
    threads.push_back(static_cast<pid_t>(std::strtol(at->path().filename().c_str(), nullptr, 10)));
  return threads;
}

enum class ThreadState { waiting, running, other };
// Reads from /proc what a thread does, without stopping the thread. The result may be out of date a moment
// later. So Tracee::is_safe() checks the thread again after it has been stopped.
ThreadState thread_state(pid_t pid, pid_t thread) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", pid, thread));
  std::string word;
  // The read fails if the kernel does not provide this file, or if the thread has ended.
  if (!(file >> word)) return ThreadState::running;
  if (word == "running") return ThreadState::running;
  const long call_number = std::strtol(word.c_str(), nullptr, 0);
  uint64_t futex = 0;
  uint64_t futex_operation = 0;
  file >> std::hex >> futex >> futex_operation;
  switch (call_number) {
    case SYS_futex:
      return (int(futex_operation) & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? ThreadState::waiting
                                                                          : ThreadState::other;
    case SYS_restart_syscall:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_pause:
    case SYS_rt_sigsuspend:
      return ThreadState::waiting;
    case SYS_read:
    case SYS_pread64:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_openat:
      return ThreadState::running;  // the thread probably waits only for a device, and continues soon
    default:
      return ThreadState::other;  // must not be stopped: epoll_wait(), for example, would fail with EINTR
  }
}

// Returns the threads to stop, the best ones first. These are the threads that wait, because stopping them
// has no effect on the program. Running threads follow if no thread waits, or if `with_running` is true.
std::vector<pid_t> threads_to_try(pid_t pid, bool with_running) {
  std::vector<pid_t> to_try;  // at first the threads that wait
  std::vector<pid_t> running;
  for (const pid_t thread : threads_of(pid)) {
    const ThreadState state = thread_state(pid, thread);
    if (state == ThreadState::waiting) to_try.push_back(thread);
    if (state == ThreadState::running) running.push_back(thread);
  }
  if (to_try.empty() || with_running) to_try.insert(to_try.end(), running.begin(), running.end());
  return to_try;
}

Result<uint64_t> kernel_result(Result<uint64_t> result, std::string_view what, pid_t pid) {
  if (!result.ok()) return result;
  const auto code = int64_t(*result);
  if (code < 0 && code > -4096) return errno_error(int(-code), what, fmt::format("process {}", pid));
  return result;
}

// Makes the traced thread map memory, if thread.memory_bytes is not 0, and create the new thread. Returns the
// address of the mapped memory, or 0. Called when the traced thread is at a safe point (tracee.hpp).
// Order: the memory is filled before it becomes executable, and pthread_create() is called last. So the new
// thread finds everything that it reads. After an error the memory stays mapped: to unmap it, the traced
// thread would have to make one more call.
Result<uint64_t> create_thread_with(Tracee& tracee, const Target& target, RemoteThread& thread,
                                    uint64_t create_function) {
  uint64_t memory = 0;
  if (thread.memory_bytes != 0) {
    const std::array<uint64_t, 6> mmap_arguments{
        0, thread.memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0};
    PENSTOCK_ASSIGN(memory, kernel_result(tracee.system_call(SYS_mmap, mmap_arguments),
                                          "cannot allocate memory in", target.pid()));
    PENSTOCK_TRY(thread.fill(memory, thread));
    const std::array<uint64_t, 3> mprotect_arguments{memory, thread.code_bytes, PROT_READ | PROT_EXEC};
    PENSTOCK_TRY(kernel_result(tracee.system_call(SYS_mprotect, mprotect_arguments),
                               "cannot make memory executable in", target.pid()));
  }
  const std::array<uint64_t, 4> arguments{tracee.scratch_address(), 0, thread.function, thread.argument};
  PENSTOCK_ASSIGN(const uint64_t failed, tracee.call(create_function, arguments));
  if (int(failed) != 0)
    return errno_error(int(failed), "cannot start a thread in", fmt::format("process {}", target.pid()));
  return memory;
}

// Makes one of the target's threads start the new thread. Runs in the helper. It tries the target's threads
// one after another, until it has stopped one at a safe point (tracee.hpp). It detaches from each thread
// before it tries the next, so only one thread is stopped at a time. The first round tries threads that wait.
// Later rounds also try running threads, and let each thread make more system calls until it is at a safe
// point.
Result<StartedThread> start_thread_from_helper(const Target& inspected_target, RemoteThread thread,
                                               std::chrono::milliseconds patience) {
  Target target = inspected_target;
  const auto create_function = target.libc_function("pthread_create");
  if (!create_function && !target.is_running()) return ended_meanwhile(target);
  if (!create_function)
    return make_error(Errc::unsupported,
                      "cannot attach to process {}: its libc is older than 2.34 and it has no threads; start "
                      "it with 'penstock profile run -- COMMAND'",
                      target.pid());
  const auto until = Clock::now() + patience;
  for (bool try_running_threads = false; Clock::now() < until; try_running_threads = true) {
    PENSTOCK_TRY(target.reread_mappings());
    for (const pid_t thread_id : threads_to_try(target.pid(), try_running_threads)) {
      PENSTOCK_TRY(check_interrupt());
      Result<Tracee> tracee = Tracee::seize(target, thread_id);
      if (!tracee.ok() && tracee.error().code != Errc::busy) return tracee.error();
      if (!tracee.ok()) continue;
      const Result<bool> is_at_safe_point =
          tracee->stop_at_safe_point(std::chrono::milliseconds(20), try_running_threads ? 64 : 8);
      if (!is_at_safe_point.ok() || !*is_at_safe_point) continue;
      const Result<uint64_t> memory = create_thread_with(*tracee, target, thread, create_function->address);
      tracee->detach();
      if (!memory.ok()) return memory.error();
      return StartedThread{tracee->stopped_for(), *memory};
    }
    if (!target.is_running()) return ended_meanwhile(target);
    ::usleep(1000);
  }
  return make_error(Errc::timed_out,
                    "cannot attach to process {}: none of its threads reached a system call where a new "
                    "thread can start; try again when it reads, writes or waits",
                    target.pid());
}

// What the helper reports to the command. One write() sends this struct, followed by the text of the error.
struct HelperReport {
  StartedThread started;
  Errc code = Errc::internal;
  int sys_errno = 0;
  uint32_t text_bytes = 0;
  bool succeeded = false;
};

// The main function of the helper. It calls setsid(), so that a signal to the command's process group does
// not reach the helper. It ends with _exit(), because the helper must not run the command's destructors and
// exit handlers. For the same reason no exception leaves this function.
[[noreturn]] void run_helper(int pipe, const Target& target, const RemoteThread& thread,
                             std::chrono::milliseconds patience) {
  // A text of this length and the HelperReport are together shorter than PIPE_BUF, so the kernel does not
  // split the write().
  constexpr size_t kMostTextBytes = 2048;
  ::setsid();
  ::prctl(PR_SET_NAME, "profile-attach");
  HelperReport report;
  std::string out;
  try {
    const Result<StartedThread> started = start_thread_from_helper(target, thread, patience);
    report.succeeded = started.ok();
    if (started.ok()) {
      report.started = *started;
    } else {
      out = started.error().what.substr(0, kMostTextBytes);
      report.code = started.error().code;
      report.sys_errno = started.error().sys_errno;
    }
  } catch (const std::exception& thrown) {
    out = thrown.what();
  }
  report.text_bytes = uint32_t(out.size());
  out.insert(0, reinterpret_cast<const char*>(&report), sizeof report);
  ::_exit(::write(pipe, out.data(), out.size()) < 0 ? 1 : 0);
}

// Runs in the command: reads the helper's report until the pipe is closed. On Ctrl-C it sends SIGINT to the
// helper, which stops before it tries the next thread.
std::string read_report(int pipe, pid_t helper) {
  std::string received;
  for (bool forwarded = false;;) {
    if (!forwarded && !check_interrupt().ok()) forwarded = ::kill(helper, SIGINT) == 0;
    pollfd pipe_poll{pipe, POLLIN, 0};
    if (::poll(&pipe_poll, 1, 50) <= 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return received;
    received.append(buffer.data(), size_t(got));
  }
}

}  // namespace

// Forks the helper, waits for it, and returns what it reports. After the fork the command closes its own
// write end of the pipe; otherwise read_report() would never see the end of the pipe. The command waits until
// the helper has ended, also after an error. So no zombie remains, and when this function returns, no thread
// of the target is stopped any more.
Result<StartedThread> start_thread_in(const Target& target, RemoteThread thread,
                                      std::chrono::milliseconds patience) {
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    return errno_error(errno, "cannot make a pipe to attach to", fmt::format("process {}", target.pid()));
  const Fd read_end(pipe_ends[0]);
  Fd write_end(pipe_ends[1]);
  const pid_t helper = ::fork();
  if (helper < 0)
    return errno_error(errno, "cannot start a helper to attach to", fmt::format("process {}", target.pid()));
  if (helper == 0) run_helper(write_end.get(), target, thread, patience);
  write_end = Fd();
  const std::string received = read_report(read_end.get(), helper);
  while (::waitpid(helper, nullptr, 0) < 0 && errno == EINTR) {
  }
  HelperReport report;
  if (received.size() < sizeof report)
    return make_error(
        Errc::io,
        "the helper that attaches to process {} was killed: that process may be damaged, so restart it",
        target.pid());
  std::memcpy(&report, received.data(), sizeof report);
  if (report.succeeded) return report.started;
  return Error{report.code, report.sys_errno, received.substr(sizeof report, report.text_bytes)};
}
#else
Result<StartedThread> start_thread_in(const Target& target, RemoteThread, std::chrono::milliseconds) {
  return make_error(Errc::unsupported,
                    "cannot attach to process {}: attaching only works on x86-64; start it with 'penstock "
                    "profile run -- COMMAND'",
                    target.pid());
}
#endif

}  // namespace penstock
