// The file of the session that runs, as the parts of Session share it: how it grows, and its blocks. What is
// declared here is for who holds file_lock.
#pragma once

#include <sys/types.h>

#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

struct File {
  char path[1152] = {};
  std::uint64_t reserved = 0;
  std::uint64_t bytes = 0;  // that the file has and that are mapped
  std::uint64_t limit = 0;  // the file does not grow beyond
  std::uint64_t ticks_per_s = 0;
  dev_t device = 0;
  ino_t number = 0;
  std::uint64_t own_read = 0;       // bytes that the kernel adds to rchar for what is read here
  std::uint64_t own_written = 0;    // and to wchar
  std::uint64_t read_to_begin = 0;  // of the former, since this file was started to be
  bool in_memory = false;           // it lies on tmpfs
  penstock_block* events = nullptr;
  std::uint64_t segment_bytes = 0;  // of all blocks of segments
  std::uint64_t oldest_full = 0;    // where the first and the last of these begin that nobody writes to any
  std::uint64_t newest_full = 0;    // more, by when they became full; 0: none. penstock_block.next links them
};
extern constinit File file;
extern constinit OwnedLock file_lock;
extern constinit int failure;  // errno of the last time that a file could not be started, or grow

constexpr std::uint64_t kFirstBytes = 8 * std::uint64_t{PENSTOCK_BLOCK_GRANULE};

// A number of bytes that a variable of the environment says; `otherwise` where it says none.
std::uint64_t bytes_of_environment(const char* name, std::uint64_t otherwise) noexcept;
// Addresses for the file (session.base, File::reserved).
bool reserve() noexcept;
// Makes the file so long, with its place on the device, and maps what is new.
bool grow_to(std::uint64_t bytes, int flags) noexcept;
// Who comes later grows the file again.
void give_back_spare_room() noexcept;

inline std::uint64_t whole_granules(std::uint64_t bytes) noexcept {
  return (bytes + PENSTOCK_BLOCK_GRANULE - 1) / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
}

// Who was cloned past all wrappers has its parent's memory, but not its file.
bool is_own_session() noexcept;
// A new block, its header written; null where there is no room.
penstock_block* add_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept;

}  // namespace penstock::interpose
