// Threads: only one thread at a time may call these functions. It waits until its child has ended.
// Lock: none.
// Memory: the parent makes the list of arguments before the fork. The child allocates nothing before
// execvp().
// Signals: if this process gets a signal, run_child() sends the child the signal that `stop_signal` says, and
// still waits for its end. run_tool() sends the child the signal that this process got.
// Crash: if the thread that called fork() ends, the kernel sends SIGTERM to the child (PR_SET_PDEATHSIG). The
// log has what the child wrote so far; it is not synced.
#include "results/sweep/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "io_backends/core/system/scope.hpp"
#include "io_backends/core/system/subprocess.hpp"

namespace penstock {
namespace {

constexpr int kCannotRunCode = 127;

// What the child does between fork() and execvp(). It must not allocate or take a lock: another thread of the
// parent may have held the lock at the fork, and no thread of the child would release it.
// prctl() makes the kernel send SIGTERM to the child when the parent dies. If the parent died before that,
// getppid() no longer returns its pid, and the child exits.
[[noreturn]] void run_program_in_child(char* const* argv, int out, int err, pid_t parent) {
  const int null_device = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_device < 0 || ::dup2(null_device, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 ||
      ::dup2(err, STDERR_FILENO) < 0 || ::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || ::getppid() != parent)
    ::_exit(kCannotRunCode);
  ::execvp(argv[0], argv);
  constexpr char kMessage[] = "cannot run this program: ";
  const char* const reason = ::strerror(errno);
  static_cast<void>(::write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0 ||
                    ::write(STDERR_FILENO, reason, std::strlen(reason)) < 0 ||
                    ::write(STDERR_FILENO, "\n", 1) < 0);
  ::_exit(kCannotRunCode);
}

Result<pid_t> start_child(std::span<const std::string> argv, int out, int err) {
  // The list is made before the fork, because the child must not allocate.
  std::vector<char*> child_argv;
  for (const std::string& word : argv) child_argv.push_back(const_cast<char*>(word.c_str()));
  child_argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return errno_error(errno, "cannot start a process for", argv[0]);
  if (child == 0) run_program_in_child(child_argv.data(), out, err, parent);
  return child;
}

// A temporary file without a name, for the output of a tool.
using File = std::unique_ptr<std::FILE, FreeBy<std::fclose>>;

std::string text_of(const File& file) {
  std::string text;
  char data[4096];
  std::rewind(file.get());
  for (size_t got = 0; (got = std::fread(data, 1, sizeof data, file.get())) > 0;) text.append(data, got);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<int> run_child(std::span<const std::string> argv, const std::filesystem::path& log, int stop_signal) {
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return errno_error(errno, "cannot open", log.string());
  const Result<pid_t> child = start_child(argv, fd, fd);
  // Closes only the parent's descriptor: the child has descriptors of its own for the file, as its standard
  // output and standard error.
  ::close(fd);
  PENSTOCK_TRY(child);
  return wait_for_child(*child, argv[0], stop_signal);
}

Result<ToolOutput> run_tool(std::span<const std::string> argv) {
  const File out(std::tmpfile());
  const File err(std::tmpfile());
  if (!out || !err) return errno_error(errno, "cannot write the output of", argv[0]);
  PENSTOCK_ASSIGN(const pid_t child, start_child(argv, ::fileno(out.get()), ::fileno(err.get())));
  PENSTOCK_ASSIGN(const int code, wait_for_child(child, argv[0]));
  return ToolOutput{code, text_of(out), text_of(err)};
}

std::string program_in_path(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
    const std::string file = (folder.empty() ? "." : folder) + "/" + std::string(name);
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

}  // namespace penstock
