#include "miniapps/ack_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace penstock {

Result<AckLog> AckLog::open(const std::string& path) {
  Fd file(retry_eintr([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }));
  if (!file) return errno_error(errno, "cannot write the log of acknowledgements", path);
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  const std::string folder = above.empty() ? "." : above.string();
  const Fd parent(retry_eintr([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!parent || ::fsync(parent.get()) != 0)
    return errno_error(errno, "cannot sync the folder of the log of acknowledgements", folder);
  return AckLog(std::move(file), path);
}

Result<void> AckLog::write(const CheckpointId& id, Reached level) {
  const std::string line = fmt::format("{} {}\n", id.step, reached_name(level));
  // One call: a line of two of them could be torn by a kill.
  const ssize_t written = retry_eintr([&] { return ::write(file_.get(), line.data(), line.size()); });
  if (written != static_cast<ssize_t>(line.size()))
    return errno_error(written < 0 ? errno : ENOSPC, "cannot write the log of acknowledgements", path_);
  if (retry_eintr([&] { return ::fdatasync(file_.get()); }) != 0)
    return errno_error(errno, "cannot sync the log of acknowledgements", path_);
  return success();
}

}  // namespace penstock
