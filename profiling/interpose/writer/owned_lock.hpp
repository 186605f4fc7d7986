// A lock that knows whose it is: a signal's handler that comes upon its own thread in the midst of it is told
// so, and leaves what it wanted undone, instead of waiting for ever. Held for microseconds; no system call
// unless it is waited for.
#pragma once

#include <atomic>

#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

class OwnedLock {
 public:
  // In a fork's child: the thread that held it may not be there.
  void reset() noexcept { owner_.store(nullptr, std::memory_order_relaxed); }

 private:
  friend class Hold;
  std::atomic<const void*> owner_{nullptr};
};

class Hold {
 public:
  explicit Hold(OwnedLock& lock) noexcept : lock_(lock) {
    const void* self = &identity();
    if (lock.owner_.load(std::memory_order_relaxed) == self) {
      return;
    }
    const void* no_owner = nullptr;
    for (unsigned tries = 0; !lock.owner_.compare_exchange_weak(no_owner, self, std::memory_order_acquire,
                                                                std::memory_order_relaxed);
         ++tries) {
      no_owner = nullptr;
      if (tries > 100) {
        system_call(SYS_sched_yield);
      }
    }
    held_ = true;
  }
  ~Hold() {
    if (held_) {
      lock_.owner_.store(nullptr, std::memory_order_release);
    }
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  // False: this thread holds it further up its stack.
  bool held() const noexcept { return held_; }

 private:
  static const char& identity() noexcept {
    static thread_local char of_thread __attribute__((tls_model("initial-exec"))) = 0;
    return of_thread;
  }
  OwnedLock& lock_;
  bool held_ = false;
};

}  // namespace penstock::interpose
