// Finds the mount, file system and device of a path.
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "io_backends/core/units.hpp"
#include "io_backends/files/mounts.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

constexpr std::string_view kNetworkTypes[] = {
    "nfs",       "nfs4", "cifs",  "smb3",     "lustre",       "ceph",    "beegfs", "gpfs",
    "9p",        "afs",  "pvfs2", "orangefs", "ocfs2",        "gfs2",    "mmfs",   "wekafs",
    "glusterfs", "daos", "panfs", "smb2",     "beegfs_nodev", "virtiofs"};
constexpr std::string_view kNetworkFuseTypes[] = {
    "gluster", "mfs",     "sshfs", "ceph", "s3fs",          "juicefs",  "gcsfuse", "goofys",
    "rclone",  "moosefs", "dfuse", "nfs",  "mountpoint-s3", "blobfuse", "alluxio", "seaweedfs"};
// Types of file systems on devices of this machine. Of the FUSE types, the list has only those that open a
// device themselves.
constexpr std::string_view kDeviceTypes[] = {
    "ext2",      "ext3",         "ext4",        "ext2/ext3/ext4", "xfs",    "btrfs",   "zfs",
    "f2fs",      "bcachefs",     "jfs",         "reiserfs",       "nilfs2", "vfat",    "msdos",
    "exfat",     "ntfs",         "ntfs3",       "hfsplus",        "udf",    "iso9660", "fuseblk",
    "fuse.ext2", "fuse.fuse2fs", "fuse.ntfs-3g"};
constexpr std::string_view kMemoryTypes[] = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"};
constexpr std::string_view kPseudoTypes[] = {
    "proc",    "sysfs",      "cgroup",      "cgroup2",   "devpts",   "devtmpfs", "mqueue",
    "debugfs", "tracefs",    "pstore",      "bpf",       "configfs", "fusectl",  "securityfs",
    "autofs",  "nsfs",       "binfmt_misc", "selinuxfs", "efivarfs", "pipefs",   "sockfs",
    "resctrl", "rpc_pipefs", "fuse.portal", "fuse.lxcfs"};

bool is_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Whether the file system is on a network. Some FUSE file systems have the plain type "fuse", and only their
// mount source tells the kind: "mountpoint-s3".
bool is_network(const TierFacts& facts) {
  if (std::find(std::begin(kNetworkTypes), std::end(kNetworkTypes), facts.fs_type) != std::end(kNetworkTypes))
    return true;
  const bool is_plain_fuse = facts.fs_type == "fuse";
  if (!is_plain_fuse && !facts.fs_type.starts_with("fuse.")) return false;
  return std::any_of(std::begin(kNetworkFuseTypes), std::end(kNetworkFuseTypes), [&](std::string_view part) {
    return is_plain_fuse ? facts.device.starts_with(part) : facts.fs_type.find(part) != std::string::npos;
  });
}

// The name of a block device, such as "/dev/vda" for "252:0"; "" if the number is not that of a block device.
std::string block_device(std::string_view major_minor) {
  std::ifstream uevent("/sys/dev/block/" + std::string(major_minor) + "/uevent");
  for (std::string line; std::getline(uevent, line);)
    if (line.starts_with("DEVNAME=")) return "/dev/" + line.substr(8);
  return "";
}

// The name of the mounted device. The mount source "/dev/root" is not the name of a device file, so the real
// device is returned instead.
std::string device_name(const std::string& source, std::string_view major_minor) {
  if (source != "/dev/root" && source != "rootfs") return source;
  const std::string device = block_device(major_minor);
  return device.empty() ? source : device;
}

// The type for each magic number of statfs(2). ext2, ext3 and ext4 have the same number.
constexpr std::pair<uint32_t, std::string_view> kTypeOfMagic[] = {
    {0x0000ef53, "ext2/ext3/ext4"},
    {0x58465342, "xfs"},
    {0x9123683e, "btrfs"},
    {0x2fc12fc1, "zfs"},
    {0xf2f52010, "f2fs"},
    {0x01021994, "tmpfs"},
    {0x858458f6, "ramfs"},
    {0x794c7630, "overlay"},
    {0x00006969, "nfs"},
    {0x0bd00bd0, "lustre"},
    {0x00c36400, "ceph"},
    {0x01021997, "9p"},
    {0x65735546, "fuse"},
};

// Finds facts by statfs(), for a path whose mount is not in the list. After a chroot the list may lack the
// mount that contains "/".
TierFacts facts_of_unlisted_mount(const std::filesystem::path& path) {
  TierFacts facts;
  facts.mount_point = "/";
  facts.fs_type = "unknown";
  struct statfs system {};
  if (::statfs(path.c_str(), &system) == 0)
    for (const auto& [magic, name] : kTypeOfMagic)
      if (magic == uint32_t(system.f_type)) facts.fs_type = name;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0)
    facts.device =
        block_device(std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev)));
  return facts;
}

