// Threads: the thread that opens the Checkpointer calls log_acknowledgements(). write_line() runs on the
// thread that has just committed or drained a checkpoint, one call at a time.
// Lock: none in this file. The caller of write_line() holds CheckpointLedger::acknowledge_mutex_.
// Memory: each line and each error allocates.
// Ctrl-C: not checked. Every system call but fstat() and the fsync of the folder is repeated after EINTR.
// Crash: the folder is synced before the first line is written. Each line is one write(), and fdatasync()
// makes it durable before its level is acknowledged. So the level of a torn line was never acknowledged, and
// the next log_acknowledgements() removes the line.
#include "miniapps/checkpoint/ack_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "io_backends/core/system/fd.hpp"

namespace penstock {

namespace {

// Whether `text` is a line such as "120 fast", or the beginning of one.
bool begins_a_line(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view rest = text.substr(digits);
  if (digits == 0) return false;
  return rest.empty() || std::string_view(" fast").starts_with(rest) ||
         std::string_view(" durable").starts_with(rest);
}

Result<void> remove_torn_line(int file, const std::string& path) {
  constexpr off_t kMostLineBytes = 64;  // longer than any line
  struct stat facts {};
  if (::fstat(file, &facts) != 0)
    return errno_error(errno, "cannot inspect the log of acknowledgements", path);
  if (!S_ISREG(facts.st_mode)) return success();
  const off_t tail_begin = std::max<off_t>(0, facts.st_size - kMostLineBytes);
  std::string tail(size_t(facts.st_size - tail_begin), '\0');
  const ssize_t bytes_read = retry_eintr([&] { return ::pread(file, tail.data(), tail.size(), tail_begin); });
  if (bytes_read != ssize_t(tail.size()))
    return errno_error(bytes_read < 0 ? errno : EIO, "cannot read the log of acknowledgements", path);
  const size_t line_begin = tail.rfind('\n') + 1;  // 0 without a newline: npos + 1 is 0
  if (line_begin == tail.size()) return success();
  if ((line_begin == 0 && tail_begin > 0) || !begins_a_line(std::string_view(tail).substr(line_begin)))
    return make_error(Errc::invalid_argument,
                      "'" + path + "' is not a log of acknowledgements: name another --ack-log");
  if (retry_eintr([&] { return ::ftruncate(file, tail_begin + off_t(line_begin)); }) != 0)
    return errno_error(errno, "cannot write the log of acknowledgements", path);
  return success();
}

// Appends the line to the file and syncs it. Called on the thread that committed or drained the checkpoint.
// That thread holds the ledger's acknowledge_mutex_, so one line is written at a time.
Result<void> write_line(int file, const std::string& path, const std::string& line) {
  // The whole line is one write(): a kill between two writes would leave half a line.
  const ssize_t written = retry_eintr([&] { return ::write(file, line.data(), line.size()); });
  if (written != ssize_t(line.size()))
    return errno_error(written < 0 ? errno : ENOSPC, "cannot write the log of acknowledgements", path);
  if (retry_eintr([&] { return ::fdatasync(file); }) != 0)
    return errno_error(errno, "cannot sync the log of acknowledgements", path);
  return success();
}

}  // namespace

Result<Checkpointer::OnReached> log_acknowledgements(const std::string& path) {
  Fd file(retry_eintr([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }));
  if (!file) return errno_error(errno, "cannot write the log of acknowledgements", path);
  PENSTOCK_TRY(remove_torn_line(file.get(), path));
  // Syncs the folder before the first line is written: the file's name must survive a power cut as well.
  const std::filesystem::path folder_path = std::filesystem::path(path).parent_path();
  const std::string folder = folder_path.empty() ? "." : folder_path.string();
  const Fd parent(retry_eintr([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!parent || ::fsync(parent.get()) != 0)
    return errno_error(errno, "cannot sync the folder of the log of acknowledgements", folder);
  // A shared_ptr, since a std::function must be copyable and an Fd is not.
  const auto shared_file = std::make_shared<Fd>(std::move(file));
  return Checkpointer::OnReached([shared_file, path](const CheckpointId& id, Reached level) {
    return write_line(shared_file->get(), path, fmt::format("{} {}\n", id.step, reached_name(level)));
  });
}

}  // namespace penstock
