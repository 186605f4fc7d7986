// Zeroed memory of our own, whole pages, from the kernel: the program's heap is not ours to use.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

// Null where there is none. `also`: further flags of mmap, as MAP_POPULATE for all pages at once.
inline void* private_memory(std::size_t bytes, int also = 0) noexcept {
  const long at = system_call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | also, -1, 0);
  return at < 0 && at > -4096 ? nullptr : reinterpret_cast<void*>(at);
}
inline void give_back_private_memory(void* memory, std::size_t bytes) noexcept {
  system_call(SYS_munmap, word(memory), static_cast<long>(bytes));
}

}  // namespace penstock::interpose
