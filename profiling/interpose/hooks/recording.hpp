// Recording begins, ends, and goes from one file to the next, while the program's threads run.
#pragma once

#include <signal.h>

#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Who holds it changes what is recorded: one at a time, and no handler on top of it, for one that does I/O
// would wait for us, and we for it.
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
// In a fork's child: the thread that held it may not be there, and windows are its own.
void forget_parents_control() noexcept;

inline bool is_running() noexcept {
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

// What follows is for who holds Control. Each int is 0 or an errno value: EBUSY where a thread stays in the
// midst of an update and ENOSYS without membarrier(), where what was recorded is recorded on; others of
// making the file, where nothing is recorded from then on.

struct Recording {
  bool began_here = false;  // it began while the program ran, and ends likewise
  bool attached = false;    // from outside
  bool window_is_open = false;
};
extern Recording recording;

// In an absolute folder that is there.
int begin_recording(const char* folder, penstock_begun started, bool segments) noexcept;
int end_recording() noexcept;
// One file ends, another begins, and no call is lost between them.
int cut(penstock_begun started) noexcept;
// Calls come to their wrappers from now on. What the kernel counted before is nobody's, if threads let us say
// so; else coverage lacks it.
Rewritten take_slots() noexcept;

}  // namespace penstock::interpose
