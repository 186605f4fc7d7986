// The places on this machine where data could lie, found by looking at what is mounted.
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
  std::string name;              // "memory", "disk", "home" ...: unique in the list
  std::filesystem::path folder;  // on it, and writable where `writable`
  TierFacts facts;
  std::uint64_t free_bytes = 0;  // for this user
  bool writable = false;
};

// One a file system (bind mounts of one device count once), and one for all that is in memory: disks,
// network file systems, memory; not the kernel's own (proc, sysfs, cgroup ...), not images (squashfs,
// iso9660), and not what has less than 16 MiB to spare. The folder is the first writable one that lies there
// of: the working directory, $TMPDIR, /dev/shm, /var/tmp, /tmp, $XDG_RUNTIME_DIR, $HOME, the mount point;
// else the mount point, and `writable` is false. Memory first (/dev/shm where it is one), then disks, then
// networks, each by free space.
std::vector<FoundTier> find_tiers();

// The mount points in the text of a mountinfo that could hold data, one a device, of those that `is_folder`
// (files are mounted too, in containers): where the device's own root is mounted rather than a folder of it,
// then /dev/shm, then the shortest path, then the first. "/" is among them even where the text lacks it
// (chroot).
std::vector<std::string> data_mounts(
    std::istream& mountinfo, const std::function<bool(const std::string& mount_point)>& is_folder =
                                 [](const std::string&) { return true; });

}  // namespace penstock
