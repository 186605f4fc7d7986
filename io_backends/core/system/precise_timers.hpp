// Makes sleeps of a thread end on time.
#pragma once

#include <sys/prctl.h>

namespace penstock {

// The kernel may wake a sleeping thread up to 50 us late (timer slack), to save wake-ups. While this object
// exists, sleeps of the thread that made it end without this delay. The same thread must destroy it; the
// destructor restores the former slack. If the kernel refuses, nothing changes.
class PreciseTimers {
 public:
  PreciseTimers() : former_slack_ns_(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }
  ~PreciseTimers() {
    if (former_slack_ns_ > 0) ::prctl(PR_SET_TIMERSLACK, former_slack_ns_, 0, 0, 0);
  }
  PreciseTimers(const PreciseTimers&) = delete;
  PreciseTimers& operator=(const PreciseTimers&) = delete;

 private:
  const int former_slack_ns_;
};

}  // namespace penstock
