// Counts the requests of a ring, from their submission to their completion.
//
// Threads: any thread, in a wrapper.
// Locks: the caller holds Ring::lock (rings.cpp), which excludes other threads and handlers of the same
// thread. The functions may wait in Update (counting.hpp) while another thread changes the session, and may
// take the session's file_lock.
// Memory: from the kernel, not from the program's heap. errno does not change.
#pragma once

#include "profiling/interpose/counting/pending.hpp"
#include "profiling/interpose/counting/ring_layout.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"

namespace penstock::interpose {

// The state of one ring. `next` never changes after the ring was added to the list. `fd` may be read without
// the lock. All other members are used under `lock`, with two exceptions: new_ring() and its caller fill them
// before they store `fd`, and with_library_ring() reads `cq_tail` without the lock.
struct Ring {
  Ring* next = nullptr;
  std::atomic<int> fd{-1};  // -1: none
  OwnedLock lock;
  RingParameters parameters{};
  bool is_of_liburing = false;  // made by liburing: requests are read before liburing publishes them
  const char* sq_memory = nullptr;
  const char* cq_memory = nullptr;
  const uint32_t* sq_tail = nullptr;
  const uint32_t* sq_array = nullptr;
  const RingEntry* entries = nullptr;
  const uint32_t* cq_tail = nullptr;
  const char* completions = nullptr;
  uint32_t next_request = 0;     // position of the first unread request in the ring
  uint32_t next_completion = 0;  // position of the first unread completion in the ring
  uint32_t chain_end = 0;        // index of the request to which the next request is linked; 0: none
  HandleFile* table = nullptr;   // copy of the ring's table of registered files
  uint32_t file_count = 0;
  PendingTable pending;
};

// Called before the kernel gets the request: adds it to the ring's table of requests.
void add_request(ThreadLog& log, Ring& ring, const RingEntry& entry) noexcept;
// Called once for each completion: counts the completion's request, and removes a request from the table
// after its last completion.
void complete_request(ThreadLog& log, Ring& ring, const RingCompletion& completion) noexcept;
// Counts the requests in flight that have no completion if they succeed (IOSQE_CQE_SKIP_SUCCESS). This
// function assumes that they have succeeded. Called when the ring ends, before the process ends, before an
// exec, and when recording ends. After a failed exec, and after recording has ended, the program may continue
// to use the ring.
void count_silent_requests(ThreadLog& log, Ring& ring) noexcept;

}  // namespace penstock::interpose
