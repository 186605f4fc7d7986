// Starts and ends the processes of side jobs.
//
// Threads: the server's main thread.
// Locks: none. The inspecting thread (live_view.hpp) may hold locks while posix_spawn() makes the child. This
// is safe: the child takes no lock before it executes the new program.
// Memory: may allocate.
// Signals: the server's handlers only set a flag (interrupt.hpp). A job cannot ignore the SIGKILL from the
// destructor.
// Crash: if the server is killed, a job continues, and its temporary folder remains.
#include "profiling/serve/side_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutputFile = "out";
constexpr const char* kStdoutFile = "words";
constexpr const char* kStderrFile = "errors";

// Returns the last line of the job's stderr, without "penstock: ".
std::string last_line(const fs::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) last = line;
  constexpr std::string_view kOurPrefix = "penstock: ";
  return last.starts_with(kOurPrefix) ? last.substr(kOurPrefix.size()) : last;
}

}  // namespace

Result<SideJob> SideJob::begin(std::vector<std::string> arguments, const std::string& output) {
  std::error_code error;
  const fs::path temp_folder = fs::temp_directory_path(error);
  if (error) return errno_error(error.value(), "cannot find", "the folder for temporary files");
  std::string name = (temp_folder / "penstock-serve-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return errno_error(errno, "cannot make a folder in", temp_folder.string());
  const fs::path folder = name;
  const std::string output_path = (folder / kOutputFile).string();
  const std::string stdout_path = output.empty() ? output_path : (folder / kStdoutFile).string();
  const std::string stderr_path = (folder / kStderrFile).string();
  arguments.insert(arguments.begin(), "penstock");
  std::vector<char*> argv;
  for (std::string& word : arguments) {
    if (!output.empty() && word == output) word = output_path;
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  constexpr int kWriteFlags = O_WRONLY | O_CREAT | O_TRUNC;
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, stdout_path.c_str(), kWriteFlags, 0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, stderr_path.c_str(), kWriteFlags, 0600);
  pid_t pid = -1;
  const int spawn_error = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (spawn_error != 0) {
    fs::remove_all(folder, error);
    return errno_error(spawn_error, "cannot start", "penstock " + arguments[1]);
  }
  return SideJob(pid, folder);
}

SideJob::SideJob(SideJob&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), folder_(std::exchange(other.folder_, {})) {}

// Kills the job if it still runs, and waits until it has ended. Only then is its folder removed, because a
// running job could write there again.
SideJob::~SideJob() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    static_cast<void>(retry_eintr([&] { return ::waitpid(pid_, nullptr, 0); }));
  }
  std::error_code ignored_error;
  if (!folder_.empty()) fs::remove_all(folder_, ignored_error);
}

// Checks whether the job has ended, without waiting (WNOHANG). If it has, sets pid_ to -1: the kernel may now
// give this pid to another process, which the destructor must not kill.
std::optional<Result<Fd>> SideJob::poll() {
  int status = 0;
  const pid_t ended_pid = retry_eintr([&] { return ::waitpid(pid_, &status, WNOHANG); });
  if (ended_pid == 0) return std::nullopt;
  const int wait_error = errno;
  pid_ = -1;
  if (ended_pid < 0) return Result<Fd>(errno_error(wait_error, "cannot wait for", "the report"));
  return open_output(status);
}

Result<Fd> SideJob::open_output(int status) const {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string error_line = last_line(folder_ / kStderrFile);
    return make_error(Errc::io, error_line.empty() ? "it ended before it was done" : error_line);
  }
  Fd fd(retry_eintr([&] { return ::open((folder_ / kOutputFile).c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!fd) return errno_error(errno, "cannot read", "the prepared file");
  return fd;
}

}  // namespace penstock
