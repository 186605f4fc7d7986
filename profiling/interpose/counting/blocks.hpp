// Operations that are under way for a control block of the program's (aiocb, iocb), from when they were asked
// for until the program learns that they have ended.
#pragma once

#include "profiling/interpose/counting/pending.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"

namespace penstock::interpose {

class Blocks {
 public:
  explicit constexpr Blocks(penstock_layer layer) noexcept : layer_(layer) {}
  // Any thread. Before the operation is handed over: the next moment another thread may see its end.
  void begin(ThreadLog& log, const void* block, penstock_call call, int fd, std::int64_t offset,
             std::int64_t length) noexcept;
  // What came of it: bytes, or a negated errno. It is counted if it is known, and then not known any more.
  void end(ThreadLog& log, const void* block, std::int64_t result) noexcept;
  // It has not started after all.
  void drop(const void* block) noexcept;
  // For each that is known, before the process ends: `ended` says whether it has, and gives what came of it.
  // The others are dropped operations.
  void settle(ThreadLog& log, bool (*ended)(const Pending& one, std::int64_t& result)) noexcept;
  // In a fork's child, whose operations they are not.
  void forget_all() noexcept;

 private:
  bool take(const void* block, Pending& taken) noexcept;
  void count_end(ThreadLog& log, const Pending& one, std::int64_t result) noexcept;

  const penstock_layer layer_;
  OwnedLock lock_;
  PendingTable pending_;
};

// The program's memory, which need not be there any more.
bool copy_memory(const void* from, void* to, std::size_t bytes) noexcept;

}  // namespace penstock::interpose
