// The file to which this process writes its session, as mapped memory. A range of addresses is reserved when
// the file begins. As the file grows, it is mapped into that range from the start, so pointers into it stay
// valid. Before a part of the file is mapped, zeros are written to it, which allocates its space on the
// device. So if the disk is full, operations count as dropped, and a store to the mapping never causes a
// SIGBUS.
//
// Threads: any thread may call these functions, except start_ticks().
// Locks: the functions that need file_lock (session_file.hpp) take it themselves. The caller may hold other
// locks: Control, logs_lock, or that of a Ring or of AsyncOperations.
// Memory: nothing is allocated from the program's heap, and no descriptor is kept open, because programs
// close all descriptors that they find. snprintf() is used only for plain numbers and texts, for which it
// neither allocates memory nor takes a lock.
// Signals: a handler whose own thread holds file_lock gets no block. What the handler would have written
// counts as dropped.
// Crash: the process may be killed at any instruction. The file then has what was stored so far, and readers
// must accept it. Therefore an entry is stored before the count that makes it visible (`used`, `file_end`,
// `magic`).
#pragma once

#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/interpose/writer/system.hpp"
#include "profiling/session_abi.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace penstock::interpose {

enum class SessionState : uint32_t {
  off,     // nothing is recorded, for example because no folder was given
  forked,  // this process was forked from a recorded one and has not counted a call yet
  running,
};

// The first cache line has all the words that each wrapped call reads, also words of other parts of the
// library. So a call loads only one cache line of this struct. That matters because system calls evict most
// of the processor's cache.
struct alignas(64) Session {
  std::atomic<SessionState> state{SessionState::off};
  // Set while one thread, the holder of Control, begins or ends recording, or switches from one file to the
  // next. After it has set this, it waits until no thread is inside an update (Update, counting.hpp). Threads
  // that begin an Update meanwhile wait until this is cleared.
  std::atomic<bool> is_changing{false};
  bool uses_tsc = false;            // ticks() uses the time stamp counter; chosen before any call is counted
  bool program_used_rings = false;  // the program has used a ring (rings.hpp)
  // The program may have loaded libraries whose slots are not rewritten yet (slots.hpp).
  std::atomic<bool> may_have_new_objects{false};
  char* base = nullptr;  // address where the file is mapped
  // Not 0 in a process in seccomp's strict mode, where reading any clock would end it: the last time that was
  // read. ticks() returns it.
  uint64_t stopped_ticks = 0;
  // The file's header. It is not null once recording has started for the first time.
  penstock_session_header* header = nullptr;
  char folder[PENSTOCK_FOLDER_BYTES] = {};  // absolute path of the session's folder
};
static_assert(offsetof(Session, folder) <= 64);
extern Session session;

// Adds a block with room for at least `bytes` bytes of entries, and writes its header. Null if there is no
// room left, and in a handler whose own thread holds file_lock. Takes file_lock. May grow the file, and map
// the new part.
penstock_block* new_block(penstock_block_kind kind, uint16_t entry_bytes, uint64_t bytes) noexcept;

// Gives the calling thread a block of segments with free room. `full_block` is the thread's last block, or
// null if it had none. Takes file_lock.
// Below the trace limit the result is a new block. At the limit, or if the file cannot grow, the oldest full
// block is emptied and returned. If no other block is full, `full_block` itself is emptied and returned. Null
// if there is no room for a thread's first block, and in a handler whose own thread holds file_lock.
//
// The blocks together may exceed the limit by PENSTOCK_BLOCK_GRANULE bytes for each thread. Blocks that are
// not full belong to the logs of threads, or to free logs. So their number is at most the largest number of
// threads that ran at one time.
penstock_block* next_segment_block(penstock_block* full_block) noexcept;

inline uint64_t offset_in_session(const void* in_session) noexcept {
  return uint64_t(static_cast<const char*>(in_session) - session.base);
}
template <typename T>
T* at_offset(uint64_t offset) noexcept {
  return reinterpret_cast<T*>(session.base + offset);
}

// Whether segments are recorded (a bit of the header). Another process may switch this bit at any time
// (`penstock profile trace`). A relaxed load is enough, because no other data depends on the bit.
inline bool segments_wanted() noexcept {
  return (__atomic_load_n(&session.header->control, __ATOMIC_RELAXED) & 1U) != 0;
}

// Adds `by` to one of the header's counters of what was lost. The addition is atomic, because all threads and
// handlers share these counters. Takes no lock.
inline void count_drop(uint64_t& counter, uint64_t by = 1) noexcept {
  __atomic_fetch_add(&counter, by, __ATOMIC_RELAXED);
}

// Reads a clock of the kernel, by a system call: another library of the program may have replaced
// clock_gettime() by one that stands still, and a wait until a time would then never end.
inline int64_t nanoseconds(clockid_t clock) noexcept {
  timespec time{};
  system_call(SYS_clock_gettime, clock, as_argument(&time));
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Reads a clock as clock_gettime() does: the kernel's own function in the vDSO, which usually does not enter
// the kernel; a system call if there is no vDSO. libc's clock_gettime() is not used, because a library of the
// program may have replaced it (libfaketime). Set by start_ticks().
using ClockFunction = long(clockid_t clock, timespec* time) noexcept;
extern ClockFunction* read_clock;

// The present time in the session's ticks. A session's clock is the processor's time stamp counter if that is
// invariant, otherwise CLOCK_MONOTONIC. Any thread and any handler may call this.
inline uint64_t ticks() noexcept {
#if defined(__x86_64__)
  if (session.uses_tsc) [[likely]] {
    return __rdtsc();
  }
#endif
  if (session.stopped_ticks != 0) [[unlikely]] {
    return session.stopped_ticks;
  }
  timespec time{};
  read_clock(CLOCK_MONOTONIC, &time);
  return uint64_t(time.tv_sec) * 1'000'000'000 + uint64_t(time.tv_nsec);
}

// Chooses the session's clock, and returns its ticks per second. For the time stamp counter it measures this
// number for 0.1 ms. PENSTOCK_PROFILE_CLOCK=tsc or =monotonic overrides the choice. Called once, before
// anything is counted.
uint64_t start_ticks() noexcept;

// Stores the present time in the file's header: the session's ticks and CLOCK_MONOTONIC. Takes file_lock. In
// a handler whose own thread holds the lock, it stores nothing. The caller holds an Update.
[[gnu::cold]] void set_later_moment() noexcept;
// Calls set_later_moment() if the time that it stored last is more than 1/8 s ago. The caller holds an
// Update.
inline void note_moment(uint64_t now) noexcept {
  const penstock_session_header& h = *session.header;
  const uint32_t newest_index = __atomic_load_n(&h.later_index, __ATOMIC_ACQUIRE) & 1U;
  // Atomic, because two other threads may store moments between these two loads.
  if (now - __atomic_load_n(&h.later[newest_index].ticks, __ATOMIC_RELAXED) >= h.ticks_per_s / 8)
      [[unlikely]] {
    set_later_moment();
  }
}

}  // namespace penstock::interpose
