// What a session records about a process: how its recording began and ended, its clock and its events. Also
// the requests that `penstock profile attach` and `detach` make to the library in the process. This is a part
// of the format of sessions (session_abi.h).
#ifndef PENSTOCK_PROFILING_PROCESS_ABI_H
#define PENSTOCK_PROFILING_PROCESS_ABI_H

#include <stddef.h>
#include <stdint.h>

enum penstock_process_state {
  PENSTOCK_RUNNING = 0,   // the process runs, or it was killed and could not change this
  PENSTOCK_ENDED = 1,     // the process ended by exit(), _exit() or quick_exit()
  PENSTOCK_EXECUTED = 2,  // the process executed another program, which has a file of its own
  PENSTOCK_STOPPED = 3    // recording ended, but the process continues
};

// Why this file began. A process may have several files, one after another. There may be a time between two
// files in which nothing was recorded.
enum penstock_start_reason {
  PENSTOCK_START_REASON_PROCESS = 0,   // the program was started, or the process was forked
  PENSTOCK_START_REASON_ATTACHED = 1,  // a user attached to the running process
  PENSTOCK_START_REASON_CALLED = 2,    // the program, or its training steps, began a window
  PENSTOCK_START_REASON_BETWEEN = 3    // a window ended; the process is also recorded between windows
};

enum penstock_clock {
  PENSTOCK_CLOCK_MONOTONIC = 0,  // ticks are nanoseconds of CLOCK_MONOTONIC
  PENSTOCK_CLOCK_TSC = 1         // ticks are those of the processor's invariant time stamp counter
};

enum penstock_event_kind {
  PENSTOCK_EVENT_FORK = 0,   // `pid`: the new child
  PENSTOCK_EVENT_EXEC = 1,   // text: the program that is executed
  PENSTOCK_EVENT_SPAWN = 2,  // `pid`: the new child, 0 if not known; text: the program that it executes
  PENSTOCK_EVENT_MARK = 3,   // text: a note of the library: what an attach redirected
  // The child `pid` has ended and was waited for. From then on the kernel's counters of this process include
  // the child's.
  PENSTOCK_EVENT_REAP = 4,
  // This file is one window of the process. pid: the number of the window, from 1, and not a process id;
  // text: the window's label. If a file has several of these events, the last one is valid.
  PENSTOCK_EVENT_WINDOW = 5,
  // text: a program that is executed next and cannot load the library; `pid`: enum penstock_not_loaded
  PENSTOCK_EVENT_NOT_LOADED = 6
};

// Why a program cannot load the library.
enum penstock_not_loaded {
  PENSTOCK_LOADED = 0,         // it can, or that is not known
  PENSTOCK_GAINS_RIGHTS = 1,   // set-user-ID, set-group-ID or capabilities: its loader ignores LD_PRELOAD
  PENSTOCK_OTHER_MACHINE = 2,  // it is a 32-bit program, or one for another processor
  PENSTOCK_OTHER_LIBC = 3,     // its loader is not glibc's
  PENSTOCK_STATIC = 4,         // it has no loader
  // RLIMIT_DATA or RLIMIT_AS allows so little memory that it might not start with the library.
  PENSTOCK_LITTLE_MEMORY = 5
};

struct penstock_event {
  uint64_t ticks;
  uint32_t pid;
  uint16_t kind;    // enum penstock_event_kind
  uint16_t length;  // bytes of the text after this struct
  // The text follows, then zeros up to a multiple of 8 bytes.
};

// --- Requests from outside to the library in a process. `penstock profile attach` and `detach` start a
// thread in the process. The thread runs penstock_profile_request() with one of these structs, and writes the
// answer into it.

enum penstock_request_kind { PENSTOCK_REQUEST_ATTACH = 1, PENSTOCK_REQUEST_DETACH = 2 };

#define PENSTOCK_FOLDER_BYTES 1024  // bytes for the absolute path of a session's folder, with its NUL

struct penstock_request {
  uint32_t kind;        // enum penstock_request_kind
  uint32_t trace;       // for attach: 1 if each call is to be recorded as a segment
  uint32_t done;        // 1 once the answer is complete; stored last
  int32_t failed;       // 0 if the request succeeded, otherwise errno
  uint64_t slots;       // slots (function pointers) that attach rewrote, or that detach restored
  uint64_t objects;     // number of loaded objects with these slots
  uint64_t unrestored;  // after detach: slots that could not be restored
  uint64_t unloaded;    // after detach: slots whose objects were unloaded
  char folder[PENSTOCK_FOLDER_BYTES];  // absolute path of the session's folder; a detach sets it
  char error_text[256];                // why the request failed
  uint64_t trace_limit;  // for attach: limit for the bytes of segments; 0: the library's default
};
#define PENSTOCK_NO_TRACE_LIMIT UINT64_MAX  // trace_limit of a request without a limit

#ifdef __cplusplus
static_assert(sizeof(penstock_event) == 16, "the layout of events in files must not change");
#endif

#endif
