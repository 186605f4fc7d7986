// Begins and ends the file to which this process writes its session.
//
// Threads: any thread may call end_session(), resume_session() and add_event(), with no lock held; file_lock
// (session_file.hpp) is taken inside. Each other function states its caller: the holder of Control while
// session.changes is set, or the only thread of a starting process or of a fork's child.
#pragma once

#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Called in the library's constructor: begins a file in the folder PENSTOCK_PROFILE_SESSION. Without that
// variable, or if no file can be made, nothing is recorded. In the second case a line is written to stderr.
void open_session() noexcept;
// Called in a fork's child: from then on nothing is written to its parent's file.
void leave_session_of_parent() noexcept;
// Called in a fork's child at its first counted call: begins the child's own file. It calls `copy_names`,
// which copies what the child needs from the parent's file, and then unmaps that file. `copy_names` gets null
// if another thread of the parent was switching files at the fork: then nothing can be copied. False if no
// file can be made.
bool begin_forked_session(void (*copy_names)(const char* parents_base)) noexcept;

// Begins a file in `folder` (an absolute path), and recording with it. Called while session.changes is set
// and no thread is inside an update. False if no file can be made; then nothing has changed.
//
// `previous` is the header of the file that this one continues; that file is stopped and still mapped. It
// decides whether segments are recorded, the trace limit, and where the kernel's counters begin. If it is
// null, this file continues no other, and `segments` decides.
bool begin_session(const char* folder, penstock_start_reason reason, bool segments,
                   const penstock_session_header* previous) noexcept;
// Called under the conditions of begin_session(), once all calls go to their wrappers. The kernel's counters
// of this session start now (kernel_begin).
void begin_kernel_counters() noexcept;
// Called under the conditions of begin_session(): ends the file (PENSTOCK_STOPPED). Then the caller begins
// another file, or ends recording (session.state). The file stays mapped for calls that began before and end
// later. reclaim_sessions() unmaps it when there can be no such call.
void stop_session() noexcept;
// Called under the conditions of begin_session(), when recording ends: replaces the mappings of ended files
// by memory without a file. If a user then deletes these files, their space is free again, and their file
// system can be unmounted. What running calls still add is lost.
void unmap_past_files() noexcept;
int session_failure() noexcept;  // errno of the last failure of begin_session(), or of the file's growth
bool wants_segments() noexcept;  // true if PENSTOCK_PROFILE_TRACE begins with 1
// Called under the conditions of begin_session(): unmaps ended files, except the newest few and those for
// which is_needed() returns true because a log refers to them.
void reclaim_sessions(bool (*is_needed)(const char* base)) noexcept;
// Stores in the file that recording ended, and why (`state`). Calls that are counted afterwards are still
// recorded. May be called several times, by any thread, also in a handler.
void end_session(penstock_process_state state) noexcept;
// Called after an exec that failed. Undoes end_session(), so that the session continues.
void resume_session() noexcept;

// Adds an event to the file. Any thread and any handler may call this. Takes file_lock. If a handler cannot
// take the lock, or if there is no room, the event counts as dropped.
void add_event(penstock_event_kind kind, uint32_t pid, const char* text) noexcept;

}  // namespace penstock::interpose
