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
constexpr uint64_t kLeastFreeBytes = 16U << 20U;

// File system types that are excluded besides the kernel's own: images of programs, mounts of desktop
// programs, and memory that cannot hold files.
constexpr std::string_view kExcludedTypes[] = {"hugetlbfs", "squashfs",        "iso9660",
                                               "erofs",     "fuse.gvfsd-fuse", "fuse.snapfuse"};

bool may_write(const std::filesystem::path& folder) {
  struct stat facts {};
  return ::stat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && ::access(folder.c_str(), W_OK) == 0;
}

uint64_t free_bytes_on(const std::filesystem::path& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return 0;
  return uint64_t(space.f_bavail) * space.f_frsize;
}

std::vector<std::filesystem::path> usual_folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  folders.push_back(std::filesystem::current_path(ignored));
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

FoundTier inspect_mount(const std::string& mount_point,
                        const std::vector<std::filesystem::path>& candidates) {
  FoundTier found{.name = {}, .folder = mount_point, .facts = inspect_path(mount_point)};
  for (const std::filesystem::path& folder : candidates) {
    if (folder.empty() || !may_write(folder)) continue;
    const TierFacts facts = inspect_path(folder);
    // Two mounts of one device are the same file system, at different paths (bind mounts).
    if (facts.device != found.facts.device || facts.fs_type != found.facts.fs_type) continue;
    if (found.facts.memory && facts.mount_point != mount_point) continue;
    found.folder = folder;
    found.facts = facts;
    found.writable = true;
    break;
  }
  if (!found.writable) found.writable = may_write(mount_point);
  found.free_bytes = free_bytes_on(found.folder);
  return found;
}

std::string default_name(const FoundTier& tier) {
  if (tier.facts.memory) return "memory";
  const std::string last_part = std::filesystem::path(tier.facts.mount_point).filename().string();
  return last_part.empty() ? (tier.facts.network ? "network" : "disk") : last_part;
}

}  // namespace

std::vector<std::string> data_mounts(std::istream& mountinfo,
                                     const std::function<bool(const std::string&)>& is_folder) {
  struct Mount {
    std::string root;
    std::string point;
  };
  // Orders the mount points of a device; the best has the smallest rank. A mount of the device's root is
  // better than one of a folder in it. /dev/shm is better than the same memory at a path inside a container.
  // A short path is better than a long one, because it is probably the system's own path.
  const auto rank = [](const std::string& root, const std::string& point) {
    return std::tuple(root != "/", point != kSharedMemory, point.size());
  };
  std::map<std::string, Mount> mount_of_device;
  std::vector<std::string> devices;
  bool root_listed = false;
  for (std::string line; std::getline(mountinfo, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, mount_point, word, fs_type;
    words >> id >> parent >> device >> root >> mount_point;
    while (words >> word && word != "-") {
    }
    if (!(words >> fs_type)) continue;
    mount_point = unescape_octal(mount_point);
    root_listed = root_listed || mount_point == "/";
    if (is_pseudo_file_system(fs_type)) continue;
    if (std::find(std::begin(kExcludedTypes), std::end(kExcludedTypes), fs_type) != std::end(kExcludedTypes))
      continue;
    const auto known_mount = mount_of_device.find(device);
    const bool is_better =
        known_mount == mount_of_device.end() ||
        rank(root, mount_point) < rank(known_mount->second.root, known_mount->second.point);
    // Call is_folder() last: it may block if a server does not answer.
    if (!is_better || !is_folder(mount_point)) continue;
    if (known_mount == mount_of_device.end()) devices.push_back(device);
    mount_of_device[device] = {root, mount_point};
  }
  std::vector<std::string> mounts;
  mounts.reserve(devices.size());
  for (const std::string& device : devices) mounts.push_back(mount_of_device[device].point);
  // After a chroot the list of mounts lacks the one that contains "/".
  if (!root_listed) mounts.emplace_back("/");
  return mounts;
}

std::vector<FoundTier> find_tiers() {
  std::ifstream mountinfo("/proc/self/mountinfo");
  const std::vector<std::filesystem::path> candidates = usual_folders();
  std::vector<FoundTier> found;
  const auto is_folder = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  };
  for (const std::string& mount_point : data_mounts(mountinfo, is_folder)) {
    FoundTier tier = inspect_mount(mount_point, candidates);
    if (tier.free_bytes >= kLeastFreeBytes) found.push_back(std::move(tier));
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
  // All file systems in memory share the same memory, so only the first of them is kept.
  const auto first_on_disk =
      std::find_if(found.begin(), found.end(), [](const FoundTier& t) { return !t.facts.memory; });
  if (first_on_disk - found.begin() > 1) found.erase(found.begin() + 1, first_on_disk);

  std::map<std::string, int> name_counts;
  for (FoundTier& tier : found) {
    tier.name = default_name(tier);
    if (const int n = ++name_counts[tier.name]; n > 1) tier.name += "-" + std::to_string(n);
  }
  return found;
}

}  // namespace penstock
