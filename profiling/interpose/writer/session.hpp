// The file that this process writes its session to, as memory. A range of addresses is reserved once, and the
// file is mapped into it from its begin as it grows, so nothing that was handed out ever moves. The part that
// is mapped has its place on the device already (zeros were written there), so a full disk is a counted drop
// and never a SIGBUS.
//
// Session's first cache line has, in addition to the file's own words, all words that every call reads.
//
// Threads: all functions may be called by any thread, with no lock held; file_lock (session_file.hpp) is
// taken inside. The exceptions are named at the functions: they are for the holder of Control while
// session.changes is set, or for the only thread of a fork's child.
// Memory: nothing is allocated from the program's heap, and no descriptor is kept open, because programs
// close all descriptors that they find. snprintf() is used for plain numbers and texts, with which it neither
// allocates nor locks.
// Signals: a handler whose own thread holds file_lock gets no block, and what it would write counts as
// dropped.
// Crash: the process may be killed at any instruction. The file is then what was stored so far, and readers
// must accept it: an entry is stored before the count that makes it visible (`used`, `file_end`, `magic`).
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace penstock::interpose {

enum class SessionState : std::uint32_t {
  off,     // nothing is recorded: no folder was named, or it could not be written
  forked,  // this process was forked from a recorded one and has not counted a call yet
  running,
};

// Its first cache line has what each call reads, including words that are not the session's: a system call
// leaves little in the cache of what was there before it.
struct alignas(64) Session {
  std::atomic<SessionState> state{SessionState::off};
  // Set while one thread, the holder of Control, takes the session from one file to another. It waits until
  // no other thread is inside an update (Update, counting.hpp); threads that begin one meanwhile wait for it.
  std::atomic<bool> changes{false};
  bool uses_tsc = false;                      // ticks(); decided once, before anything is counted
  bool rings_seen = false;                    // rings.hpp
  std::atomic<bool> may_have_loaded{false};   // slots.hpp
  char* base = nullptr;                       // where the file is mapped
  penstock_session_header* header = nullptr;  // the file's header; not null once anything was recorded
  char folder[1024] = {};                     // absolute
};
static_assert(offsetof(Session, folder) <= 64);
extern Session session;

// A new block with room for at least `bytes` of entries; its header is written. Null if there is no room
// left, and in a handler whose own thread holds file_lock. Takes file_lock; may write to the file and map a
// part of it.
penstock_block* new_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept;

// A block with room for a call, for the thread whose last one was `full` (null: it has none). A new one as
// long as there may be more of them; else the one that became full before all others, emptied; where there is
// none, `full` itself, emptied. Null where there is no room for a first one.
//
// A block that is not full has a writer, or waits for one with the log of a thread that has ended: there are
// as many as threads at one time, and each may have one block (PENSTOCK_BLOCK_GRANULE) beyond the limit.
penstock_block* next_segment_block(penstock_block* full) noexcept;

inline std::uint64_t offset_in_session(const void* in_session) noexcept {
  return static_cast<std::uint64_t>(static_cast<const char*>(in_session) - session.base);
}
template <typename T>
T* at_offset(std::uint64_t offset) noexcept {
  return reinterpret_cast<T*>(session.base + offset);
}

// Another process may switch the bit at any time (`penstock profile trace`). Relaxed: nothing depends on it.
inline bool segments_wanted() noexcept {
  return (__atomic_load_n(&session.header->control, __ATOMIC_RELAXED) & 1U) != 0;
}

// Atomic, because all threads and handlers share the header's counters. Takes no lock.
inline void count_drop(std::uint64_t& counter, std::uint64_t by = 1) noexcept {
  __atomic_fetch_add(&counter, by, __ATOMIC_RELAXED);
}

// The clock of a session: ticks of the processor's time stamp counter where that is invariant, of
// CLOCK_MONOTONIC elsewhere.
inline std::int64_t nanoseconds(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  if (session.uses_tsc) [[likely]] {
    return __rdtsc();
  }
#endif
  return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC));
}

// Decides (PENSTOCK_PROFILE_CLOCK=tsc or =monotonic does, where it is set), and returns how many ticks a
// second has, measured for a tenth of a millisecond. Once, before anything is counted.
std::uint64_t start_ticks() noexcept;

// Stores a newer pair of readings of both clocks if the last one is older than an eighth of a second. Takes
// file_lock only then; without it the pair is simply not stored.
[[gnu::cold]] void set_later_moment() noexcept;
inline void note_moment(std::uint64_t now) noexcept {
  const penstock_session_header& h = *session.header;
  const std::uint32_t newest = __atomic_load_n(&h.later_index, __ATOMIC_ACQUIRE) & 1U;
  if (now - h.later[newest].ticks >= h.ticks_per_s / 8) [[unlikely]] {
    set_later_moment();
  }
}

}  // namespace penstock::interpose
