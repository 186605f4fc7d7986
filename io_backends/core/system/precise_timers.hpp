// Sleeps that end when they are to.
#pragma once

#include <sys/prctl.h>

namespace penstock {

// The kernel may deliver a sleeping thread's timer up to 50 us late to spare wake-ups. Not to the thread that
// made this, which also destroys it, as long as it lives; then that thread has its former slack again. Where
// the kernel refuses, sleeps stay as they were.
class PreciseTimers {
 public:
  PreciseTimers() : before_(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }
  ~PreciseTimers() {
    if (before_ > 0) ::prctl(PR_SET_TIMERSLACK, before_, 0, 0, 0);
  }
  PreciseTimers(const PreciseTimers&) = delete;
  PreciseTimers& operator=(const PreciseTimers&) = delete;

 private:
  const int before_;
};

}  // namespace penstock
