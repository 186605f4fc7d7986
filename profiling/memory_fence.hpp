// A memory fence for two processes that read and write the same mapped file.
#pragma once

#include <atomic>

namespace penstock {

// The thread sanitizer does not support fences and cannot see another process. With that sanitizer, only the
// compiler is kept from reordering.
inline void memory_fence(std::memory_order order) noexcept {
#if defined(__SANITIZE_THREAD__)
  static_cast<void>(order);
  __asm__ volatile("" ::: "memory");
#else
  std::atomic_thread_fence(order);
#endif
}

}  // namespace penstock
