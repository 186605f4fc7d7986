// The names of all wrapped functions, and what is known of each.
//
// Threads: only the holder of Control (recording.hpp). find_name() is also called in walks over the loaded
// objects, under the loader's lock.
// Locks: none are taken.
// Memory: static.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/interpose/hooks/library_copies.hpp"
#include "profiling/interpose/hooks/wrapped.hpp"

namespace penstock::interpose {

struct WrappedName {
  // With one wrapper: that of a function of libc, whose `real` is looked up once. Otherwise there is one for
  // each copy, whose `real` is the function that slots of that copy have.
  WrappedFunction* copies[kLibraryCopies] = {};
  uintptr_t wrappers[kLibraryCopies] = {};
  bool is_of_library = false;  // not libc's (library_copies.hpp)
  bool is_imported = false;    // some loaded object imports this function

  uintptr_t replaced(unsigned copy) const noexcept {
    return reinterpret_cast<uintptr_t>(copies[copy]->real->load(std::memory_order_relaxed));
  }
};

constexpr size_t kMostNames = 1024;
extern WrappedName wrapped_names[kMostNames];
extern size_t wrapped_name_count;

// Adds the functions that are not libc's, and dlopen() and its like. Later calls do nothing.
void find_library_names() noexcept;
// Adds the functions of libc. Later calls do nothing.
void find_libc_names() noexcept;
// The index of a name in wrapped_names; kMostNames if the name is not wrapped.
size_t find_name(const char* text) noexcept;

}  // namespace penstock::interpose
