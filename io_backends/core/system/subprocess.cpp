#include "io_backends/core/system/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

// Owns posix_spawn's list of things to do to descriptors.
class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Result<int> run_program(std::span<const std::string> argv, const SubprocessOptions& options) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  FileActions actions;
  if (options.discard_stdout)
    ::posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  if (const int failed = ::posix_spawnp(&child, words[0], actions.get(), nullptr, words.data(), environ);
      failed != 0)
    return errno_error(failed, "cannot run", argv[0]);
  bool told = false;
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended < 0 && errno != EINTR) return errno_error(errno, "cannot wait for", argv[0]);
    if (const int signal = interrupt_signal(); signal != 0 && !told) {
      ::kill(child, signal);
      told = true;
    }
    ::poll(nullptr, 0, 5);
  }
}

Result<std::filesystem::path> this_program() {
  std::error_code failed;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return errno_error(failed.value(), "cannot read", "/proc/self/exe");
  return path;
}

}  // namespace penstock
