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
  // a folder on the tier's file system; `writable` tells whether this user may write in it
  std::filesystem::path folder;
  TierFacts facts;
  uint64_t free_bytes = 0;  // bytes that this user may still write
  bool writable = false;
};

// Finds one tier for each file system that can hold data, and only one for all file systems in memory. It
// includes disks, network file systems and memory. It excludes the kernel's own file systems (proc, sysfs,
// cgroup ...), images (squashfs, iso9660), and those with less than 16 MiB free. A device with several mounts
// (bind mounts) counts once.
//
// The folder of a tier is the first of these that is on the file system and writable: the working directory,
// $TMPDIR, /dev/shm, /var/tmp, /tmp, $XDG_RUNTIME_DIR, $HOME, the mount point. If none is writable, it is the
// mount point, and `writable` is false.
//
// The result is sorted: memory, then disks, then networks. Within each of these, writable tiers come first,
// then /dev/shm, then those with more free space.
std::vector<FoundTier> find_tiers();

// The mount points that can hold data, one for each device, from `mountinfo` (the text of
// /proc/self/mountinfo). `is_folder` excludes mounted files, which containers have. If the text lacks "/", as
// after a chroot, "/" is added to the result.
// Of several mount points of a device it takes one that shows the device's own root and not a folder in it.
// If several or none do, it takes /dev/shm, then the shortest path, then the first.
std::vector<std::string> data_mounts(
    std::istream& mountinfo, const std::function<bool(const std::string& mount_point)>& is_folder =
                                 [](const std::string&) { return true; });

}  // namespace penstock
