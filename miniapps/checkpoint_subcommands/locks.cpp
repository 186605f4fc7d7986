#include "miniapps/checkpoint_subcommands/locks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

constexpr std::string_view kLocks = "locks";

// The holder's text; none where no process holds it.
Result<std::optional<std::string>> holder_of(const std::filesystem::path& path) {
  const Fd file(retry_eintr([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!file && errno == ENOENT) return std::optional<std::string>();
  if (!file) return errno_error(errno, "cannot look at the lock", path.string());
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_OFD_GETLK, &whole) != 0)
    return errno_error(errno, "cannot look at the lock", path.string());
  if (whole.l_type == F_UNLCK) return std::optional<std::string>();
  std::array<char, 512> text{};
  const ssize_t length = ::pread(file.get(), text.data(), text.size(), 0);
  std::string words(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return std::optional<std::string>(std::move(words));
}

}  // namespace

Result<std::optional<std::vector<HeldLock>>> held_locks(const CheckpointStore& store) {
  Backend& backend = *store.tier().backend;
  std::vector<HeldLock> held;
  if (!backend.native_path("")) return std::optional<std::vector<HeldLock>>();
  std::vector<std::string> names;
  const Result<void> listed = backend.names().list(kLocks, [&](const Entry& entry) {
    if (!entry.folder) names.push_back(entry.name);
    return true;
  });
  if (!listed.ok() && listed.error().code != Errc::not_found) return listed.error();
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string file = name.substr(name.rfind('/') + 1);  // entries are named from the root
    const std::size_t dot = file.rfind('.');
    const auto path = backend.native_path(std::string(kLocks) + "/" + file);
    if (dot == std::string::npos || !path) continue;
    PENSTOCK_ASSIGN(std::optional<std::string> holder, holder_of(*path));
    if (holder) held.push_back({file.substr(0, dot), file.substr(dot + 1), *std::move(holder)});
  }
  return std::optional<std::vector<HeldLock>>(std::move(held));
}

}  // namespace penstock
