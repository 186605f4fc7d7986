// Threads: each object belongs to one thread. find() asks on the thread that calls it.
// Lock: the one of kept connections and the one of known filters; neither is held while the library works.
// Memory: shared with the process, which can write to it at any time. So what it wrote is copied before it is
// used, and this program takes no number from it. It cannot make the memory smaller (F_SEAL_SHRINK).
// Signals: the process blocks SIGINT, SIGHUP and SIGTERM. Ctrl-C ends the wait here, and then the process.
// Crash: if this program dies, the process reads the end of its stdin and ends. If it is in the library then,
// an alarm ends it.
#include "datagen/codec/library_filters.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "datagen/codec/filter_exchange.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/limits.hpp"
#include "io_backends/core/ranks/module.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kBytesPerSecond = uint64_t{16} << 20U;
constexpr int kMostTimeouts = 3;

// An error whose `what` has the system's reason: callers put `what` into longer sentences.
Error with_reason(Errc code, std::string_view operation, std::string_view object) {
  const int failed = errno;
  return {code, 0, errno_error(failed, operation, object).message()};
}

// A copy of a descriptor that is none of those that the process gets.
Fd above_standard(const Fd& fd) {
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFilterMemoryFd + 1));
}

std::string names_of(std::span<const ChunkFilter> filters) {
  std::string names;
  for (const ChunkFilter& filter : filters)
    if (filter.needs_library()) names += (names.empty() ? "" : ", ") + chunk_filter_name(filter.number);
  return names;
}

// Ends of a process that the bytes of a chunk may cause.
bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE || signal == SIGILL;
}

struct IdleConnections {
  std::mutex mutex;
  std::vector<std::unique_ptr<LibraryFilters>> connections;
};
IdleConnections& idle_connections() {
  static IdleConnections all;
  return all;
}

}  // namespace

