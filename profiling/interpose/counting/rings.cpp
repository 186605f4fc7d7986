// The rings of io_uring: the list of rings, where their memory is, and how far each was read.
//
// Threads: a thread of the program, in a wrapper or when it ends the process. The comments of
// count_finished_rings() and forget_rings() name their callers.
// Locks: rings_lock is for the list of rings. Ring::lock is for all members of a ring but `next` and `fd`. No
// thread holds both locks at once. Two exceptions to Ring::lock: new_ring(), add_library_ring() and
// add_program_ring() fill a new ring without it, because no wrapper finds that ring by a descriptor yet.
// with_library_ring() reads `cq_tail` without it. A thread that holds a ring's lock and counts an operation
// may take the session's file_lock, and may wait in Update (counting.hpp) while another thread changes the
// session. So the thread that changes the session must not wait for a ring's lock while session.is_changing
// is set.
// Memory: from private_memory(). Nothing calls malloc or stdio.
// Signals: a handler whose own thread holds the ring's lock gets LockGuard::has_lock() == false and counts
// nothing.
// Forks: a child resets both kinds of locks, and never uses the parent's rings again (forget_rings()).
#include "profiling/interpose/counting/rings.hpp"

#include <new>

#include "profiling/interpose/counting/asynchronous.hpp"
#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/pending.hpp"
#include "profiling/interpose/counting/ring_requests.hpp"
#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

