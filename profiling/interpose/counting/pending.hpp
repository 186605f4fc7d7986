// A table of operations in flight. For each operation it stores what was known when the operation began
// (struct Pending). An operation is found by its key, which its completion has as well. If several operations
// have the same key, the oldest one is found first.
//
// Locks: the table has none. Its owner holds a lock, so that only one thread or handler uses it at a time.
// Memory: from the kernel.
#pragma once

#include <cstdint>

#include "profiling/interpose/counting/handles.hpp"
#include "profiling/interpose/counting/thread_log.hpp"

namespace penstock::interpose {

struct Pending {
  uint64_t key = 0;
  HandleFile file;
  int64_t offset = -1;
  int64_t length = 0;  // requested bytes
  uint64_t begin = 0;  // when the operation began, in ticks
  int fd = -1;         // the operation's descriptor; -1: none
  penstock_call call = PENSTOCK_CALL_OTHER;
  uint16_t flags = 0;       // only the owner of the table uses them
  bool is_counted = false;  // false: not counted, and in the table only so that its completion is recognised
  bool uses_position = false;  // the completion of this operation moves the descriptor's position
  // Indices of the operations before and after this one in a chain of linked operations; 0: none.
  uint32_t previous_in_chain = 0;
  uint32_t next_in_chain = 0;
  uint32_t next_in_bucket = 0;  // next operation with the same hash, or next free entry
};

// The table. Every function is called under the lock of the table's owner: AsyncOperations::lock_ or
// Ring::lock.
class PendingTable {
 public:
  // Takes memory from the kernel for `capacity` operations. Does nothing if the table has memory already. If
  // the kernel has no memory, add() will always return 0.
  void allocate(uint32_t capacity) noexcept;
  void free_memory() noexcept;
  // Returns the index of a new operation; 0 if there is no room.
  uint32_t add(uint64_t key) noexcept;
  // The index of the oldest operation with this key; 0: none.
  uint32_t find(uint64_t key) const noexcept;
  // The next operation with the same key; 0: none.
  uint32_t find_after(uint32_t index) const noexcept;
  void remove(uint32_t index) noexcept;
  Pending& at(uint32_t index) noexcept { return nodes_[index]; }
  uint32_t highest_index() const noexcept { return used_nodes_; }  // no used index is higher
  // Whether the entry is in use.
  bool is_used(uint32_t index) const noexcept { return nodes_[index].key != kFreeKey; }

 private:
  static constexpr uint64_t kFreeKey = 0x9e3779b97f4a7c15U;  // the key of a free entry
  uint32_t bucket_of(uint64_t key) const noexcept;

  Pending* nodes_ = nullptr;  // index 0 is not used
  uint32_t* buckets_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t bucket_bits_ = 0;
  uint32_t used_nodes_ = 0;
  uint32_t first_free_ = 0;
};

// Returns the file of a descriptor. Called when an operation begins, because the descriptor may be closed
// before the operation ends.
HandleFile file_of(ThreadLog& log, int fd) noexcept;

}  // namespace penstock::interpose
