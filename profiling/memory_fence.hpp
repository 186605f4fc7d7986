// Fences between what two processes read and write in one file that both have mapped.
#pragma once

#include <atomic>

namespace penstock {

// The thread sanitizer knows no fences, and nothing of another process: there the compiler alone is held.
inline void memory_fence(std::memory_order order) noexcept {
#if defined(__SANITIZE_THREAD__)
  static_cast<void>(order);
  __asm__ volatile("" ::: "memory");
#else
  std::atomic_thread_fence(order);
#endif
}

}  // namespace penstock
