// Begins and ends recording, and switches from one session file to the next, while the program's threads run.
//
// An update is the time in which a thread changes its log, that is, its counters (Update, counting.hpp). What
// is recorded may change only while no thread is inside an update.
#pragma once

#include <signal.h>

#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// The lock for changing what is recorded. Only one thread at a time holds it, and all signals of that thread
// are blocked. Otherwise a handler in that thread could hang: its I/O would wait for the change (Update,
// counting.hpp), which only the interrupted thread can finish. Order: signals are blocked before the lock is
// taken, and unblocked after it is released.
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
// Frees the lock in a fork's child, where its holder may not exist, and forgets the parent's windows. Called
// in that child.
void forget_parents_control() noexcept;

// Whether a session is being recorded. False in a fork's child that has not counted a call yet. Any thread;
// takes no lock.
inline bool is_running() noexcept {
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

// Everything below is for the holder of Control. The int results are 0 or an errno value. EBUSY: another
// thread did not leave its update within two seconds. ENOSYS: the kernel has no membarrier(). After these two
// errors recording continues as before. Any other value means that a file could not be created; then nothing
// is recorded from now on.

struct Recording {
  bool began_here = false;   // recording began, and will end, while the program runs (not by preloading)
  bool is_attached = false;  // recording was begun by `penstock profile attach`
  bool window_is_open = false;
};
extern Recording recording;

// Begins recording in `folder`, an absolute path of a folder that exists. `segments`: whether each call is
// also recorded as a segment.
int begin_recording(const char* folder, penstock_start_reason reason, bool segments) noexcept;
// Ends recording, and the current file. The program continues without being recorded.
int end_recording() noexcept;
// Ends the current file and begins another one. No call is lost between them.
int switch_file(penstock_start_reason reason) noexcept;
// Redirects the program's calls to the wrappers from now on (rewrite_slots()). The kernel's counters of this
// session start anew after that, so I/O before it does not lower the coverage. If another thread does not
// leave its update in time, they keep their earlier start, and the coverage is lower.
SlotCounts redirect_calls() noexcept;

}  // namespace penstock::interpose
