// Begins and ends recording, and goes from one file to the next, while the program's threads run.
#pragma once

#include <signal.h>

#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Its holder changes what is recorded: one thread at a time, with all signals blocked. A handler that did I/O
// in that thread would wait for the change (Update, counting.hpp), and the change is made by the thread that
// it interrupted. Order: signals are blocked before the lock is taken, and unblocked after it is released.
//
// Holders: threads of the program in penstock_profile_*() and in look_for_objects(), and the thread that
// `penstock profile attach` and `detach` begin. The lock is taken before all others of this library. Not
// recursive: held twice by one thread it would only be held once; no code does that.
class Control {
 public:
  Control() noexcept;
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

 private:
  sigset_t before_{};
  union {
    Hold hold_;
  };
};
// In a fork's child: the thread that held it may not exist, and the child's windows are its own.
void forget_parents_control() noexcept;

inline bool is_running() noexcept {
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

// What follows is for the holder of Control. Each int is 0 or an errno value. EBUSY: a thread stays inside an
// update. ENOSYS: there is no membarrier(). In both cases recording continues as before. Other values come
// from making the file; then nothing is recorded from now on.

struct Recording {
  bool began_here = false;  // it began while the program ran, and ends while it runs
  bool attached = false;    // from outside
  bool window_is_open = false;
};
extern Recording recording;

// In an absolute folder that exists.
int begin_recording(const char* folder, penstock_begun started, bool segments) noexcept;
int end_recording() noexcept;
// One file ends and another begins; no call is lost between them.
int cut(penstock_begun started) noexcept;
// Calls are led to their wrappers from now on. What the kernel counted before does not count for this
// session; if a thread stays inside an update that cannot be set, and coverage is lower.
SlotCounts take_slots() noexcept;

}  // namespace penstock::interpose
