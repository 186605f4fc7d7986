// Reports the free space and the free inodes of a target.
#pragma once

#include <cstdint>
#include <optional>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct FreeSpace {
  uint64_t bytes = 0;
  uint64_t block_bytes = 1;   // an object takes a multiple of this
  uint64_t folder_bytes = 0;  // bytes that a small folder takes
  // Free inodes, for objects and folders; nothing: the target has no such limit.
  std::optional<uint64_t> inodes;

  uint64_t bytes_on_device(uint64_t object_bytes) const;  // in whole blocks
};

// The space that this user may use. Each object takes whole blocks and one inode, as on ext4, XFS and tmpfs.
// Storage that packs small objects takes less, but is counted the same way. An error if the back end does not
// report free space.
Result<FreeSpace> free_space_of(Backend& backend);

// Returns `error`. If it means a full device, and the tier has free bytes but no free inodes, adds that to
// the message.
Error describe_full_tier(Backend& backend, Error error);

}  // namespace penstock
