// Counts the requests of a ring, from their submission to their completion.
//
// Threads: any thread, in a wrapper.
// Locks: the caller holds Ring::lock (rings.cpp), which excludes other threads and handlers of the same
// thread. The functions may wait in Update for a change of the session, and may take its file_lock.
// Memory: nothing is allocated, and errno does not change.
#pragma once

#include "profiling/interpose/counting/pending.hpp"
#include "profiling/interpose/counting/ring_layout.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"

namespace penstock::interpose {

// The state of one ring. `next` never changes once the ring is in the list. `fd` is read without the lock.
// All else is used under `lock`, or by new_ring() and its caller before `fd` is stored. Only
// with_library_ring() reads `cq_tail` without the lock.
struct Ring {
  Ring* next = nullptr;
  std::atomic<int> fd{-1};  // -1: none
  OwnedLock lock;
  RingParameters parameters{};
  bool is_of_liburing = false;  // a ring of liburing: its requests are read before liburing publishes them
  const char* sq_memory = nullptr;
  const char* cq_memory = nullptr;
  const uint32_t* sq_tail = nullptr;
  const uint32_t* sq_array = nullptr;
  const RingEntry* entries = nullptr;
  const uint32_t* cq_tail = nullptr;
  const char* completions = nullptr;
  uint32_t sq_seen = 0;
  uint32_t cq_seen = 0;
  uint32_t chain_end = 0;  // index of the request to which the next request is linked; 0: none
  HandleFile* table = nullptr;
  uint32_t file_count = 0;
  PendingTable pending;
};

// Called before the kernel gets the request: adds it to the ring's table of requests.
void add_request(ThreadLog& log, Ring& ring, const RingEntry& entry) noexcept;
// Called once for each completion: counts its request, and removes it from the table after its last
// completion.
void complete_request(ThreadLog& log, Ring& ring, const RingCompletion& completion) noexcept;
// Takes the requests that succeed without a completion (IOSQE_CQE_SKIP_SUCCESS) as completed, and counts
// them. Called when the ring ends, and in count_finished_rings(): before the process ends, before an exec
// that may fail, and when recording ends. After a failed exec, and after recording has ended, the ring
// continues.
void count_silent_requests(ThreadLog& log, Ring& ring) noexcept;

}  // namespace penstock::interpose
