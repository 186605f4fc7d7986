#include "io_backends/tiers/find_tiers.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "io_backends/files/mounts.hpp"

namespace penstock {
namespace {

constexpr std::string_view kSharedMemory = "/dev/shm";
constexpr std::uint64_t kWorthNaming = 16U << 20U;

// Excluded in addition to pseudo file systems: images of programs, desktop mounts, and memory that cannot
// hold files.
constexpr std::string_view kNoTiers[] = {"hugetlbfs", "squashfs",        "iso9660",
                                         "erofs",     "fuse.gvfsd-fuse", "fuse.snapfuse"};

bool may_write(const std::filesystem::path& folder) {
  struct stat facts {};
  return ::stat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && ::access(folder.c_str(), W_OK) == 0;
}

std::uint64_t free_on(const std::filesystem::path& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return 0;
  return static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
}

std::vector<std::filesystem::path> usual_folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code none;
  folders.push_back(std::filesystem::current_path(none));
  const auto add_variable = [&](const char* name) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value == '/') folders.emplace_back(value);
  };
  add_variable("TMPDIR");
  for (const char* folder : {"/dev/shm", "/var/tmp", "/tmp"}) folders.emplace_back(folder);
  add_variable("XDG_RUNTIME_DIR");
  add_variable("HOME");
  return folders;
}

FoundTier inspect_mount(const std::string& mount_point, const std::vector<std::filesystem::path>& usual) {
  FoundTier found{.name = {}, .folder = mount_point, .facts = inspect_path(mount_point)};
  for (const std::filesystem::path& folder : usual) {
    if (folder.empty() || !may_write(folder)) continue;
    const TierFacts facts = inspect_path(folder);
    // Bind mounts of one device at other paths are the same file system.
    if (facts.device != found.facts.device || facts.fs_type != found.facts.fs_type) continue;
    if (found.facts.memory && facts.mount_point != mount_point) continue;
    found.folder = folder;
    found.facts = facts;
    found.writable = true;
    break;
  }
  if (!found.writable) found.writable = may_write(mount_point);
  found.free_bytes = free_on(found.folder);
  return found;
}

std::string name_for(const FoundTier& tier) {
  if (tier.facts.memory) return "memory";
  const std::string last = std::filesystem::path(tier.facts.mount_point).filename().string();
  return last.empty() ? (tier.facts.network ? "network" : "disk") : last;
}

}  // namespace

std::vector<std::string> data_mounts(std::istream& mountinfo,
                                     const std::function<bool(const std::string&)>& is_folder) {
  struct Mount {
    std::string root;
    std::string point;
  };
  // The best mount point of a device has the smallest rank. The root of the device comes before a folder of
  // it. /dev/shm comes before the same memory inside a container. A short path, which is probably the
  // system's, comes before a long one.
  const auto rank = [](const std::string& root, const std::string& point) {
    return std::tuple(root != "/", point != kSharedMemory, point.size());
  };
  std::map<std::string, Mount> by_device;
  std::vector<std::string> devices;
  bool root_listed = false;
  for (std::string line; std::getline(mountinfo, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, mount_point, word, fs_type;
    words >> id >> parent >> device >> root >> mount_point;
    while (words >> word && word != "-") {
    }
    if (!(words >> fs_type)) continue;
    root_listed = root_listed || mount_point == "/";
    if (is_pseudo_file_system(fs_type)) continue;
    if (std::find(std::begin(kNoTiers), std::end(kNoTiers), fs_type) != std::end(kNoTiers)) continue;
    const auto at = by_device.find(device);
    const bool best =
        at == by_device.end() || rank(root, mount_point) < rank(at->second.root, at->second.point);
    if (!best || !is_folder(mount_point)) continue;  // last, because it may block if a server does not answer
    if (at == by_device.end()) devices.push_back(device);
    by_device[device] = {root, mount_point};
  }
  std::vector<std::string> mounts;
  mounts.reserve(devices.size());
  for (const std::string& device : devices) mounts.push_back(by_device[device].point);
  // After a chroot the list lacks the mount that contains "/".
  if (!root_listed) mounts.emplace_back("/");
  return mounts;
}

std::vector<FoundTier> find_tiers() {
  std::ifstream mountinfo("/proc/self/mountinfo");
  const std::vector<std::filesystem::path> usual = usual_folders();
  std::vector<FoundTier> found;
  const auto is_folder = [](const std::string& path) {
    std::error_code none;
    return std::filesystem::is_directory(path, none);
  };
  for (const std::string& mount_point : data_mounts(mountinfo, is_folder)) {
    FoundTier tier = inspect_mount(mount_point, usual);
    if (tier.free_bytes >= kWorthNaming) found.push_back(std::move(tier));
  }
  const auto rank = [](const FoundTier& tier) {
    return std::tuple(tier.facts.memory    ? 0
                      : tier.facts.network ? 2
                                           : 1,
                      tier.writable ? 0 : 1, tier.facts.mount_point == kSharedMemory ? 0 : 1,
                      ~tier.free_bytes);
  };
  std::sort(found.begin(), found.end(),
            [&](const FoundTier& a, const FoundTier& b) { return rank(a) < rank(b); });
  // All file systems in memory share the same memory, so only the first stays.
  const auto other =
      std::find_if(found.begin(), found.end(), [](const FoundTier& t) { return !t.facts.memory; });
  if (other - found.begin() > 1) found.erase(found.begin() + 1, other);

  std::map<std::string, int> taken;
  for (FoundTier& tier : found) {
    tier.name = name_for(tier);
    if (const int n = ++taken[tier.name]; n > 1) tier.name += "-" + std::to_string(n);
  }
  return found;
}

}  // namespace penstock
