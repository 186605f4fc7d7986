// Threads: the thread that opens the Checkpointer calls log_acknowledgements(). write_line() runs on the
// thread that committed or drained, one call at a time.
// Lock: none in this file. The caller of write_line() holds the ledger's lock for acknowledgements
// (acknowledging_).
// Memory: each line and each error allocates.
// Ctrl-C: not checked. Every call but the fsync of the folder is repeated after EINTR.
// Crash: the folder is synced before the first line. Each line is one write(), which fdatasync() makes
// durable before the level is acknowledged. So a torn line was never acknowledged, and the next opening
// removes it.
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
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view rest = text.substr(digits);
  if (digits == 0) return false;
  return rest.empty() || std::string_view(" fast").starts_with(rest) ||
         std::string_view(" durable").starts_with(rest);
}

Result<void> cut_torn_line(int file, const std::string& path) {
  constexpr off_t kLongest = 64;  // bytes; longer than any line
  struct stat facts {};
  if (::fstat(file, &facts) != 0)
    return errno_error(errno, "cannot look at the log of acknowledgements", path);
  if (!S_ISREG(facts.st_mode)) return success();
  const off_t from = std::max<off_t>(0, facts.st_size - kLongest);
  std::string tail(static_cast<std::size_t>(facts.st_size - from), '\0');
  const ssize_t got = retry_eintr([&] { return ::pread(file, tail.data(), tail.size(), from); });
  if (got != static_cast<ssize_t>(tail.size()))
    return errno_error(got < 0 ? errno : EIO, "cannot read the log of acknowledgements", path);
  const std::size_t last = tail.rfind('\n') + 1;  // npos + 1 is 0
  if (last == tail.size()) return success();
  if ((last == 0 && from > 0) || !begins_a_line(std::string_view(tail).substr(last)))
    return make_error(Errc::invalid_argument,
                      "'" + path + "' is no log of acknowledgements: name another --ack-log");
  if (retry_eintr([&] { return ::ftruncate(file, from + static_cast<off_t>(last)); }) != 0)
    return errno_error(errno, "cannot write the log of acknowledgements", path);
  return success();
}

// On the thread that committed or drained, with the ledger's acknowledging_ held: one line at a time.
Result<void> write_line(int file, const std::string& path, const std::string& line) {
  // One write() for the whole line: with two, a kill between them could tear the line.
  const ssize_t written = retry_eintr([&] { return ::write(file, line.data(), line.size()); });
  if (written != static_cast<ssize_t>(line.size()))
    return errno_error(written < 0 ? errno : ENOSPC, "cannot write the log of acknowledgements", path);
  if (retry_eintr([&] { return ::fdatasync(file); }) != 0)
    return errno_error(errno, "cannot sync the log of acknowledgements", path);
  return success();
}

}  // namespace

Result<Checkpointer::Acknowledged> log_acknowledgements(const std::string& path) {
  Fd file(retry_eintr([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }));
  if (!file) return errno_error(errno, "cannot write the log of acknowledgements", path);
  PENSTOCK_TRY(cut_torn_line(file.get(), path));
  // The folder is synced before the first line: the file's name must survive a power cut as well.
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  const std::string folder = above.empty() ? "." : above.string();
  const Fd parent(retry_eintr([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!parent || ::fsync(parent.get()) != 0)
    return errno_error(errno, "cannot sync the folder of the log of acknowledgements", folder);
  const auto kept = std::make_shared<Fd>(std::move(file));  // shared, since a std::function must be copyable
  return Checkpointer::Acknowledged([kept, path](const CheckpointId& id, Reached level) {
    return write_line(kept->get(), path, fmt::format("{} {}\n", id.step, reached_name(level)));
  });
}

}  // namespace penstock
