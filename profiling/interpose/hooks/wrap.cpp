// Finds the functions that wrappers call: those that the program would have called without this library. Each
// one is looked for only once, because its address is stored.
//
// Threads: the thread of the program that calls the function for the first time. It may be inside malloc, in
// a handler or in a fork's child. rewrite_slots() (slots.cpp) also calls find_real(), with Control held: the
// lock for changing what is recorded.
// Locks: the loader's recursive lock, so a handler does not wait for its own thread. In a fork's child no
// lock is taken. Inside wrapped calls, only this file, library_copies.cpp and walks (loader_walk.hpp) call
// the loader.
// Memory: dlsym() may call malloc. This file allocates nothing itself.
// Signals: not blocked. If a handler interrupts a search and looks for the same function, it finds and stores
// the same address.
// Forks: in a fork's child the loader is not called (find_in_libraries()).
#include "profiling/interpose/hooks/wrap.hpp"

#include <dlfcn.h>

#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/slots.hpp"

namespace penstock::interpose {

// True if libc also has a function `name`, but `function` is another one, or if that is not known yet. It
// only reads libc's symbol table (libc_names.hpp), so any thread, handler or fork's child may call it.
bool is_of_another_library(const char* name, const void* function) noexcept {
  if (!knows_libc()) {
    return true;
  }
  const void* const libc_version = libc_function(name);
  return libc_version != nullptr && libc_version != function;
}

// Finds the function and stores it in `found`. A relaxed store is enough: the function's code was mapped long
// before, and every thread finds the same address. errno may change; that does no harm, because the program's
// call comes later.
//
// If a library that is loaded before this one has a dlsym() of its own, "next" means the next one after that
// library: this library's wrapper, which would call itself for ever.
void* find_real(const char* name, std::atomic<void*>& found) noexcept {
  void* function = is_preloaded() && !is_fork_child() ? dlsym(RTLD_NEXT, name) : nullptr;
  if (function == nullptr || function == own_function(name)) {
    function = find_in_libraries(name);
  }
  found.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace penstock::interpose
