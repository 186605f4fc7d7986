// Runs the program as a child and forwards signals to it.
//
// Threads: only one thread may run this code.
// Locks: none.
// Memory: may allocate.
// Signals: the signals in kForwardedSignals and SIGCHLD are blocked as long as BlockedSignals exists.
// sigwaitinfo() takes them one by one, so no signal handler runs. The child gets the signal mask with which
// this process was started.
// Crash: if this process is killed, the child continues.
#include "profiling/subcommands/watched_run.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

constexpr std::array<int, 8> kForwardedSignals{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                               SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

// Blocks the signals that run_watched() receives with sigwaitinfo(). The destructor restores the old mask.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&blocked_);
    sigaddset(&blocked_, SIGCHLD);
    for (const int signal : kForwardedSignals) sigaddset(&blocked_, signal);
    ::pthread_sigmask(SIG_BLOCK, &blocked_, &old_mask_);
  }
  ~BlockedSignals() {
    // Discards the signals that arrived after the program had ended. They were meant for the program;
    // unblocked, they would end this process.
    struct timespec no_wait {};
    while (::sigtimedwait(&blocked_, nullptr, &no_wait) > 0) continue;
    ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  const sigset_t& blocked() const { return blocked_; }

 private:
  sigset_t blocked_{};
  sigset_t old_mask_{};
};

class SpawnAttributes {
 public:
  explicit SpawnAttributes(const sigset_t& mask) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &mask);
    // Penstock ignores SIGXFSZ, and the child would inherit this. So the signal gets its default action in
    // the child, unless it was ignored before.
    sigset_t default_signals{};
    sigemptyset(&default_signals);
    if (!was_ignored(SIGXFSZ)) sigaddset(&default_signals, SIGXFSZ);
    ::posix_spawnattr_setsigdefault(&attributes_, &default_signals);
    ::posix_spawnattr_setflags(&attributes_,
                               static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts)
    result.push_back(const_cast<char*>(text.c_str()));  // NOLINT(*-const-cast)
  result.push_back(nullptr);
  return result;
}

// True if the child has ended. With WNOWAIT it remains a zombie, so its pid and /proc/PID/io still exist when
// on_end is called.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

}  // namespace

Result<int> run_watched(const std::string& program, const std::vector<std::string>& argv,
                        const std::vector<std::string>& environment,
                        const std::function<void(uint32_t pid)>& on_end) {
  const BlockedSignals signals;
  // The program inherits which signals are ignored, as it would from whoever started Penstock (nohup, or a
  // shell that starts it in the background).
  for (const int signal : {SIGINT, SIGTERM, SIGBUS, SIGCONT})
    if (was_ignored(signal)) std::signal(signal, SIG_IGN);
  const SpawnAttributes attributes(signal_mask_before());
  const std::vector<char*> argument_pointers = pointers_to(argv);
  const std::vector<char*> variable_pointers = pointers_to(environment);
  pid_t child = 0;
  if (const int failed = ::posix_spawn(&child, program.c_str(), nullptr, attributes.get(),
                                       argument_pointers.data(), variable_pointers.data());
      failed != 0)
    return errno_error(failed, "cannot run", program);
  // Waits for the end of the child. Its SIGCHLD cannot be missed: it is blocked, so if it arrives between
  // has_ended() and sigwaitinfo(), it remains pending and sigwaitinfo() returns it.
  while (!has_ended(child)) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals.blocked(), &info);
    // Forwards the signal, unless it comes from the terminal (Ctrl-C): then the kernel has sent it to the
    // child as well.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) ::kill(child, signal);
  }
  if (on_end) on_end(uint32_t(child));
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return errno_error(errno, "cannot wait for", program);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace penstock
