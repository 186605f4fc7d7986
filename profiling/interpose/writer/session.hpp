// The file that this process writes its session to, as memory: a range of addresses is reserved once, and the
// file is mapped into it from its begin as it grows, so that nothing that was handed out ever moves. What is
// mapped has its place on the device already (zeros were written there), so that a full disk is a counted
// drop and never a SIGBUS.
//
// Session's first line holds, besides the file's own, all words that every call looks at, whosever they are.
//
// All functions may be called by any thread; none allocates from the program's heap, or holds a descriptor
// open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

enum class SessionState : std::uint32_t {
  off,     // nothing is recorded: no folder was named, or it could not be written
  forked,  // this process was forked from a recorded one and has not done anything yet
  running,
};

// What each call looks at is in its first line of the processor's cache, with what is not the session's:
// a system call leaves little there of what was there before it.
struct alignas(64) Session {
  std::atomic<SessionState> state{SessionState::off};
  // Set while the session is taken from one file to another, by one thread, which then waits until no other
  // one is in the midst of an update (Update, counting.hpp): who comes meanwhile waits for it.
  std::atomic<bool> changes{false};
  bool uses_tsc = false;                      // ticks.hpp; decided once, before anything is counted
  bool rings_seen = false;                    // rings.hpp
  std::atomic<bool> may_have_loaded{false};   // slots.hpp
  char* base = nullptr;                       // of the mapped file
  penstock_session_header* header = nullptr;  // likewise
  char folder[1024] = {};                     // absolute
};
static_assert(offsetof(Session, folder) <= 64);
extern Session session;

// When the library is loaded: takes the folder from PENSTOCK_PROFILE_SESSION and begins a file in it. Without
// that variable, or where no file can be made (said on stderr once), nothing is recorded.
void open_session() noexcept;
// In a child that was forked: nothing more is written to its parent's file. The child's own begins with
// begin_forked(), which lets `take_along` copy what it needs before the parent's is unmapped; null where
// another thread of the parent was just taking it from one file to the next.
void leave_parents_session() noexcept;
bool begin_forked(void (*take_along)(const char* parents_base)) noexcept;

// While session.changes, and nobody is in an update: begins a file in that folder (absolute), and recording
// with it. False where none can be made; then everything is as it was. `before`: the header of the file that
// this one follows upon, stopped and still mapped, whose word says whether segments are kept, whose limit
// holds, and where the kernel's counters begin; null where it follows upon none: then `segments` says so.
bool begin_session(const char* folder, penstock_begun started, bool segments,
                   const penstock_session_header* before) noexcept;
// Likewise, once every call comes to its wrapper: what the kernel counted before, and no wrapper saw, was
// nobody's (kernel_begin).
void begin_kernel_counters() noexcept;
// Likewise: the file is done (PENSTOCK_STOPPED); either another one begins, or nothing is recorded from now
// on (session.state). What is mapped of it stays so for calls that began before and end later, until
// reclaim_sessions() finds that there can be none.
void stop_session() noexcept;
// Likewise, where nothing is recorded from now on: the files that are done are the process's no longer, so
// that who removes them gets their room, and their file system can be unmounted. What calls that are under
// way still add to them is nobody's.
void leave_past_files() noexcept;
int session_failure() noexcept;  // why begin_session() failed: an errno value
bool wants_segments() noexcept;  // PENSTOCK_PROFILE_TRACE=1
void reclaim_sessions(bool (*is_needed)(const char* base)) noexcept;

// A new block with room for at least so many bytes of entries; its header is written. Null where there is no
// room left. The caller must not be interrupted by a handler that comes here (ThreadLog sees to it).
penstock_block* new_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept;

inline std::uint64_t offset_in_session(const void* in_session) noexcept {
  return static_cast<std::uint64_t>(static_cast<const char*>(in_session) - session.base);
}
template <typename T>
T* at_offset(std::uint64_t offset) noexcept {
  return reinterpret_cast<T*>(session.base + offset);
}

inline bool segments_wanted() noexcept {
  return (__atomic_load_n(&session.header->control, __ATOMIC_RELAXED) & 1U) != 0;
}

inline void count_drop(std::uint64_t& counter, std::uint64_t by = 1) noexcept {
  __atomic_fetch_add(&counter, by, __ATOMIC_RELAXED);
}

// A newer pair of readings of both clocks, if the last is old enough to be worth it.
[[gnu::cold]] void set_later_moment() noexcept;
inline void note_moment(std::uint64_t now) noexcept {
  const penstock_session_header& h = *session.header;
  const std::uint32_t newest = __atomic_load_n(&h.later_index, __ATOMIC_ACQUIRE) & 1U;
  if (now - h.later[newest].ticks >= h.ticks_per_s / 8) [[unlikely]] {
    set_later_moment();
  }
}
// The end of recording, as far as this process can foresee it; it may be called again, and what is counted
// after it is kept.
void end_session(penstock_process_state state) noexcept;
// An exec that failed: the session goes on.
void resume_session() noexcept;

void add_event(penstock_event_kind kind, std::uint32_t pid, const char* text) noexcept;

}  // namespace penstock::interpose
