// Threads: each call runs on the thread that makes it, which waits for its child.
// Lock: none.
// Memory: the list of arguments and errors allocate.
// Signals: after the first signal that asks this process to stop, the child gets one signal within 250 ms.
// Usually it gets that signal at once, because the first signal also ends this process's poll(). With
// kNotSignalled the child gets none.
// Crash: if this process dies, the child continues, unless it calls end_with_parent().
#include "io_backends/core/system/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

// The environment variable in which run_program() passes its process id to the child.
constexpr std::string_view kParentVariable = "PENSTOCK_PARENT";

}  // namespace

Result<int> wait_for_child(pid_t child, const std::string& name, int stop_signal) {
  // A descriptor that becomes readable when the child ends. Kernels before 5.3 do not have such descriptors;
  // there, poll() below only sleeps for 5 ms.
  const Fd child_end(int(::syscall(SYS_pidfd_open, child, 0)));
  bool signal_sent = stop_signal == kNotSignalled;
  while (true) {
    int status = 0;
    const pid_t ended_child = ::waitpid(child, &status, WNOHANG);
    if (ended_child == child) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended_child < 0 && errno != EINTR) return errno_error(errno, "cannot wait for", name);
    if (const int signal = interrupt_signal(); signal != 0 && !signal_sent) {
      ::kill(child, stop_signal == 0 ? signal : stop_signal);
      signal_sent = true;
    }
    pollfd poll_request{child_end.get(), POLLIN, 0};
    // a signal to this process also ends the wait
    ::poll(&poll_request, child_end ? 1 : 0, child_end ? 250 : 5);
  }
}

Result<int> run_program(std::span<const std::string> argv, bool discard_stdout) {
  std::vector<char*> arguments;
  for (const std::string& word : argv) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (discard_stdout) ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::string parent = fmt::format("{}={}", kParentVariable, ::getpid());
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with(kParentVariable)) environment.push_back(*variable);
  environment.push_back(parent.data());
  environment.push_back(nullptr);
  pid_t child = 0;
  const int spawn_errno =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (spawn_errno != 0) return errno_error(spawn_errno, "cannot run", argv[0]);
  return wait_for_child(child, argv[0]);
}

void end_with_parent() {
  const char* const parent = std::getenv(std::string(kParentVariable).c_str());
  if (parent == nullptr) return;
  const std::string expected = parent;
  ::unsetenv(std::string(kParentVariable).c_str());
  // A program between the two may have passed the variable on.
  if (std::to_string(::getppid()) != expected) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The parent may have died just before the call.
  if (std::to_string(::getppid()) != expected) ::raise(SIGTERM);
}

Result<std::filesystem::path> this_program() {
  std::error_code failed;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) return path;
  const Error error = errno_error(failed.value(), "cannot read", "/proc/self/exe");
  // Without /proc: the path that was given to execve(), which is right unless the working directory has
  // changed.
  const auto given = ::getauxval(AT_EXECFN);
  if (given == 0) return error;
  path = std::filesystem::canonical(reinterpret_cast<const char*>(given),
                                    failed);  // NOLINT(*-int-to-ptr,*-cast)
  if (failed) return error;
  return path;
}

}  // namespace penstock
