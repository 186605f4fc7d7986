// Operations that were started and have not ended: what was known of each when it began, by the key that its
// end bears. Of several with one key the oldest comes first.
#pragma once

#include <cstdint>

#include "profiling/interpose/counting/handles.hpp"
#include "profiling/interpose/counting/thread_log.hpp"

namespace penstock::interpose {

struct Pending {
  std::uint64_t key = 0;
  HandleFile file;
  std::int64_t offset = -1;
  std::int64_t length = 0;  // that was asked for
  std::uint64_t begin = 0;  // ticks
  int fd = -1;              // the operation's; -1 for none
  penstock_call call = PENSTOCK_CALL_OTHER;
  std::uint16_t flags = 0;   // the owner's
  bool counts = false;       // false: it is known, so that its end is, and counts for nothing
  bool moves = false;        // it goes on from the descriptor's position
  std::uint32_t before = 0;  // neighbours in a chain of operations; 0: none
  std::uint32_t behind = 0;
  std::uint32_t next = 0;  // of those with one hash, or free
};

// Its owner sees to it that one thread is at it at a time.
class PendingTable {
 public:
  // Takes memory at the first call; a table that could get none has room for nothing.
  void make(std::uint32_t room) noexcept;
  void give_back() noexcept;
  // 0 where there is no room.
  std::uint32_t add(std::uint64_t key) noexcept;
  std::uint32_t find(std::uint64_t key) const noexcept;
  // The next one with the same key.
  std::uint32_t find_after(std::uint32_t index) const noexcept;
  void remove(std::uint32_t index) noexcept;
  Pending& at(std::uint32_t index) noexcept { return nodes_[index]; }
  std::uint32_t reached() const noexcept { return used_; }  // no index is above it
  bool holds(std::uint32_t index) const noexcept { return nodes_[index].key != kFree; }

 private:
  static constexpr std::uint64_t kFree = 0x9e3779b97f4a7c15U;  // in place of a key
  std::uint32_t bucket(std::uint64_t key) const noexcept;

  Pending* nodes_ = nullptr;  // from 1
  std::uint32_t* buckets_ = nullptr;
  std::uint32_t room_ = 0;
  std::uint32_t bits_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t free_ = 0;
};

// The file of a descriptor, which need not be one any more when the operation ends.
HandleFile file_of(ThreadLog& log, int fd) noexcept;

}  // namespace penstock::interpose
