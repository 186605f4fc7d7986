// Threads: each object belongs to one thread. Threads that ask find() wait for each other.
// Memory: shared with the process. The process can write to it at any time, so what it wrote is copied before
// it is checked. It cannot make the memory smaller (F_SEAL_SHRINK).
// Crash: if this process dies, penstock_hdf5_filters reads the end of its stdin and ends.
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
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "datagen/codec/filter_exchange.hpp"
#include "io_backends/core/ranks/module.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kBytesPerSecond = uint64_t{16} << 20U;

// A copy of a descriptor that is none of those that the process gets.
Fd above_standard(Fd fd) {
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFilterMemoryFd + 1));
}

std::string names_of(std::span<const ChunkFilter> filters) {
  std::string names;
  for (const ChunkFilter& filter : filters)
    if (filter.needs_library()) names += (names.empty() ? "" : ", ") + chunk_filter_name(filter.number);
  return names;
}

}  // namespace

LibraryFilters::LibraryFilters(LibraryFilters&& other) noexcept
    : patience_(other.patience_),
      process_(std::exchange(other.process_, -1)),
      socket_(std::move(other.socket_)),
      memory_fd_(std::move(other.memory_fd_)),
      memory_(std::exchange(other.memory_, {})),
      gave_up_(std::move(other.gave_up_)) {}

LibraryFilters& LibraryFilters::operator=(LibraryFilters&& other) noexcept {
  std::swap(patience_, other.patience_);
  std::swap(process_, other.process_);
  std::swap(socket_, other.socket_);
  std::swap(memory_fd_, other.memory_fd_);
  std::swap(memory_, other.memory_);
  std::swap(gave_up_, other.gave_up_);
  return *this;
}

