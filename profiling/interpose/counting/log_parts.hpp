// What the files share that know a ThreadLog's insides: thread_log.cpp (what is written to it),
// thread_lives.cpp (which thread has it, from its begin to its end) and counting.cpp (what an operation
// adds). All for its own thread, within an update, or under the lock of the logs.
#pragma once

#include "profiling/interpose/counting/thread_log.hpp"

namespace penstock::interpose {

// Of a block: bytes that no entry has yet (0 of none), and where they begin.
inline std::uint64_t room_left(const penstock_block* block) noexcept {
  return block == nullptr ? 0 : block->bytes - sizeof(penstock_block) - block->used;
}
inline char* free_part(penstock_block* block) noexcept {
  return reinterpret_cast<char*>(block) + sizeof(penstock_block) + block->used;
}
// The entries behind the last one are whole up to there: from now on they are seen.
inline void use(penstock_block* block, std::uint64_t bytes) noexcept {
  __atomic_store_n(&block->used, block->used + bytes, __ATOMIC_RELEASE);
}

// Where the name is in the session from now on, in bytes from `base`; 0 without room.
std::uint64_t add_name(ThreadLog& log, std::uint64_t file, const char* text, std::uint32_t length,
                       penstock_file_kind kind) noexcept;

}  // namespace penstock::interpose
