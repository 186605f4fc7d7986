// A memory fence for two processes that read and write the same mapped file.
#pragma once

#include <atomic>

namespace penstock {

// A fence between this process and another one. The thread sanitizer does not support fences and cannot see
// another process. So with that sanitizer, this only keeps the compiler from reordering.
inline void memory_fence(std::memory_order order) noexcept {
#if defined(__SANITIZE_THREAD__)
  static_cast<void>(order);
  __asm__ volatile("" ::: "memory");
#else
  std::atomic_thread_fence(order);
#endif
}

}  // namespace penstock
