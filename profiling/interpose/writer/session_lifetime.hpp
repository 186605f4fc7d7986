// Begins and ends the file to which this process writes its session.
//
// Threads: any thread may call end_session(), resume_session() and add_event(). The comment of each other
// function names its caller: the holder of Control (recording.hpp) while session.is_changing is set, or the
// only thread of a starting process or of a fork's child.
// Locks: the callers of end_session(), resume_session() and add_event() hold no lock, except that they may
// hold Control. end_session() and add_event() take file_lock (session_file.hpp). resume_session() takes no
// lock.
#pragma once

#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Begins a file in the folder that the environment variable PENSTOCK_PROFILE_SESSION names. Called in the
// library's constructor. Without that variable nothing is recorded. If no file can be made, nothing is
// recorded either: readers see it from the file of the process that executed this program.
void open_session() noexcept;
// Called before the program gives up rights, changes its root or its namespaces. Keeps open what this process
// needs later to write its session, because the names may then lead nowhere. If `seals` is set, the program
// is about to restrict its system calls: the file grows now, because it cannot grow later. Takes file_lock.
void keep_access(bool seals) noexcept;
// Whether this process, or one from which it was forked, has called keep_access().
bool has_kept_access() noexcept;
// Whether a program that this process executes may be unable to make its file: the process has called
// keep_access(), may not write to the session's folder, or has no room there, or low limits. Makes about five
// system calls. False if that is not known.
bool may_lose_program() noexcept;
// Called in a fork's child: keeps it from writing to its parent's file.
void leave_session_of_parent() noexcept;
// Begins a file for a fork's child. Called at the child's first counted call. False if no file can be made;
// then the child has added itself to `lost` of its parent's file.
// After the new file has started, `copy_names` is called to copy the names of descriptors from the parent's
// file, and then the parent's file is unmapped. If another thread of the parent was switching files at the
// fork, nothing can be copied, and `copy_names` gets null.
bool begin_forked_session(void (*copy_names)(const char* parents_base)) noexcept;
// Called if a thread gets no memory for its log. A fork's child that has no file yet adds itself to `lost` of
// its parent's file, and is not recorded. Takes no lock.
void give_up_forked_session() noexcept;

// Begins a file in `folder` (an absolute path), and begins to record into it. Called by the holder of
// Control, while session.is_changing is set and no thread is inside an update (Update, counting.hpp). False
// if no file can be made; in that case the previous file is unchanged.
//
// `previous` is the header of the file that the new file continues; that file has ended and is still mapped.
// The new file takes over from it whether segments are recorded, and the trace limit. The kernel's counters
// of the new file begin at the values with which `previous` ended. If `previous` is null, the new file
// continues no other file, and `segments` says whether segments are recorded.
bool begin_session(const char* folder, penstock_start_reason reason, bool segments,
                   const penstock_session_header* previous) noexcept;
// Stores the kernel's I/O counters at the start of the session in the file's header (kernel_begin). Called
// after all calls have been redirected to their wrappers, while session.is_changing is set and no thread is
// inside an update.
void begin_kernel_counters() noexcept;
// Ends the file (PENSTOCK_STOPPED). Called while session.is_changing is set and no thread is inside an
// update. After that the caller begins another file, or ends recording (session.state). The file stays
// mapped, because calls that began before may still write to it. reclaim_sessions() unmaps it later.
void stop_session() noexcept;
// Replaces the mappings of ended files by memory without a file. So the process does not hold these files any
// more: if a user deletes them, their space is freed, and their file system can be unmounted. What running
// calls still add is lost. Called when recording ends, while session.is_changing is set and no thread is
// inside an update.
void unmap_past_files() noexcept;
int session_failure() noexcept;  // errno of the last failure to begin a file or to let it grow
bool wants_segments() noexcept;  // true if the environment variable PENSTOCK_PROFILE_TRACE begins with 1
// Unmaps files that have ended. The newest few stay mapped, and those for which is_needed() returns true
// because a log refers to them. Called while session.is_changing is set and no thread is inside an update.
void reclaim_sessions(bool (*is_needed)(const char* base)) noexcept;
// Called before end_session() at exit: libc will write `bytes` bytes of its streams' buffers after that.
void note_unflushed_bytes(uint64_t bytes) noexcept;
// Stores in the file that the session has ended, and why (`state`). Calls that are counted later are still
// added to the file. It may be called several times, by any thread, also in a handler.
void end_session(penstock_process_state state) noexcept;
// Undoes end_session(), so that the session continues. Called after an exec that failed.
void resume_session() noexcept;

// Adds an event to the file. Any thread and any handler may call this. Takes file_lock. The event counts as
// dropped if there is no room, or in a handler whose own thread holds file_lock.
void add_event(penstock_event_kind kind, uint32_t pid, const char* text) noexcept;

}  // namespace penstock::interpose
