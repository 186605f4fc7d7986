// Which libraries have the wrapped functions that are not libc's, such as those of HDF5, MPI, liburing and
// libaio. A process may have several libraries with functions of the same names, each bound to other callers,
// as Python's h5py and netCDF4 bring an HDF5 each. So these functions have no wrapper symbols that the loader
// could bind. Their wrappers exist in several copies, one for each library, and slots lead to them
// (slots.hpp).
//
// Threads: library_copy_of() and forget_unloaded_libraries() are for the holder of Control (recording.hpp),
// in a walk over the loaded objects. The other functions are for any thread.
// Locks: function_of_copy() and function_to_be_bound() take the loader's lock, but not in a fork's child. The
// other functions take none.
// Memory: function_of_copy() and function_to_be_bound() call dlopen() and dlsym(), which may call malloc.
// Forks: in a fork's child the loader is not called. There, functions are found in the symbol tables of
// libraries (find_in_scope() of libc_names.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

// How many libraries may have functions of one name. The functions of further libraries are not watched.
constexpr unsigned kLibraryCopies = 4;

// Returns the copy for the library that has this function; kLibraryCopies if all copies are used.
unsigned library_copy_of(uintptr_t function) noexcept;
// Frees the copies of libraries that are not loaded any more. Calls `forget` with each one.
void forget_unloaded_libraries(void (*forget)(unsigned copy)) noexcept;
// Finds another function of the library that has this copy, or else of the program and what it depends on;
// null if none of them has it.
void* function_of_copy(unsigned copy, const char* name) noexcept;
// Changes when the copy may have become another library's. Then what function_of_copy() has returned is old.
uint32_t generation_of_copy(unsigned copy) noexcept;

// Returns the function to which the loader will bind a slot `name` of the object `path`, if that is certain;
// otherwise null.
void* function_to_be_bound(const char* path, const char* name) noexcept;

// A function of the library of copy kCopy, which wrappers of that copy call.
template <typename Signature, unsigned kCopy>
class FunctionOfCopy {
 public:
  constexpr explicit FunctionOfCopy(const char* name) : name_(name) {}
  // Null if the library does not have it.
  Signature* pointer() noexcept {
    const uint32_t generation = generation_of_copy(kCopy);
    if (generation_.load(std::memory_order_acquire) != generation) [[unlikely]] {
      function_.store(function_of_copy(kCopy, name_), std::memory_order_relaxed);
      generation_.store(generation, std::memory_order_release);
    }
    return reinterpret_cast<Signature*>(function_.load(std::memory_order_relaxed));
  }
  template <typename... Args>
  auto operator()(Args... args) noexcept {
    return pointer()(args...);
  }

 private:
  const char* name_;
  std::atomic<void*> function_{nullptr};
  std::atomic<uint32_t> generation_{0};
};

}  // namespace penstock::interpose
