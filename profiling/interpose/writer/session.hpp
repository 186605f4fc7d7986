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

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

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
  bool uses_tsc = false;                      // ticks.hpp; decided once, before anything is counted
  bool rings_seen = false;                    // rings.hpp
  std::atomic<bool> may_have_loaded{false};   // slots.hpp
  char* base = nullptr;                       // where the file is mapped
  penstock_session_header* header = nullptr;  // the file's header; not null once anything was recorded
  char folder[1024] = {};                     // absolute
};
static_assert(offsetof(Session, folder) <= 64);
extern Session session;

// In the library's constructor: takes the folder from PENSTOCK_PROFILE_SESSION and begins a file in it.
// Without that variable, or if no file can be made (stderr gets a line), nothing is recorded.
void open_session() noexcept;
// In a fork's child: nothing more is written to its parent's file. The child's own file begins with
// begin_forked(), at its first counted call. That lets `take_along` copy what it needs before the parent's
// file is unmapped. It is given null if another thread of the parent was taking the session from one file to
// the next at the fork.
void leave_parents_session() noexcept;
bool begin_forked(void (*take_along)(const char* parents_base)) noexcept;

// While session.changes is set and no thread is inside an update: begins a file in that folder (absolute),
// and recording with it. False if none can be made; then everything is as before. `before` is the header of
// the file that this one continues, which is stopped and still mapped. It decides whether segments are kept,
// the limit, and where the kernel's counters begin. Null if this file continues none: then `segments`
// decides.
bool begin_session(const char* folder, penstock_begun started, bool segments,
                   const penstock_session_header* before) noexcept;
// Also then, once every call comes to its wrapper: what the kernel counted before does not count for this
// session (kernel_begin).
void begin_kernel_counters() noexcept;
// Also then: the file is done (PENSTOCK_STOPPED). Either another one begins, or nothing is recorded from now
// on (session.state). Its mapping stays for calls that began before and end later, until reclaim_sessions()
// finds that there can be none.
void stop_session() noexcept;
// Also then, if nothing is recorded from now on: the process gives up the files that are done. Whoever
// removes them gets their space back, and their file system can be unmounted. What calls that are running
// still add is lost.
void leave_past_files() noexcept;
int session_failure() noexcept;  // why the last begin_session() failed, or the file could not grow: errno
bool wants_segments() noexcept;  // PENSTOCK_PROFILE_TRACE=1
// Also then: unmaps all files that are done but the youngest few, unless is_needed() says that a log refers
// to one.
void reclaim_sessions(bool (*is_needed)(const char* base)) noexcept;

// A new block with room for at least `bytes` of entries; its header is written. Null if there is no room
// left, and in a handler whose own thread holds file_lock. Takes file_lock; may write to the file and map a
// part of it.
penstock_block* new_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept;

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
// The end of recording, as far as this process can tell. It may be called again, and what is counted
// afterwards is kept. Any thread, also in a handler.
void end_session(penstock_process_state state) noexcept;
// After an exec that failed: the session continues.
void resume_session() noexcept;

// Any thread and handler. Takes file_lock; without it or without room a drop is counted.
void add_event(penstock_event_kind kind, std::uint32_t pid, const char* text) noexcept;

}  // namespace penstock::interpose
