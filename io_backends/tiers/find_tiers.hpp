// Finds the places on this machine that can hold data, by inspecting the mounted file systems.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <string>
#include <vector>

#include "io_backends/tiers/tier.hpp"

namespace penstock {

struct FoundTier {
  std::string name;  // "memory", "disk", "home" ...; unique in the list
  // a folder on this file system; `writable`: this user may write there
  std::filesystem::path folder;
  TierFacts facts;
  uint64_t free_bytes = 0;  // free for this user
  bool writable = false;
};

// Returns one tier for each file system, and one for all file systems in memory. Bind mounts of one device
// count once. It includes disks, network file systems and memory. It excludes the kernel's own file systems
// (proc, sysfs, cgroup ...), images (squashfs, iso9660), and those with less than 16 MiB free.
// The folder is the first writable one of these on the file system: the working directory, $TMPDIR, /dev/shm,
// /var/tmp, /tmp, $XDG_RUNTIME_DIR, $HOME, the mount point. If none is writable, it is the mount point, and
// `writable` is false.
// Order: memory (/dev/shm first), disks, networks, each by free space.
std::vector<FoundTier> find_tiers();

// Returns the mount points in the text of a mountinfo that can hold data, one a device. `is_folder` excludes
// mounted files, which containers have. A device may have several mount points. The best one shows the
// device's own root and not a folder in it; then comes /dev/shm, then the shortest path, then the first. "/"
// is always in the result, although the text lacks it after a chroot.
std::vector<std::string> data_mounts(
    std::istream& mountinfo, const std::function<bool(const std::string& mount_point)>& is_folder =
                                 [](const std::string&) { return true; });

}  // namespace penstock