namespace {

constinit std::atomic<Ring*> first_ring{nullptr};
// Values of Ring::fd for a ring without a descriptor. kFreeFd: new_ring() may use the ring again. kClaimedFd:
// a thread is setting the members of this Ring. kForgottenFd: the ring is never used again.
constexpr int kFreeFd = -1;
constexpr int kClaimedFd = -3;
constexpr int kForgottenFd = -2;
constinit OwnedLock rings_lock;  // held to change the list; reading the list needs no lock

// Returns the ring with this descriptor; null if there is none. Takes no lock, so any thread and any handler
// may call it. Because another thread may be reading the list, rings are never freed: a ring that ended keeps
// its place in the list, with fd -1 (kFreeFd), and is used again.
Ring* find_ring(int fd) noexcept {
  for (Ring* ring = first_ring.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    if (ring->fd.load(std::memory_order_acquire) == fd) {
      return ring;
    }
  }
  return nullptr;
}

// Returns a ring that has no descriptor yet. Null if there is no memory, and in a handler whose own thread
// holds rings_lock. The caller holds no lock. It fills the ring and stores `fd` last: until then no wrapper
// finds the ring by a descriptor. This function sets `fd` to kClaimedFd under rings_lock, so another thread
// that calls it at the same instant does not get the same ring.
Ring* new_ring(int fd, const RingParameters& parameters) noexcept {
  // If an older ring has the same descriptor, it has ended: the kernel has given its number to the new ring.
  // It is removed before rings_lock is taken, because remove_ring() takes the old ring's lock.
  remove_ring(fd);
  const LockGuard lock(rings_lock);
  Ring* ring = lock.has_lock() ? find_ring(kFreeFd) : nullptr;
  if (lock.has_lock() && ring == nullptr) {
    if (void* memory = private_memory(sizeof(Ring))) {
      ring = new (memory) Ring;
      // `next` is stored before first_ring: as soon as first_ring leads to this ring, other threads may read
      // `next`.
      ring->next = first_ring.load(std::memory_order_relaxed);
      first_ring.store(ring, std::memory_order_release);
    }
  }
  if (ring == nullptr) {
    count_drop(session.header->dropped_records);
    return nullptr;
  }
  ring->fd.store(kClaimedFd, std::memory_order_relaxed);
  ring->parameters = parameters;
  const uint32_t ring_entries = parameters.cq_entries > 4096 ? parameters.cq_entries : 4096;
  ring->pending.allocate(ring_entries * 4);
  return ring;
}

const uint32_t* word_at(const char* memory, uint32_t offset) noexcept {
  return reinterpret_cast<const uint32_t*>(memory + offset);
}

// These two functions store where the ring's memory is. The caller holds Ring::lock, or the ring has no
// descriptor yet.
void set_sq_memory(Ring& ring, const char* memory) noexcept {
  ring.sq_tail = word_at(memory, ring.parameters.sq.tail);
  ring.sq_array =
      (ring.parameters.flags & kSetupNoArray) != 0 ? nullptr : word_at(memory, ring.parameters.sq.array);
  ring.sq_memory = memory;
}
void set_cq_memory(Ring& ring, const char* memory) noexcept {
  ring.cq_tail = word_at(memory, ring.parameters.cq.tail);
  ring.completions = memory + ring.parameters.cq.completions;
  ring.cq_memory = memory;
}

// Reads the tail of a ring. The kernel or the program stores the entries of the ring first and then the tail.
// So the tail is loaded with acquire order: after a relaxed load this thread might still see an old entry.
uint32_t tail_of(const uint32_t* tail) noexcept {
  return __atomic_load_n(tail, __ATOMIC_ACQUIRE);
}

// Counts all completions that came since the last call. The caller holds Ring::lock. An entry may be
// overwritten while it is read here: the kernel writes to the ring, and other threads of the program make
// room in it.
void count_completions(ThreadLog& log, Ring& ring) noexcept {
  if (ring.cq_tail == nullptr) {
    return;
  }
  const uint32_t entry_count = ring.parameters.cq_entries;
  const size_t stride = sizeof(RingCompletion)
                        << ((ring.parameters.flags & kSetupWideCompletions) != 0 ? 1U : 0U);
  uint32_t tail = tail_of(ring.cq_tail);
  while (ring.next_completion != tail) {
    if (tail - ring.next_completion > entry_count) {
      count_drop(session.header->dropped_operations, tail - ring.next_completion - entry_count);
      ring.next_completion = tail - entry_count;
    }
    const RingCompletion completion = *reinterpret_cast<const RingCompletion*>(
        ring.completions + (ring.next_completion & (entry_count - 1)) * stride);
    // The tail is read again after the copy. If it is now more than the ring's size ahead of this entry, the
    // kernel may have overwritten the entry during the copy, and the copy is discarded.
    tail = tail_of(ring.cq_tail);
    if (tail - ring.next_completion <= entry_count) {
      ring.next_completion += 1;
      complete_request(log, ring, completion);
    }
  }
}

// Counts one request. The caller holds Ring::lock. The request's entry is in the program's memory, and the
// kernel has not taken it yet.
void count_request(ThreadLog& log, Ring& ring, uint32_t index) noexcept {
  index &= ring.parameters.sq_entries - 1;
  const unsigned entry_shift = (ring.parameters.flags & kSetupWideEntries) != 0 ? 1U : 0U;
  add_request(log, ring, ring.entries[index << entry_shift]);
}

// Counts the requests that the program has published since the last call of this function. The caller holds
// Ring::lock. Does nothing for a ring of liburing: read_before_call() counts its requests, because liburing
// publishes them only within its call.
void count_published_requests(ThreadLog& log, Ring& ring) noexcept {
  if (ring.is_of_liburing || ring.sq_tail == nullptr || ring.entries == nullptr) {
    return;
  }
  const uint32_t entry_count = ring.parameters.sq_entries;
  const uint32_t tail = tail_of(ring.sq_tail);
  if (tail - ring.next_request > entry_count) {
    ring.next_request = tail - entry_count;  // the skipped requests count as dropped when they complete
  }
  for (; ring.next_request != tail; ++ring.next_request) {
    const uint32_t slot = ring.next_request & (entry_count - 1);
    count_request(log, ring, ring.sq_array == nullptr ? slot : ring.sq_array[slot]);
  }
  ring.chain_end = 0;
}

// Counts the remaining requests and completions, and empties the ring. The caller holds Ring::lock. Order:
// requests are counted before completions, because a completion without a known request counts as dropped.
// `fd` is stored last, because from then on new_ring() may give the ring to another thread.
void end_ring(ThreadLog& log, Ring& ring) noexcept {
  count_published_requests(log, ring);
  count_completions(log, ring);
  count_silent_requests(log, ring);
  ring.pending.free_memory();
  if (ring.table != nullptr) {
    free_private_memory(ring.table, ring.file_count * sizeof(HandleFile));
  }
  ring.table = nullptr;
  ring.file_count = 0;
  ring.sq_tail = ring.sq_array = ring.cq_tail = nullptr;
  ring.sq_memory = ring.cq_memory = ring.completions = nullptr;
  ring.entries = nullptr;
  ring.next_request = ring.next_completion = ring.chain_end = 0;
  ring.is_of_liburing = false;
  ring.fd.store(kFreeFd, std::memory_order_release);
}

// Calls `action` under the lock of the ring with this descriptor. Any thread that holds no lock may call
// this. thread_log() may make the thread's log, with memory from the kernel. The descriptor is compared again
// under the lock, because before that the ring may have ended and been used for another descriptor.
template <typename Action>
void with_ring(int fd, Action action) noexcept {
  ThreadLog* log = fd < 0 || !has_rings() ? nullptr : thread_log();
  Ring* ring = log == nullptr ? nullptr : find_ring(fd);
  if (ring == nullptr) {
    return;
  }
  const LockGuard lock(ring->lock);
  if (lock.has_lock() && ring->fd.load(std::memory_order_relaxed) == fd) {
    action(*log, *ring);
  }
}

// Calls `action` under the lock of a ring of liburing. The caller holds no lock. The ring is found by the
// address of its memory, because liburing may have closed the descriptor and use a registered number instead.
// A limit: `cq_tail` is read without the lock, and is not compared again under it. If another thread ends the
// ring between these two moments, `action` may get an empty Ring, or a Ring that now describes another ring
// of the program.
template <typename Action>
void with_library_ring(const LibraryRing& library, Action action) noexcept {
  ThreadLog* log = has_rings() ? thread_log() : nullptr;
  for (Ring* ring = log == nullptr ? nullptr : first_ring.load(std::memory_order_acquire); ring != nullptr;
       ring = ring->next) {
    if (ring->fd.load(std::memory_order_acquire) >= 0 && ring->cq_tail == library.cq.tail) {
      const LockGuard lock(ring->lock);
      if (lock.has_lock()) {
        action(*log, *ring);
      }
      return;
    }
  }
}

// Calls `action` for each ring that has a descriptor, under its lock. The locks are taken one after the
// other, never two at once.
template <typename Action>
void with_all_rings(Action action) noexcept {
  ThreadLog* log = has_rings() ? thread_log() : nullptr;
  for (Ring* ring = log == nullptr ? nullptr : first_ring.load(std::memory_order_acquire); ring != nullptr;
       ring = ring->next) {
    const LockGuard lock(ring->lock);
    if (lock.has_lock() && ring->fd.load(std::memory_order_relaxed) >= 0) {
      action(*log, *ring);
    }
  }
}

}  // namespace

