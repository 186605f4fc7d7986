// The file of the session that runs: how it grows, and its blocks. Shared by the parts of Session.
//
// All that is declared here is for the holder of file_lock, or for the only thread that records (the
// library's constructor, a fork's child). Under file_lock no other lock is taken, no malloc is called, and
// nothing but the file's own device is waited for. Hold::held() is false in a handler that interrupted its
// own thread under the lock.
#pragma once

#include <sys/types.h>

#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

struct File {
  char path[1152] = {};
  std::uint64_t reserved = 0;
  std::uint64_t bytes = 0;  // that the file has and that are mapped
  std::uint64_t limit = 0;  // most bytes that the file may have
  std::uint64_t ticks_per_s = 0;
  dev_t device = 0;
  ino_t number = 0;
  std::uint64_t own_read = 0;       // bytes that the kernel adds to rchar for what is read here
  std::uint64_t own_written = 0;    // and to wchar
  std::uint64_t read_to_begin = 0;  // of the former, since this file was started to be
  bool in_memory = false;           // it is on tmpfs
  penstock_block* events = nullptr;
  std::uint64_t segment_bytes = 0;  // of all blocks of segments
  // Offsets of the full blocks of segments that became full first and last; 0: none. No thread writes to
  // these any more. penstock_block.next links them.
  std::uint64_t oldest_full = 0;
  std::uint64_t newest_full = 0;
};
extern constinit File file;
extern constinit OwnedLock file_lock;
extern constinit int failure;  // errno of the last time that a file could not be started, or grow

constexpr std::uint64_t kFirstBytes = 8 * std::uint64_t{PENSTOCK_BLOCK_GRANULE};

// A number of bytes from a variable of the environment; `otherwise` if it has none.
std::uint64_t bytes_of_environment(const char* name, std::uint64_t otherwise) noexcept;
// PENSTOCK_PROFILE_TRACE_LIMIT where that is a number, or what is usual; 0: no limit.
std::uint64_t trace_limit_of_environment() noexcept;
// Reserves addresses for the file (session.base, File::reserved).
bool reserve() noexcept;
// Grows the file to `bytes`, with its place on the device, and maps what is new.
bool grow_to(std::uint64_t bytes, int flags) noexcept;
// Cuts the unused end of the file off. A later block grows it again.
void give_back_spare_room() noexcept;

inline std::uint64_t whole_granules(std::uint64_t bytes) noexcept {
  return (bytes + PENSTOCK_BLOCK_GRANULE - 1) / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
}

// Stores a newer pair of readings of both clocks in the header.
void set_moment() noexcept;

// Whether this process made the file: a child that was made without a wrapper has its parent's memory.
bool is_own_session() noexcept;
// A new block, its header written; null if there is no room.
penstock_block* add_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept;

}  // namespace penstock::interpose