LibraryFilters::~LibraryFilters() {
  // The process ends by itself, unless the library hangs.
  socket_ = Fd();
  for (int i = 0; i < 100 && process_ > 0; ++i) {
    if (::waitpid(process_, nullptr, WNOHANG) != 0) process_ = -1;
    if (process_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop();
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

std::unique_ptr<LibraryFilters> LibraryFilters::take() {
  const std::lock_guard lock(idle_connections().mutex);
  auto& connections = idle_connections().connections;
  if (connections.empty()) return std::make_unique<LibraryFilters>();
  auto connection = std::move(connections.back());
  connections.pop_back();
  return connection;
}

void LibraryFilters::keep(std::unique_ptr<LibraryFilters> connection) {
  if (connection->timeouts_ > 0) return;  // they say nothing about the chunks of the next object
  const std::lock_guard lock(idle_connections().mutex);
  idle_connections().connections.push_back(std::move(connection));
}

// Makes memory_ at least as long. The process maps it again when it sees the new length.
Result<void> LibraryFilters::reserve(size_t bytes) {
  if (bytes <= memory_.size()) return success();
  if (!memory_fd_) {
    const Fd made(::memfd_create("chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!made) return with_reason(Errc::exhausted, "cannot make memory for", kFilterProgram);
    memory_fd_ = above_standard(made);
    if (!memory_fd_) return with_reason(Errc::exhausted, "cannot make memory for", kFilterProgram);
    ::fcntl(memory_fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  }
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  void* mapped = MAP_FAILED;
  if (::ftruncate(memory_fd_.get(), off_t(bytes)) == 0)
    mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd_.get(), 0);
  if (mapped == MAP_FAILED) {
    Error error = with_reason(Errc::exhausted, "cannot make memory for", kFilterProgram);
    error.what += memory_limit_text();
    stop();
    memory_fd_ = Fd();  // it may have become longer, and cannot be made shorter
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
    memory_ = {};
    return error;
  }
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  memory_ = {static_cast<std::byte*>(mapped), bytes};
  return success();
}

// Threads may hold locks while posix_spawn() makes the process: it runs no code of this program.
Result<void> LibraryFilters::start() {
  if (process_ > 0) return success();
  Result<std::string> found = module_path(kFilterProgram);
  if (!found.ok())
    return make_error(found.error().code, "{}: install HDF5's library (Debian: libhdf5-dev) and build again",
                      found.error().what);
  std::string path = *std::move(found);
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return with_reason(Errc::exhausted, "cannot start", path);
  const Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  socket_ = above_standard(ours);
  const Fd their_socket = above_standard(theirs);
  if (!socket_ || !their_socket) return with_reason(Errc::exhausted, "cannot start", path);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, their_socket.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, memory_fd_.get(), kFilterMemoryFd);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) ::sigaddset(&blocked, signal);
  sigset_t default_signals;
  ::sigemptyset(&default_signals);
  ::sigaddset(&default_signals, SIGALRM);
  ::posix_spawnattr_setsigmask(&attributes, &blocked);
  ::posix_spawnattr_setsigdefault(&attributes, &default_signals);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char* argv[] = {path.data(), nullptr};
  errno = ::posix_spawn(&process_, path.c_str(), &actions, &attributes, argv, environ);
  const bool failed = errno != 0;
  const bool lacks_resources = errno == EAGAIN || errno == ENOMEM || errno == EMFILE || errno == ENFILE;
  const Error error =
      with_reason(lacks_resources ? Errc::exhausted : Errc::unsupported, "cannot start", path);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (!failed) return success();
  process_ = -1;
  return error;
}

void LibraryFilters::stop() {
  socket_ = Fd();
  if (process_ <= 0) return;
  // If SIGCHLD is ignored, the number of a process that has ended may be that of another one.
  if (retry_eintr([&] { return ::waitpid(process_, nullptr, WNOHANG); }) == 0) {
    ::kill(process_, SIGKILL);
    static_cast<void>(retry_eintr([&] { return ::waitpid(process_, nullptr, 0); }));
  }
  process_ = -1;
}

// The error of a process that ended without an answer.
Error LibraryFilters::ended() {
  int status = 0;
  pid_t waited = retry_eintr([&] { return ::waitpid(process_, &status, WNOHANG); });
  if (waited == 0) {  // it runs, and has only closed its stdin, or it is just ending
    ::kill(process_, SIGKILL);
    waited = retry_eintr([&] { return ::waitpid(process_, &status, 0); });
  }
  process_ = -1;
  socket_ = Fd();
  if (const auto stopped = check_interrupt(); !stopped.ok()) return stopped.error();
  if (waited < 0) return make_error(Errc::io, "{} ended without a result", kFilterProgram);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kFilterNoMemory)
    return make_error(Errc::exhausted, "no memory for {}{}", kFilterProgram, memory_limit_text());
  constexpr int kNotLoaded = 127;  // of the loader of programs
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotLoaded)
    return make_error(Errc::unsupported,
                      "{} cannot be loaded (exit code 127): to list the missing libraries: ldd {}",
                      kFilterProgram, shell_word(module_path(kFilterProgram).value_or(kFilterProgram)));
  if (WIFEXITED(status))
    return make_error(Errc::corrupt, "HDF5's library ended its process (exit code {})", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (is_crash(signal))
    return make_error(Errc::corrupt, "HDF5's library crashed (signal {}, {})", signal, ::strsignal(signal));
  return make_error(Errc::exhausted, "{} was killed (signal {}, {}){}", kFilterProgram, signal,
                    ::strsignal(signal), signal == SIGKILL ? ": usually it ran out of memory" : "");
}

// Asks the question and waits until the answer is in the memory. If the process was killed, which may have
// been before the question, a new one is asked, once. An alarm kills it, too, if both were stopped for long.
Result<void> LibraryFilters::ask(FilterQuestion& question) {
  const auto timeout =
      timeout_ + std::chrono::seconds((question.stored_bytes + question.chunk_bytes) / kBytesPerSecond);
  question.timeout_s = uint32_t(timeout.count()) + 10;
  std::memcpy(memory_.data(), &question, sizeof question);
  for (bool again = true;; again = false) {
    PENSTOCK_TRY(start());
    const char byte = 0;
    const bool sent = retry_eintr([&] { return ::send(socket_.get(), &byte, 1, MSG_NOSIGNAL); }) == 1;
    Result<void> answered = sent ? wait_for_answer(timeout) : ended();
    if (answered.ok() || answered.error().code != Errc::exhausted || !again) return answered;
  }
}

Result<void> LibraryFilters::wait_for_answer(std::chrono::seconds timeout) {
  auto due = steady_clock::now() + timeout;
  unsigned continued = times_continued();
  while (true) {
    constexpr int kMostWaitMs = 100;
    pollfd answer{socket_.get(), POLLIN, 0};
    if (::poll(&answer, 1, kMostWaitMs) > 0) break;
    if (auto stopped = check_interrupt(); !stopped.ok()) {
      stop();
      return stopped;
    }
    // After SIGCONT: the time in which both processes were stopped does not count.
    if (std::exchange(continued, times_continued()) != continued) due = steady_clock::now() + timeout;
    if (steady_clock::now() < due) continue;
    stop();
    ++timeouts_;
    return make_error(Errc::unsupported, "HDF5's library did not answer in {} s", timeout.count());
  }
  char byte = 0;
  if (retry_eintr([&] { return ::recv(socket_.get(), &byte, 1, 0); }) != 1) return ended();
  return success();
}

Result<void> LibraryFilters::find(uint16_t number) {
  static std::mutex mutex;
  static std::map<uint16_t, bool> known;  // the library's answers
  std::optional<bool> found;
  {
    const std::lock_guard lock(mutex);
    if (const auto it = known.find(number); it != known.end()) found = it->second;
  }
  if (!found) {
    std::unique_ptr<LibraryFilters> library = take();
    FilterQuestion question{.filter_count = 1};
    question.filters[0].number = number;
    PENSTOCK_TRY(library->reserve(kFilterStoredOffset));
    if (const auto asked = library->ask(question); !asked.ok()) {
      // No byte of a file was sent, so none is damaged.
      const Errc code = asked.error().code == Errc::corrupt ? Errc::unsupported : asked.error().code;
      return make_error(code, "{}", asked.error().what);
    }
    FilterAnswer answer;
    std::memcpy(&answer, library->memory_.data() + kFilterAnswerOffset, sizeof answer);
    keep(std::move(library));
    found = answer.is_done != 0;
    const std::lock_guard lock(mutex);
    known[number] = *found;
  }
  if (*found) return success();
  constexpr uint16_t kFirstOfPlugIns = 256;
  if (number < kFirstOfPlugIns)
    return make_error(Errc::unsupported,
                      "HDF5's library was built without it: use another build of the library, or run "
                      "h5repack -f GZIP=6 OLD NEW where it is supported");
  return make_error(
      Errc::unsupported,
      "HDF5's library finds no plug-in for it: set HDF5_PLUGIN_PATH to its folder (pip install hdf5plugin; "
      "export HDF5_PLUGIN_PATH=$(python3 -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)'))");
}

bool LibraryFilters::has_given_up() const {
  return timeouts_ >= kMostTimeouts;
}

Result<std::span<const std::byte>> LibraryFilters::undo(std::span<const ChunkFilter> filters,
                                                        uint32_t not_applied,
                                                        std::span<const std::byte> stored,
                                                        uint64_t chunk_bytes) {
  if (stored.empty()) return make_error(Errc::corrupt, "a chunk is damaged: it is empty");
  if (stored.size() > kMostChunkBytes || chunk_bytes == 0 || chunk_bytes > kMostChunkBytes)
    return make_error(Errc::corrupt, "a chunk is damaged: {} bytes cannot hold {}", stored.size(),
                      chunk_bytes);
  if (filters.size() > ChunkFilter::kMostFilters)
    return make_error(Errc::invalid_argument, "a chunk of {} filters", filters.size());
  for (const ChunkFilter& filter : filters)
    if (filter.parameters.size() > ChunkFilter::kMostParameters)
      return make_error(Errc::invalid_argument, "a filter with {} parameters", filter.parameters.size());
  if (has_given_up())
    return make_error(Errc::unsupported, "a chunk was skipped: HDF5's library did not answer for {} others",
                      timeouts_);
  const size_t result_offset = filter_result_offset(stored.size());
  PENSTOCK_TRY(reserve(result_offset + size_t(chunk_bytes)));
  FilterQuestion question{.stored_bytes = stored.size(), .chunk_bytes = chunk_bytes};
  for (size_t i = 0; i < filters.size(); ++i) {
    if ((not_applied >> i & 1U) != 0) continue;
    FilterQuestion::Filter& filter = question.filters[question.filter_count++];
    filter.number = filters[i].number;
    filter.parameter_count = uint16_t(filters[i].parameters.size());
    std::copy(filters[i].parameters.begin(), filters[i].parameters.end(), filter.parameters.begin());
  }
  std::copy(stored.begin(), stored.end(), memory_.begin() + kFilterStoredOffset);
  const auto failed = [&](const Error& error) {
    return make_error(error.code, "cannot undo the filters of a chunk ({}): {}", names_of(filters),
                      error.what);
  };
  if (const auto asked = ask(question); !asked.ok()) return failed(asked.error());
  FilterAnswer answer;
  std::memcpy(&answer, memory_.data() + kFilterAnswerOffset, sizeof answer);
  if (answer.is_done == 0) {
    stop();  // a damaged chunk may have damaged the library's memory
    for (const ChunkFilter& filter : filters)
      if (const auto found = filter.needs_library() ? find(filter.number) : success(); !found.ok())
        return failed(found.error());
    const std::string reason(answer.reason.data(), ::strnlen(answer.reason.data(), answer.reason.size()));
    if (answer.lacks_memory != 0)
      return failed(make_error(Errc::unsupported, "HDF5's library could not allocate memory for it ('{}'){}",
                               reason, memory_limit_text()));
    return failed(make_error(Errc::corrupt, "HDF5's library reports '{}'", reason));
  }
  return std::span<const std::byte>(memory_).subspan(result_offset, size_t(chunk_bytes));
}

}  // namespace penstock
