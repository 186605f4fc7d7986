// What requests of a ring mean, from when they are handed over until they are completed.
#pragma once

#include "profiling/interpose/counting/pending.hpp"
#include "profiling/interpose/counting/ring_layout.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"

namespace penstock::interpose {

// One thread at a time (owner).
struct Ring {
  Ring* next = nullptr;
  std::atomic<int> fd{-1};  // -1: none
  OwnedLock lock;
  RingParameters parameters{};
  bool by_library = false;  // its requests are looked at where liburing keeps them
  const char* sq_memory = nullptr;
  const char* cq_memory = nullptr;
  const std::uint32_t* sq_tail = nullptr;
  const std::uint32_t* sq_array = nullptr;
  const RingEntry* entries = nullptr;
  const std::uint32_t* cq_tail = nullptr;
  const char* completions = nullptr;
  std::uint32_t sq_seen = 0;
  std::uint32_t cq_seen = 0;
  std::uint32_t chain = 0;  // the request that the next one is linked to; 0: none
  HandleFile* files = nullptr;
  std::uint32_t file_count = 0;
  PendingTable pending;
};

void request_begins(ThreadLog& log, Ring& ring, const RingEntry& entry) noexcept;
void request_completed(ThreadLog& log, Ring& ring, const RingCompletion& completion) noexcept;
// Nothing more will come of those that are under way; those that complete in silence have, as far as anybody
// can tell.
void requests_end(ThreadLog& log, Ring& ring) noexcept;

}  // namespace penstock::interpose
