// What a target can still take.
#pragma once

#include <cstdint>
#include <optional>

#include "io_backends/base/backend.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

struct Room {
  std::uint64_t bytes = 0;
  std::uint64_t block_bytes = 1;         // what holds an object is a multiple of it
  std::optional<std::uint64_t> objects;  // so many more; nothing: nobody counts them

  std::uint64_t taken_by(std::uint64_t object_bytes) const;  // in whole blocks
};

// For this user. Blocks and objects are those of ext4, XFS and tmpfs, which give every file blocks and an
// inode of its own; other storage may pack small ones, and is taken to. An error where the back end does not
// say what is free.
Result<Room> room_of(Backend& backend);

}  // namespace penstock
