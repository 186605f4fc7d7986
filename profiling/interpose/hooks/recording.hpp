// Begins and ends recording, and switches from one session file to the next, while the program's threads run.
//
// An update is the time in which a thread changes its log, that is, its counters (Update, counting.hpp). What
// is recorded is changed only while no thread is inside an update. Exception: an OuterUpdate may begin
// meanwhile; it writes only to memory that its log has already.
#pragma once

#include <signal.h>

#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// The lock for changing what is recorded. Only one thread at a time holds it. The constructor blocks all
// signals of that thread and then takes the lock; the destructor releases the lock and then unblocks the
// signals.
//
// Signals are blocked because a handler that interrupts the holder could hang: its I/O would wait for the end
// of the change (Update, counting.hpp), which only the interrupted thread can bring about.
// Holders: threads of the program in penstock_profile_*() and in rewrite_new_objects(), and the thread that
// `penstock profile attach` and `detach` start. The lock is taken before all other locks of this library. It
// is not recursive: no thread may make a second Control while it has one.
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
// Frees the lock in a fork's child, where the thread that held it may not exist. Also forgets the parent's
// windows.
void forget_parents_control() noexcept;

// Whether a session is being recorded. False in a fork's child that has not counted a call yet. Any thread
// may call it; it takes no lock.
inline bool is_running() noexcept {
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

// Everything below is for the holder of Control. The int results are 0 or an errno value:
// - EBUSY: another thread did not leave its update within two seconds. Recording continues as before.
// - ENOSYS: the kernel has no membarrier(). Recording continues as before.
// - Any other value: a file could not be created. Nothing is recorded from now on.

struct Recording {
  // Recording began, and will end, while the program runs. False if it began when the library was loaded.
  bool began_at_run_time = false;
  bool is_attached = false;  // `penstock profile attach` began the recording
  bool window_is_open = false;
};
extern Recording recording;

// Begins recording in `folder`, the absolute path of an existing folder. If `segments` is true, each call is
// also recorded as a segment.
int begin_recording(const char* folder, penstock_start_reason reason, bool segments) noexcept;
// Ends recording and the current file. The program goes on without being recorded.
int end_recording() noexcept;
// Ends the current file and begins another one. No call is lost between them.
int switch_file(penstock_start_reason reason) noexcept;
// Redirects the program's calls to the wrappers from now on (rewrite_slots()). Then the kernel's counters of
// this session begin anew, so that I/O before this does not lower the coverage. If another thread does not
// leave its update in time, these counters keep their earlier start, and the coverage is lower.
SlotCounts redirect_calls() noexcept;

}  // namespace penstock::interpose
