// Zeroed memory of our own, whole pages, from the kernel: the program's heap is not ours to use.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

enum class Pages { when_touched, at_once };

// Null where there is none.
inline void* private_memory(std::size_t bytes, Pages pages = Pages::when_touched) noexcept {
  const long at =
      system_call(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | (pages == Pages::at_once ? MAP_POPULATE : 0), -1, 0);
  return at < 0 && at > -4096 ? nullptr : reinterpret_cast<void*>(at);
}
inline void give_back_private_memory(void* memory, std::size_t bytes) noexcept {
  system_call(SYS_munmap, word(memory), static_cast<long>(bytes));
}

}  // namespace penstock::interpose
