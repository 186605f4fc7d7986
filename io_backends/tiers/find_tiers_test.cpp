#include "io_backends/tiers/find_tiers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <sstream>

namespace penstock {
namespace {

TEST(DataMounts, LeavesOutPseudoFileSystemsAndListsADeviceOnce) {
  std::istringstream mountinfo(
      "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "23 22 0:5 / /proc rw - proc proc rw\n"
      "24 22 0:6 / /sys/fs/cgroup rw - cgroup2 none rw\n"
      "25 22 254:0 /home/data /data rw - ext4 /dev/vda rw\n"
      "26 22 0:7 / /dev/shm rw shared:1 - tmpfs tmpfs rw\n"
      "27 22 7:1 / /snap/core ro - squashfs /dev/loop1 ro\n"
      "28 22 0:9 / /mnt/pfs rw - lustre 10.0.0.1@tcp:/pfs rw\n");
  EXPECT_EQ(data_mounts(mountinfo), (std::vector<std::string>{"/", "/dev/shm", "/mnt/pfs"}));
}

TEST(DataMounts, PrefersTheRootOfADeviceToAFolderInIt) {
  std::istringstream mountinfo(
      "22 1 254:0 /containers/7 / rw - ext4 /dev/vda rw\n"
      "25 22 254:0 / /host rw - ext4 /dev/vda rw\n");
  EXPECT_EQ(data_mounts(mountinfo), std::vector<std::string>{"/host"});
}

TEST(DataMounts, PrefersTheSystemsSharedMemoryToThatOfAContainer) {
  std::istringstream mountinfo(
      "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "26 22 0:7 / /srv/jail/dev/shm rw - tmpfs tmpfs rw\n"
      "27 22 0:7 / /dev/shm rw - tmpfs tmpfs rw\n"
      "28 22 0:7 / /a rw - tmpfs tmpfs rw\n"
      "29 22 0:9 / /srv/jail/run rw - tmpfs tmpfs rw\n"
      "30 22 0:9 / /run rw - tmpfs tmpfs rw\n");
  EXPECT_EQ(data_mounts(mountinfo), (std::vector<std::string>{"/", "/dev/shm", "/run"}));
}

TEST(DataMounts, AFileIsNoPlaceForDataHoweverShortItsPath) {
  std::istringstream mountinfo(
      "22 1 0:30 / / rw - overlay overlay rw\n"
      "25 22 254:0 /containers/7/hosts /etc/hosts rw - ext4 /dev/vda rw\n"
      "26 22 254:0 /volumes/3 /srv/volume/data rw - ext4 /dev/vda rw\n"
      "27 22 254:0 /containers/7/name /etc/hostname rw - ext4 /dev/vda rw\n"
      "28 22 254:1 /secret /run/secret rw - ext4 /dev/vdb rw\n");
  const auto is_folder = [](const std::string& path) { return path == "/" || path == "/srv/volume/data"; };
  EXPECT_EQ(data_mounts(mountinfo, is_folder), (std::vector<std::string>{"/", "/srv/volume/data"}));
}

TEST(DataMounts, UndoesTheEscapesOfNames) {
  std::istringstream mountinfo(
      "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "25 22 254:1 / /mnt/my\\040disk rw - ext4 /dev/vdb rw\n"
      "26 22 254:2 / /mnt/a\\011b\\012c\\134d rw - ext4 /dev/vdc rw\n"
      "27 22 254:3 / /mnt/e\\04 rw - ext4 /dev/vdd rw\n");
  EXPECT_EQ(data_mounts(mountinfo),
            (std::vector<std::string>{"/", "/mnt/my disk", "/mnt/a\tb\nc\\d", "/mnt/e\\04"}));
}

TEST(DataMounts, ABrokenLineIsSkipped) {
  std::istringstream mountinfo("nonsense\n\n22 1 254:0 / / rw - ext4 /dev/vda rw\n");
  EXPECT_EQ(data_mounts(mountinfo), std::vector<std::string>{"/"});
}

TEST(DataMounts, AfterAChrootTheRootIsListedToo) {
  std::istringstream mountinfo("25 22 0:22 / /dev/shm rw - tmpfs tmpfs rw\n");
  EXPECT_EQ(data_mounts(mountinfo), (std::vector<std::string>{"/dev/shm", "/"}));
}

TEST(FindTiers, EveryFoundTierIsDescribedCorrectly) {
  std::set<std::string> names;
  for (const FoundTier& tier : find_tiers()) {
    EXPECT_TRUE(names.insert(tier.name).second) << tier.name;
    EXPECT_TRUE(std::filesystem::is_directory(tier.folder)) << tier.folder;
    EXPECT_EQ(::access(tier.folder.c_str(), W_OK) == 0, tier.writable) << tier.folder;
    EXPECT_EQ(inspect_path(tier.folder).mount_point, tier.facts.mount_point);
  }
  EXPECT_FALSE(names.empty()) << "the working directory lies somewhere";
}

}  // namespace
}  // namespace penstock
