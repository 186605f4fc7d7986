// A spin lock that knows its owner. If a signal handler wants a lock that its own interrupted thread holds,
// it would wait for ever. Instead LockGuard::has_lock() is false, and the handler must skip its work. Other
// threads wait until the lock is free.
//
// Threads: any thread, and any handler.
// Memory: nothing is allocated; the owner is the address of a thread-local variable.
// Signals: not blocked. The lock is usually held for microseconds. LockGuard makes a system call only if its
// thread has to wait.
// Forks: a child resets the lock, because the thread that held it may not exist there.
#pragma once

#include <atomic>

#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

class OwnedLock {
 public:
  // Frees the lock without waiting for its owner. Called in a fork's child, where the owner may not exist.
  void reset() noexcept { owner_.store(nullptr, std::memory_order_relaxed); }

 private:
  friend class LockGuard;
  std::atomic<const void*> owner_{nullptr};
};

// Holds the lock as long as this object exists. The constructor waits while another thread has the lock.
class LockGuard {
 public:
  explicit LockGuard(OwnedLock& lock) noexcept : lock_(lock) {
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
    has_lock_ = true;
  }
  ~LockGuard() {
    if (has_lock_) {
      lock_.owner_.store(nullptr, std::memory_order_release);
    }
  }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  // False if this thread held the lock already, for example in a signal handler that interrupted its own
  // thread while it held the lock.
  bool has_lock() const noexcept { return has_lock_; }

 private:
  static const char& identity() noexcept {
    static thread_local char thread_mark __attribute__((tls_model("initial-exec"))) = 0;
    return thread_mark;
  }
  OwnedLock& lock_;
  bool has_lock_ = false;
};

}  // namespace penstock::interpose
