// Begins and ends recording, and switches from one session file to the next, while the program's threads run.
#pragma once

#include <signal.h>

#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// The lock for changing what is recorded. One thread at a time holds it, with all its signals blocked.
// Otherwise a handler that does I/O in this thread would wait for the change (Update, counting.hpp), which
// only the interrupted thread can finish. Order: signals are blocked before the lock is taken, and unblocked
// after it is released.
//
// Holders: threads of the program in penstock_profile_*() and in rewrite_new_objects(), and the thread that
// `penstock profile attach` and `detach` start. The lock is taken before all others of this library. It is
// not recursive. No thread makes a second Control while it has one; the second would not hold the lock.
class Control {
 public:
  Control() noexcept;
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

 private:
  sigset_t saved_signal_mask_{};
  union {
    LockGuard guard_;
  };
};
// Called in a fork's child. Frees the lock, because its holder may not exist in the child, and forgets the
// parent's windows.
void forget_parents_control() noexcept;

// Whether a session is being recorded. False in a fork's child that has not counted a call yet. Any thread;
// takes no lock.
inline bool is_running() noexcept {
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

// Everything below is for the holder of Control. The int results are 0 or an errno value. EBUSY: a thread
// stays inside an update. ENOSYS: the kernel has no membarrier(). In both cases recording continues as
// before. Other values come from creating the file; then nothing is recorded from now on.

struct Recording {
  bool began_here = false;   // recording began, and will end, while the program runs (not by preloading)
  bool is_attached = false;  // recording was begun by `penstock profile attach`
  bool window_is_open = false;
};
extern Recording recording;

// Begins recording in `folder`, an absolute path of a folder that exists. `segments`: whether calls are
// traced.
int begin_recording(const char* folder, penstock_start_reason reason, bool segments) noexcept;
// Ends recording, and the current file. The program continues without being recorded.
int end_recording() noexcept;
// Ends the current file and begins another one. No call is lost between them.
int switch_file(penstock_start_reason reason) noexcept;
// Redirects the program's calls to the wrappers from now on (rewrite_slots()). The kernel's counters of this
// session start at this moment, so earlier I/O does not lower the coverage. If a thread stays inside an
// update, these counters cannot start now, and the coverage is lower.
SlotCounts redirect_calls() noexcept;

}  // namespace penstock::interpose