LibraryFilters::~LibraryFilters() {
  stop();
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

FilterExchange& LibraryFilters::exchange() const {
  return *reinterpret_cast<FilterExchange*>(memory_.data());  // NOLINT(*-cast)
}

// Makes memory_ at least as long. The process maps it again when it sees the new length.
Result<void> LibraryFilters::reserve(size_t bytes) {
  if (!memory_fd_) {
    memory_fd_ = above_standard(Fd(::memfd_create("chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (!memory_fd_) return errno_error(errno, "cannot make memory for", kFilterProgram);
    ::fcntl(memory_fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  }
  if (bytes <= memory_.size()) return success();
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  if (::ftruncate(memory_fd_.get(), off_t(bytes)) != 0)
    return make_error(Errc::exhausted, "no memory for a chunk: {} bytes", bytes);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd_.get(), 0);
  if (mapped == MAP_FAILED) return make_error(Errc::exhausted, "no memory for a chunk: {} bytes", bytes);
  if (memory_.empty())
    new (mapped) FilterExchange;
  else
    ::munmap(memory_.data(), memory_.size());
  memory_ = {static_cast<std::byte*>(mapped), bytes};
  return success();
}

// Threads may hold locks while posix_spawn() makes the process: it runs no code of this program.
Result<void> LibraryFilters::start() {
  if (process_ > 0) return success();
  PENSTOCK_ASSIGN(std::string path, module_path(kFilterProgram));
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return errno_error(errno, "cannot start", path);
  socket_ = above_standard(Fd(pair[0]));
  const Fd its_socket = above_standard(Fd(pair[1]));
  if (!socket_ || !its_socket) return errno_error(errno, "cannot start", path);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, its_socket.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, memory_fd_.get(), kFilterMemoryFd);
  char* argv[] = {path.data(), nullptr};
  const int failed = ::posix_spawn(&process_, path.c_str(), &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return success();
  process_ = -1;
  return errno_error(failed, "cannot start", path);
}

void LibraryFilters::stop() {
  socket_ = Fd();
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  static_cast<void>(retry_eintr([&] { return ::waitpid(process_, nullptr, 0); }));
  process_ = -1;
}

// The error of a process that ended without an answer.
Error LibraryFilters::ended() {
  int status = 0;
  ::kill(process_, SIGKILL);  // in case it has only closed its stdin; it changes nothing if it has ended
  const pid_t waited = retry_eintr([&] { return ::waitpid(process_, &status, 0); });
  process_ = -1;
  socket_ = Fd();
  if (const auto stopped = check_interrupt(); !stopped.ok()) return stopped.error();
  if (waited > 0 && WIFSIGNALED(status))
    return make_error(Errc::corrupt, "HDF5's library crashed (signal {}, {})", WTERMSIG(status),
                      ::strsignal(WTERMSIG(status)));
  return make_error(Errc::unsupported, "{} ended without an answer (exit code {})", kFilterProgram,
                    waited > 0 ? WEXITSTATUS(status) : -1);
}

// Waits for the process's answer to the question in the memory.
Result<void> LibraryFilters::ask(std::chrono::seconds patience) {
  PENSTOCK_TRY(start());
  char byte = 0;
  if (retry_eintr([&] { return ::send(socket_.get(), &byte, 1, MSG_NOSIGNAL); }) != 1) return ended();
  const auto due = steady_clock::now() + patience;
  while (true) {
    constexpr int kMostWaitMs = 100;
    pollfd answer{socket_.get(), POLLIN, 0};
    if (::poll(&answer, 1, kMostWaitMs) > 0) break;
    if (auto stopped = check_interrupt(); !stopped.ok()) {
      stop();
      return stopped;
    }
    if (steady_clock::now() < due) continue;
    stop();
    gave_up_ = make_error(Errc::corrupt, "HDF5's library gave no answer in {} s", patience.count());
    return *gave_up_;
  }
  if (retry_eintr([&] { return ::recv(socket_.get(), &byte, 1, 0); }) != 1) return ended();
  return success();
}

Result<void> LibraryFilters::find(uint16_t number) {
  static std::mutex mutex;
  static std::map<uint16_t, std::optional<Error>> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(number); found != known.end()) {
    if (found->second) return *found->second;
    return success();
  }
  LibraryFilters library;
  PENSTOCK_TRY(library.reserve(kFilterStoredOffset));
  FilterExchange& exchange = library.exchange();
  exchange.filter_count = 1;
  exchange.filters[0].number = number;
  const Result<void> asked = library.ask(library.patience_);
  constexpr std::string_view kRepack = "h5repack -f GZIP=6 OLD NEW makes a file that is read";
  std::optional<Error> error;
  if (!asked.ok() && asked.error().code == Errc::interrupted) return asked;
  if (!asked.ok())
    error = make_error(Errc::unsupported, "{}: {}", asked.error().what, kRepack);
  else if (exchange.outcome != FilterExchange::Outcome::done)
    error = make_error(Errc::unsupported,
                       "HDF5's library has no such filter: set HDF5_PLUGIN_PATH to the folder of its plug-in "
                       "(python3 -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)'), or {}",
                       kRepack);
  known[number] = error;
  if (error) return *error;
  return success();
}

Result<std::span<const std::byte>> LibraryFilters::undo(std::span<const ChunkFilter> filters,
                                                        uint32_t not_applied,
                                                        std::span<const std::byte> stored,
                                                        uint64_t chunk_bytes) {
  if (gave_up_) return *gave_up_;
  if (stored.empty() || stored.size() > kMostBytes || chunk_bytes == 0 || chunk_bytes > kMostBytes)
    return make_error(Errc::corrupt, "a chunk has {} bytes for {}", stored.size(), chunk_bytes);
  const size_t result_offset = filter_result_offset(stored.size());
  PENSTOCK_TRY(reserve(result_offset + size_t(chunk_bytes)));
  FilterExchange& exchange = this->exchange();
  exchange.stored_bytes = stored.size();
  exchange.chunk_bytes = chunk_bytes;
  exchange.filter_count = 0;
  for (size_t i = 0; i < filters.size(); ++i) {
    if ((not_applied >> i & 1U) != 0) continue;
    if (exchange.filter_count == exchange.filters.size() ||
        filters[i].parameters.size() > exchange.filters.front().parameters.size())
      return make_error(Errc::unsupported, "chunks with too many filters, or with too many parameters");
    FilterExchange::Filter& filter = exchange.filters[exchange.filter_count++];
    filter.number = filters[i].number;
    filter.parameter_count = uint16_t(filters[i].parameters.size());
    std::copy(filters[i].parameters.begin(), filters[i].parameters.end(), filter.parameters.begin());
  }
  exchange.outcome = FilterExchange::Outcome::failed;
  std::copy(stored.begin(), stored.end(), memory_.begin() + kFilterStoredOffset);
  if (const auto asked =
          ask(patience_ + std::chrono::seconds((stored.size() + chunk_bytes) / kBytesPerSecond));
      !asked.ok()) {
    if (asked.error().code != Errc::corrupt) return asked.error();
    return make_error(Errc::corrupt, "a chunk is damaged ({}): {}", names_of(filters), asked.error().what);
  }
  if (exchange.outcome != FilterExchange::Outcome::done) {
    const std::array<char, sizeof exchange.reason> reason = exchange.reason;
    return make_error(Errc::corrupt, "a chunk is damaged ({}): HDF5's library reports '{}'", names_of(filters),
                      std::string(reason.data(), ::strnlen(reason.data(), reason.size())));
  }
  return std::span<const std::byte>(memory_).subspan(result_offset, size_t(chunk_bytes));
}

}  // namespace penstock