void add_library_ring(const LibraryRing& library, const RingParameters& parameters) noexcept {
  ThreadLog* log = thread_log();
  Ring* ring = log == nullptr ? nullptr : new_ring(library.fd, parameters);
  if (ring == nullptr) {
    return;
  }
  ring->is_of_liburing = true;
  ring->entries = library.sq.requests;
  ring->cq_tail = library.cq.tail;
  ring->completions = reinterpret_cast<const char*>(library.cq.completions);
  // The completions that are already in the ring are skipped: they belong to requests that this library has
  // not seen.
  ring->next_completion = *library.cq.tail;
  session.program_used_rings = true;
  ring->fd.store(library.fd, std::memory_order_release);
}

// Adds the ring to the list. The address of its memory is known now only if the program provided the memory
// (kSetupOwnMemory). Otherwise note_ring_memory() stores the address when the program maps the ring.
void add_program_ring(int fd, const RingParameters& parameters) noexcept {
  ThreadLog* log = thread_log();
  Ring* ring = log == nullptr ? nullptr : new_ring(fd, parameters);
  if (ring == nullptr) {
    return;
  }
  if ((parameters.flags & kSetupOwnMemory) != 0) {
    const auto* memory = reinterpret_cast<const char*>(parameters.cq.address);
    set_sq_memory(*ring, memory);
    set_cq_memory(*ring, memory);
    ring->entries = reinterpret_cast<const RingEntry*>(parameters.sq.address);
  }
  session.program_used_rings = true;
  ring->fd.store(fd, std::memory_order_release);
}

