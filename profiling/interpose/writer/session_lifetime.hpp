// Begins and ends the file to which this process writes its session.
//
// Threads: any thread may call end_session(), resume_session() and add_event(), with no lock held but Control
// (recording.hpp). Its holder adds events too, and ends the session. end_session() and add_event() take
// file_lock (session_file.hpp); resume_session() takes no lock. Each other function states its caller: the
// holder of Control while session.changes is set, or the only thread of a starting process or of a fork's
// child.
#pragma once

#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Begins a file in the folder that the environment variable PENSTOCK_PROFILE_SESSION names. Called in the
// library's constructor. Without that variable, or if no file can be made, nothing is recorded. In the second
// case a line is written to stderr.
void open_session() noexcept;
// Keeps a fork's child from writing to its parent's file. Called in the child.
void leave_session_of_parent() noexcept;
// Begins a file for a fork's child. Called at the child's first counted call. It calls `copy_names`, which
// copies what the child needs from the parent's file, and then unmaps that file. `copy_names` gets null if
// another thread of the parent was switching files at the fork: then nothing can be copied. False if no file
// can be made.
bool begin_forked_session(void (*copy_names)(const char* parents_base)) noexcept;

// Begins a file in `folder` (an absolute path), and recording with it. Called by the holder of Control, while
// session.changes is set and no thread is inside an update. False if no file can be made; then nothing has
// changed.
//
// `previous` is the header of the file that the new file continues; that file is stopped and still mapped.
// Its header gives whether segments are recorded, the trace limit, and where the kernel's counters begin. If
// `previous` is null, the new file continues no other file, and `segments` says whether segments are
// recorded.
bool begin_session(const char* folder, penstock_start_reason reason, bool segments,
                   const penstock_session_header* previous) noexcept;
// Stores the kernel's present I/O counters in the file's header (kernel_begin): the session begins with them.
// Called once all calls go to their wrappers, while session.changes is set and no thread is inside an update.
void begin_kernel_counters() noexcept;
// Ends the file (PENSTOCK_STOPPED). Called while session.changes is set and no thread is inside an update.
// Then the caller begins another file, or ends recording (session.state). The file stays mapped for calls
// that began before and end later. reclaim_sessions() unmaps it when there can be no such call.
void stop_session() noexcept;
// Replaces the mappings of ended files by memory without a file. Called when recording ends, while
// session.changes is set and no thread is inside an update. If a user then deletes these files, their space
// is free again, and their file system can be unmounted. What running calls still add is lost.
void unmap_past_files() noexcept;
int session_failure() noexcept;  // errno of the last failure of begin_session(), or of the file's growth
bool wants_segments() noexcept;  // true if PENSTOCK_PROFILE_TRACE begins with 1
// Unmaps ended files, except the newest few and those for which is_needed() returns true because a log refers
// to them. Called while session.changes is set and no thread is inside an update.
void reclaim_sessions(bool (*is_needed)(const char* base)) noexcept;
// Stores in the file that recording ended, and why (`state`). Calls that are counted afterwards are still
// recorded. May be called several times, by any thread, also in a handler.
void end_session(penstock_process_state state) noexcept;
// Undoes end_session(), so that the session continues. Called after an exec that failed.
void resume_session() noexcept;

// Adds an event to the file. Any thread and any handler may call this. Takes file_lock. If a handler cannot
// take the lock, or if there is no room, the event counts as dropped.
void add_event(penstock_event_kind kind, uint32_t pid, const char* text) noexcept;

}  // namespace penstock::interpose