// Separates kind and source. Some FUSE file systems have the plain type "fuse" and write their kind before
// the source: "mfs#10.0.0.1:9421".
void split_fuse_source(TierFacts& facts) {
  const size_t end = facts.device.find('#');
  if (facts.fs_type != "fuse" || end == std::string::npos || end == 0) return;
  const std::string_view kind = std::string_view(facts.device).substr(0, end);
  if (!std::all_of(kind.begin(), kind.end(),
                   [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }))
    return;
  facts.fs_type.append(".").append(kind);
  facts.device.erase(0, end + 1);
}

TierFacts with_kind(TierFacts facts) {
  split_fuse_source(facts);
  facts.network = is_network(facts);
  facts.memory =
      std::find(std::begin(kMemoryTypes), std::end(kMemoryTypes), facts.fs_type) != std::end(kMemoryTypes);
  return facts;
}

std::filesystem::path nearest_existing(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path nearest = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(nearest, error) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  const std::filesystem::path canonical_path = std::filesystem::canonical(nearest, error);
  return error ? nearest : canonical_path;
}

template <class T>
T read_field(std::span<const std::byte> bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string lustre_striping(const std::filesystem::path& path) {
  std::array<std::byte, 4096> layout{};
  const ssize_t length = ::getxattr(path.c_str(), "lustre.lov", layout.data(), layout.size());
  if (length <= 0) return "";
  return describe_lustre_layout(std::span<const std::byte>(layout).first(size_t(length)));
}

}  // namespace

// Formats a Lustre layout. It is a struct lov_user_md (lustre_user.h): magic, pattern, object id (16 bytes),
// stripe size, stripe count, offset.
std::string describe_lustre_layout(std::span<const std::byte> layout) {
  constexpr uint32_t kMagicV1 = 0x0bd10bd0;
  constexpr uint32_t kMagicV3 = 0x0bd30bd0;
  constexpr uint32_t kMagicComposite = 0x0bd60bd0;
  if (layout.size() < 4) return "";
  const auto magic = read_field<uint32_t>(layout, 0);
  if (magic == kMagicComposite) return "composite";
  if ((magic != kMagicV1 && magic != kMagicV3) || layout.size() < 30) return "";
  const auto stripe_count = read_field<uint16_t>(layout, 28);
  const std::string stripes = stripe_count == 0xffff ? "all" : std::to_string(stripe_count);
  return stripes + " x " + format_size(read_field<uint32_t>(layout, 24));
}

// Finds the mount that contains `path`, and returns its facts. A line of mountinfo has these fields: id
// parent major:minor root mount_point options [fields...] - fs_type source super_options.
TierFacts facts_from_mountinfo(std::istream& mountinfo, std::string_view path) {
  TierFacts facts;
  for (std::string line; std::getline(mountinfo, line);) {
    std::istringstream words(line);
    std::string id, parent, major_minor, root, mount_point, options, word;
    words >> id >> parent >> major_minor >> root >> mount_point >> options;
    while (words >> word && word != "-") {
    }
    std::string fs_type, source, super_options;
    if (!(words >> fs_type >> source)) continue;
    words >> super_options;
    mount_point = unescape_octal(mount_point);
    // Keep the longest mount point that contains the path. If two mounts have the same mount point, the later
    // one hides the earlier one.
    if (!is_below(path, mount_point) || mount_point.size() < facts.mount_point.size()) continue;
    facts.mount_point = mount_point;
    facts.fs_type = fs_type;
    facts.device = device_name(unescape_octal(source), major_minor);
    facts.mount_options = options;
    if (!super_options.empty()) facts.mount_options.append(";").append(super_options);
  }
  return with_kind(std::move(facts));
}

std::string unescape_octal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t k) {
      return i + k < text.size() && text[i + k] >= '0' && text[i + k] <= '7';
    };
    if (text[i] == '\\' && digit(1) && digit(2) && digit(3)) {
      out += char((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> mount_points(std::istream& mountinfo) {
  std::vector<std::string> points;
  for (std::string line; std::getline(mountinfo, line);) {
    std::istringstream words(line);
    std::string id, parent, major_minor, root, mount_point;
    if (words >> id >> parent >> major_minor >> root >> mount_point)
      points.push_back(unescape_octal(mount_point));
  }
  return points;
}

bool is_pseudo_file_system(std::string_view fs_type) {
  return std::find(std::begin(kPseudoTypes), std::end(kPseudoTypes), fs_type) != std::end(kPseudoTypes);
}

bool is_on_this_machine(const TierFacts& facts) {
  if (facts.network) return false;
  return facts.memory ||
         std::find(std::begin(kDeviceTypes), std::end(kDeviceTypes), facts.fs_type) != std::end(kDeviceTypes);
}

TierFacts inspect_path(const std::filesystem::path& path) {
  const std::filesystem::path existing_folder = nearest_existing(path);
  std::ifstream mountinfo("/proc/self/mountinfo");
  TierFacts facts = facts_from_mountinfo(mountinfo, existing_folder.string());
  if (facts.mount_point.empty()) facts = with_kind(facts_of_unlisted_mount(existing_folder));
  if (facts.fs_type == "lustre") facts.striping = lustre_striping(existing_folder);
  return facts;
}

}  // namespace penstock
