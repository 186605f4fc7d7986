// Begins and ends the file that this process writes its session to.
//
// Threads: any thread may call end_session(), resume_session() and add_event(), with no lock held; file_lock
// (session_file.hpp) is taken inside. The other functions are for the holder of Control while session.changes
// is set, or for the only thread of a starting process or a fork's child, as it is written at each.
#pragma once

#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

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
// The end of recording, as far as this process can tell. It may be called again, and what is counted
// afterwards is kept. Any thread, also in a handler.
void end_session(penstock_process_state state) noexcept;
// After an exec that failed: the session continues.
void resume_session() noexcept;

// Any thread and handler. Takes file_lock; without it or without room a drop is counted.
void add_event(penstock_event_kind kind, std::uint32_t pid, const char* text) noexcept;

}  // namespace penstock::interpose
