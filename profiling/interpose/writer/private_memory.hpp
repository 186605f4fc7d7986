// Gets zeroed memory from the kernel, in whole pages. The profiler's library must not use the program's heap,
// because its wrappers may run inside malloc.
#pragma once

#include <string.h>
#include <sys/mman.h>

#include <cstddef>

#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

// Returns zeroed memory; null if the kernel has none. `more_flags` are added to the flags of mmap(), such as
// MAP_POPULATE.
inline void* private_memory(size_t bytes, int more_flags = 0) noexcept {
  const long address = system_call(SYS_mmap, 0, long(bytes), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
  return address < 0 && address > -4096 ? nullptr : reinterpret_cast<void*>(address);
}
// Unmaps memory from private_memory(), which was called with the same `bytes`.
inline void free_private_memory(void* memory, size_t bytes) noexcept {
  system_call(SYS_munmap, as_argument(memory), long(bytes));
}

// An array whose memory comes from the kernel. It is never freed. It is for one thread at a time.
template <typename T>
struct GrowingArray {
  T* items = nullptr;
  size_t count = 0;
  size_t capacity = 0;
  bool add(const T& item) noexcept {
    if (count == capacity) {
      const size_t new_capacity = capacity == 0 ? 4096 : capacity * 2;
      auto* new_items = static_cast<T*>(private_memory(new_capacity * sizeof(T)));
      if (new_items == nullptr) {
        return false;
      }
      if (items != nullptr) {
        memcpy(new_items, items, count * sizeof(T));
        free_private_memory(items, capacity * sizeof(T));
      }
      items = new_items;
      capacity = new_capacity;
    }
    items[count++] = item;
    return true;
  }
};

}  // namespace penstock::interpose
