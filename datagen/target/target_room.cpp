#include "datagen/target/target_room.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

// XFS_SUPER_MAGIC, which the kernel's headers have since Linux 5.10.
constexpr decltype(statfs::f_type) kXfsMagic = 0x58465342;

bool allocates_whole_blocks(const struct statfs& file_system) {
  return file_system.f_type == EXT4_SUPER_MAGIC || file_system.f_type == kXfsMagic ||
         file_system.f_type == TMPFS_MAGIC;
}

// Calls statfs() on the folder or, if the folder does not exist, on the nearest parent that exists.
bool stat_file_system(std::filesystem::path folder, struct statfs& file_system) {
  while (::statfs(folder.c_str(), &file_system) != 0) {
    if (errno == EINTR) continue;
    if ((errno != ENOENT && errno != ENOTDIR) || !folder.has_relative_path()) return false;
    folder = folder.parent_path();
  }
  return true;
}

}  // namespace

uint64_t FreeSpace::bytes_on_device(uint64_t object_bytes) const {
  const uint64_t pad = block_bytes - 1;
  return object_bytes > UINT64_MAX - pad ? UINT64_MAX : (object_bytes + pad) / block_bytes * block_bytes;
}

Result<FreeSpace> free_space_of(Backend& backend) {
  PENSTOCK_ASSIGN(const uint64_t free, backend.names().free_bytes());
  FreeSpace space{.bytes = free, .block_bytes = 1, .folder_bytes = 0, .inodes = {}};
  struct statfs file_system {};
  const auto root = backend.native_path("");
  if (!root || !stat_file_system(*root, file_system) || !allocates_whole_blocks(file_system)) return space;
  const auto system_block = uint64_t(file_system.f_frsize);
  // If the back end reports less free space than the file system has, its option `capacity` limits the space.
  // That limit counts bytes and not blocks, so block_bytes stays 1.
  const bool limited_by_blocks = free >= uint64_t{file_system.f_bavail} * system_block;
  if (limited_by_blocks) space.block_bytes = std::max<uint64_t>(system_block, 1);
  // On ext4 a small folder takes a block. XFS stores it in its inode, and tmpfs uses no blocks for it.
  if (limited_by_blocks && file_system.f_type == EXT4_SUPER_MAGIC) space.folder_bytes = space.block_bytes;
  if (file_system.f_files != 0) space.inodes = file_system.f_ffree;
  return space;
}

Error describe_full_tier(Backend& backend, Error error) {
  // With fewer free inodes than this, the lack of inodes counts as the cause of the error. A few may be free
  // by now, because the failed command has already removed some of its files.
  constexpr uint64_t kFewInodes = 64;
  constexpr uint64_t kEnoughBytes = uint64_t{1} << 20U;
  if (error.sys_errno != ENOSPC) return error;
  const Result<FreeSpace> space = free_space_of(backend);
  if (!space.ok() || space->bytes < kEnoughBytes || space->inodes.value_or(kFewInodes) >= kFewInodes)
    return error;
  error.what += fmt::format(" (the file system has {} free, but only {} free inodes)",
                            format_size(space->bytes), format_count(*space->inodes));
  return error;
}

}  // namespace penstock