void remove_ring(const LibraryRing& library) noexcept {
  with_library_ring(library, [](ThreadLog& log, Ring& ring) { end_ring(log, ring); });
}
void remove_ring(int fd) noexcept {
  with_ring(fd, [](ThreadLog& log, Ring& ring) { end_ring(log, ring); });
}

bool note_ring_memory(int fd, int64_t offset, void* memory) noexcept {
  bool is_ring = false;
  with_ring(fd, [&](ThreadLog&, Ring& ring) {
    is_ring = true;
    const auto* bytes = static_cast<const char*>(memory);
    if (offset == kMapOffsetOfEntries) {
      ring.entries = static_cast<const RingEntry*>(memory);
    } else if (offset == kMapOffsetOfCompletions) {
      set_cq_memory(ring, bytes);
    } else if (offset == 0) {
      set_sq_memory(ring, bytes);
      if (ring.cq_tail == nullptr) {  // one mapping has both rings, since Linux 5.4
        set_cq_memory(ring, bytes);
      }
    }
  });
  return is_ring;
}

// Ends the rings that have memory in this range, except those of liburing, which end in
// io_uring_queue_exit() (remove_ring()). Called before munmap(): a later read of that memory by this library
// would crash the program.
void remove_rings_in(const void* memory, size_t bytes) noexcept {
  with_all_rings([&](ThreadLog& log, Ring& ring) {
    const auto* begin = static_cast<const char*>(memory);
    const auto is_inside = [&](const void* address) {
      const auto* byte = static_cast<const char*>(address);
      return byte >= begin && byte < begin + bytes;
    };
    if (!ring.is_of_liburing &&
        (is_inside(ring.sq_memory) || is_inside(ring.cq_memory) || is_inside(ring.entries))) {
      end_ring(log, ring);
    }
  });
}

// Counts completions, and then the requests that liburing will publish in the call that follows. Completions
// are counted first, because a new request may have the same user_data as one that has just completed.
// Requests are read before liburing's call, because after it their entries may be overwritten.
void read_before_call(const LibraryRing& library) noexcept {
  with_library_ring(library, [&](ThreadLog& log, Ring& ring) {
    count_completions(log, ring);
    for (uint32_t i = library.sq.prepared_head; i != library.sq.prepared_tail; ++i) {
      count_request(log, ring, i);
    }
    ring.chain_end = 0;
  });
}

void read_completions(const LibraryRing& library) noexcept {
  with_library_ring(library, [](ThreadLog& log, Ring& ring) { count_completions(log, ring); });
}

// Counts the new completions and requests of one ring, or of all rings (`fd` is -1). Any thread and any
// handler may call this. Completions are counted first, because a new request may have the same user_data as
// one that has just completed.
void read_program_ring(int fd) noexcept {
  const auto read_ring = [](ThreadLog& log, Ring& ring) {
    count_completions(log, ring);
    count_published_requests(log, ring);
  };
  if (fd < 0) {
    with_all_rings(read_ring);
  } else {
    with_ring(fd, read_ring);
  }
}

