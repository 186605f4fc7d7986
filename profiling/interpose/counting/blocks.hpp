// Asynchronous operations in flight, each identified by its control block in the program's memory (aiocb,
// iocb). An operation is in this table from its submission until the program learns that it has ended.
//
// Threads: any thread.
// Locks: each function takes the table's lock, except forget_all(), which resets it.
// Signals: any handler may call these functions. If the handler's own thread holds the lock, begin() counts
// the operation as dropped. The other functions that take the lock do nothing.
#pragma once

#include "profiling/interpose/counting/pending.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"

namespace penstock::interpose {

class AsyncOperations {
 public:
  explicit constexpr AsyncOperations(penstock_layer layer) noexcept : layer_(layer) {}
  // Adds an operation to the table. Called before the operation is submitted, because right after that
  // another thread may call end() for it.
  void begin(ThreadLog& log, const void* block, penstock_call call, int fd, int64_t offset,
             int64_t length) noexcept;
  // Counts an operation that has ended, and removes it from the table. Does nothing if it is not in the
  // table. `result` is the number of bytes, or a negated errno.
  void end(ThreadLog& log, const void* block, int64_t result) noexcept;
  // Removes an operation whose submission has failed.
  void drop(const void* block) noexcept;
  // Counts the operations that have ended, and empties the table. `has_ended` returns whether an operation
  // has ended; if so, it also stores the result. Operations that have not ended count as dropped. Called
  // before the process ends or executes another program, and before recording ends.
  void count_ended(ThreadLog& log, bool (*has_ended)(const Pending& pending, int64_t& result)) noexcept;
  // Empties the table and frees the lock. Called in a fork's child, where the operations in the table are the
  // parent's, and when recording begins.
  void forget_all() noexcept;

 private:
  bool find_and_remove(const void* block, Pending& removed) noexcept;
  void count_result(ThreadLog& log, const Pending& pending, int64_t result) noexcept;

  const penstock_layer layer_;
  OwnedLock lock_;
  PendingTable pending_;
};

// Copies memory of the program; false if that memory is unmapped. A system call makes the copy, because it
// fails instead of crashing if the memory is unmapped.
bool copy_memory(const void* from, void* to, size_t bytes) noexcept;

}  // namespace penstock::interpose
