// What a target can still take.
#pragma once

#include <cstdint>
#include <optional>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct Room {
  std::uint64_t bytes = 0;
  std::uint64_t block_bytes = 1;         // what holds an object is a multiple of it
  std::uint64_t folder_bytes = 0;        // that a small folder takes
  std::optional<std::uint64_t> objects;  // that many more, folders too; nothing: it does not count them

  std::uint64_t taken_by(std::uint64_t object_bytes) const;  // in whole blocks
};

// For this user. Blocks and objects are those of ext4, XFS and tmpfs, which give every file blocks and an
// inode of its own; other storage may pack small ones, and is taken to. An error where the back end does not
// say what is free.
Result<Room> room_of(Backend& backend);

// The same error; where the place ran out of inodes rather than of bytes, that is said, too.
Error describe_full_tier(Backend& backend, Error error);

}  // namespace penstock
