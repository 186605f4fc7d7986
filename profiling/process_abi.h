// What a session tells of a process: how its recording began and ended, its clock, its events; and what is
// asked of the library in a process from outside. A part of the format of sessions (session_abi.h).
#ifndef PENSTOCK_PROFILING_PROCESS_ABI_H
#define PENSTOCK_PROFILING_PROCESS_ABI_H

#include <stddef.h>
#include <stdint.h>

enum penstock_process_state {
  PENSTOCK_RUNNING = 0,   // or killed: then the process could not change it
  PENSTOCK_ENDED = 1,     // by exit(), _exit() or quick_exit()
  PENSTOCK_EXECUTED = 2,  // its process executed another program, which has a file of its own
  PENSTOCK_STOPPED = 3    // recording was ended, the process continues
};

// Why this file began. Between two files of a process that do not continue each other nothing was recorded.
enum penstock_begun {
  PENSTOCK_BEGUN_PROCESS = 0,   // the program began, or was forked
  PENSTOCK_BEGUN_ATTACHED = 1,  // a user attached to the running process
  PENSTOCK_BEGUN_CALLED = 2,    // the program asked for it: a window
  PENSTOCK_BEGUN_BETWEEN = 3    // a window ended, in a process that is also watched outside of windows
};

enum penstock_clock {
  PENSTOCK_CLOCK_MONOTONIC = 0,  // ticks are nanoseconds of CLOCK_MONOTONIC
  PENSTOCK_CLOCK_TSC = 1         // ticks are of the processor's invariant time stamp counter
};

enum penstock_event_kind {
  PENSTOCK_EVENT_FORK = 0,   // `pid` is the child's
  PENSTOCK_EVENT_EXEC = 1,   // text: what is executed
  PENSTOCK_EVENT_SPAWN = 2,  // `pid` is the child's, text: what it executes
  PENSTOCK_EVENT_MARK = 3,   // text: a note of the program or its user
  PENSTOCK_EVENT_REAP =
      4,  // the child `pid` has ended and was waited for: its counters are now this process's, too
  // This file is the process's window number `pid` (from 1), text: its label. The last one is valid.
  PENSTOCK_EVENT_WINDOW = 5
};

struct penstock_event {
  uint64_t ticks;
  uint32_t pid;
  uint16_t kind;    // enum penstock_event_kind
  uint16_t length;  // of the text after this
  // then the text, and zeros up to a multiple of 8
};

// --- What is asked of the library from outside. `penstock profile attach` and `detach` begin a thread in the
// process. It runs penstock_profile_request() on one of these, which also takes the answer.

enum penstock_asked { PENSTOCK_ASKED_ATTACH = 1, PENSTOCK_ASKED_DETACH = 2 };

struct penstock_request {
  uint32_t asked;       // enum penstock_asked
  uint32_t trace;       // attach: 1 keeps segments
  uint32_t done;        // 1: the answer is complete; stored last
  int32_t failed;       // 0, or errno
  uint64_t slots;       // attach: rewritten; detach: that have their first value again
  uint64_t objects;     // that they are in
  uint64_t unrestored;  // detach: slots that have another value than their first
  uint64_t unloaded;    // detach: slots that were unloaded with their objects
  uint64_t give_back;   // memory that the asker mapped, to be unmapped at the next request; or 0
  uint64_t give_back_bytes;
  char folder[1024];     // attach: the session's, absolute
  char said[256];        // why it failed
  uint64_t trace_limit;  // attach: for the header; 0: the library's default
};
#define PENSTOCK_NO_TRACE_LIMIT UINT64_MAX  // in a request

#ifdef __cplusplus
static_assert(sizeof(penstock_event) == 16, "events are in files");
#endif

#endif
