// Reports the free space and the free inodes of a target.
#pragma once

#include <cstdint>
#include <optional>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct FreeSpace {
  uint64_t bytes = 0;
  uint64_t block_bytes = 1;   // the space that an object takes is a multiple of this
  uint64_t folder_bytes = 0;  // bytes that a small folder takes
  // Free inodes; each object and each folder takes one. Absent: the target has no such limit.
  std::optional<uint64_t> inodes;

  // The space that an object of this size takes, in whole blocks.
  uint64_t bytes_on_device(uint64_t object_bytes) const;
};

// The space that this user may use. On ext4, XFS and tmpfs, each object counts as whole blocks and one inode.
// On other storage, and if the option `capacity` of the back end is the limit, each object counts as its own
// bytes. Fails if the back end does not report free space.
Result<FreeSpace> free_space_of(Backend& backend);

// Returns `error`. If it is ENOSPC and the tier has free bytes but almost no free inodes, the message also
// says that the inodes are used up.
Error describe_full_tier(Backend& backend, Error error);

}  // namespace penstock
