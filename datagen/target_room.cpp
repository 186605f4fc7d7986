#include "datagen/target_room.hpp"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace penstock {
namespace {

constexpr decltype(statfs::f_type) kXfs = 0x58465342;  // the kernel's header has it since 5.10

bool gives_whole_blocks(const struct statfs& system) {
  return system.f_type == EXT4_SUPER_MAGIC || system.f_type == kXfs || system.f_type == TMPFS_MAGIC;
}

// Of the folder, or of the first one above that is there.
bool ask(std::filesystem::path folder, struct statfs& system) {
  while (::statfs(folder.c_str(), &system) != 0) {
    if (errno == EINTR) continue;
    if ((errno != ENOENT && errno != ENOTDIR) || !folder.has_relative_path()) return false;
    folder = folder.parent_path();
  }
  return true;
}

}  // namespace

std::uint64_t Room::taken_by(std::uint64_t object_bytes) const {
  const std::uint64_t more = block_bytes - 1;
  return object_bytes > UINT64_MAX - more ? UINT64_MAX : (object_bytes + more) / block_bytes * block_bytes;
}

Result<Room> room_of(Backend& backend) {
  PENSTOCK_ASSIGN(const std::uint64_t free, backend.names().free_bytes());
  Room room{.bytes = free, .objects = {}};
  struct statfs system {};
  const auto root = backend.native_path("");
  if (!root || !ask(*root, system) || !gives_whole_blocks(system)) return room;
  const auto block = static_cast<std::uint64_t>(system.f_frsize);
  // Where less is free than there, it is a capacity, which counts bytes.
  if (free >= std::uint64_t{system.f_bavail} * block) room.block_bytes = std::max<std::uint64_t>(block, 1);
  if (system.f_files != 0) room.objects = system.f_ffree;
  return room;
}

}  // namespace penstock
