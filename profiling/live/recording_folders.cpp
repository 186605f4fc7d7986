#include "profiling/live/recording_folders.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "io_backends/core/text.hpp"
#include "profiling/attach/target.hpp"

namespace penstock {

namespace fs = std::filesystem;

std::string recording_folder_of(uint32_t pid) {
  if (const auto running = running_session(static_cast<pid_t>(pid)))
    return fs::path(running->file).parent_path().string();
  constexpr size_t kMostBytes = 4U << 20U;
  constexpr std::string_view kFolderVariable = "PENSTOCK_PROFILE_SESSION=";
  std::ifstream in(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  size_t bytes = 0;
  for (std::string entry; bytes < kMostBytes && std::getline(in, entry, '\0'); bytes += entry.size() + 1)
    if (entry.starts_with(kFolderVariable)) return entry.substr(kFolderVariable.size());
  return "";
}

Result<std::vector<std::string>> recording_folders() {
  std::set<std::string> folders;
  std::error_code error;
  if (!fs::exists("/proc/self/stat", error))
    return make_error(Errc::unsupported, "cannot list the profiled processes: /proc is not mounted");
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const auto pid = parse_digits<uint32_t>(at->path().filename().native());
    if (!pid) continue;
    std::error_code not_there;
    if (std::string folder = recording_folder_of(*pid);
        !folder.empty() && fs::is_directory(folder, not_there))
      folders.insert(std::move(folder));
  }
  if (error) return errno_error(error.value(), "cannot list the processes in", "/proc");
  return std::vector<std::string>(folders.begin(), folders.end());
}

}  // namespace penstock