// Stores the files that the program has registered for the ring. It calls file_of() under Ring::lock. If the
// library has not seen the open of a descriptor, file_of() looks the descriptor up in /proc.
void set_registered_files(int fd, const int* fds, uint32_t count) noexcept {
  with_ring(fd, [&](ThreadLog& log, Ring& ring) {
    if (ring.table != nullptr) {
      free_private_memory(ring.table, ring.file_count * sizeof(HandleFile));
    }
    ring.table = count == 0 ? nullptr : static_cast<HandleFile*>(private_memory(count * sizeof(HandleFile)));
    ring.file_count = ring.table == nullptr ? 0 : count;
    for (uint32_t i = 0; fds != nullptr && i < ring.file_count; ++i) {
      ring.table[i] = fds[i] < 0 ? HandleFile{} : file_of(log, fds[i]);
    }
  });
}

void update_registered_files(int fd, uint32_t first, const int* fds, uint32_t count) noexcept {
  with_ring(fd, [&](ThreadLog& log, Ring& ring) {
    for (uint32_t i = 0; i < count && first + i < ring.file_count; ++i) {
      if (fds[i] != kSkipFile) {
        ring.table[first + i] = fds[i] < 0 ? HandleFile{} : file_of(log, fds[i]);
      }
    }
  });
}

// Stores a change of the ring's table of registered files. Called after io_uring_register() has succeeded.
// `argument` can be read safely here, because the kernel has read it.
void note_ring_registration(int fd, unsigned operation, const void* argument, unsigned count) noexcept {
  switch (operation) {
    case kRegisterFiles:
      set_registered_files(fd, static_cast<const int*>(argument), count);
      break;
    case kUnregisterFiles:
      set_registered_files(fd, nullptr, 0);
      break;
    case kRegisterFiles2: {
      const auto& files = *static_cast<const RingFilesRegister*>(argument);
      const bool is_sparse = (files.flags & kRegisterSparse) != 0;
      set_registered_files(fd, is_sparse ? nullptr : reinterpret_cast<const int*>(files.data), files.count);
      break;
    }
    case kRegisterFilesUpdate: {
      const auto& update = *static_cast<const RingFilesUpdate*>(argument);
      update_registered_files(fd, update.offset, reinterpret_cast<const int*>(update.data), count);
      break;
    }
    case kRegisterFilesUpdate2: {
      const auto& update = *static_cast<const RingFilesUpdate*>(argument);
      update_registered_files(fd, update.offset, reinterpret_cast<const int*>(update.data), update.count);
      break;
    }
    default:
      break;
  }
}

// Counts those requests and completions of all rings that are not counted yet. Called before the process
// ends, before it executes another program, and before recording ends, in the thread that does so. Other
// threads may be using their rings, and the program may use them again if an exec fails.
// Order: completions are read before the requests and once more after them, because a request that is read
// only now may have completed already.
void count_finished_rings() noexcept {
  with_all_rings([](ThreadLog& log, Ring& ring) {
    count_completions(log, ring);
    count_published_requests(log, ring);
    count_completions(log, ring);
    count_silent_requests(log, ring);
  });
}

// Forgets all rings. Called in a fork's child before its first counted call. Also called by
// begin_recording(), which holds Control (all signals blocked) and has set session.is_changing.
// Locks: they are reset without being taken, because waiting for one could block for ever. In a fork's child
// the lock's owner may not exist. In begin_recording() the lock's owner may be waiting for the thread that
// runs this.
// `fd` becomes kForgottenFd and not kFreeFd. The ring is never used again, because a thread may have been
// changing it.
void forget_rings() noexcept {
  rings_lock.reset();
  for (Ring* ring = first_ring.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    ring->lock.reset();
    ring->fd.store(kForgottenFd, std::memory_order_relaxed);
  }
  session.program_used_rings = false;
}

}  // namespace penstock::interpose
