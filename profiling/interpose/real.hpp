// How a call is wrapped: the wrapper bears the name of the libc function that it stands in for as its symbol,
// and another in C++, so that it needs to agree with no declaration of libc's headers.
//
//   PENSTOCK_WRAP(ssize_t, pread, (int fd, void* out, size_t bytes, off_t offset)) {
//     ... real_pread(fd, out, bytes, offset) ...
//   }
#pragma once

#include <dlfcn.h>
#include <errno.h>

#include <atomic>
#include <type_traits>

#include "profiling/interpose/wrapped.hpp"

namespace penstock::interpose {

template <typename Signature>
class Real;

// The next function of that name: of the libraries behind this one, or, where there is none, of those that
// were loaded later for somebody's own use (dlopen() with RTLD_LOCAL), as MPI and HDF5 are within Python.
// Where this library itself was loaded later (slots.hpp), the first that any library has. Null where none has
// it.
[[gnu::cold]] void* find_real(const char* name, std::atomic<void*>& found) noexcept;

// The function that the program would have called without us. Found at the first call, from any thread.
template <typename Result, typename... Args>
class Real<Result(Args...)> {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}
  constexpr std::atomic<void*>* found() { return &found_; }
  // Null where no library of the process has it.
  auto pointer() noexcept {
    using Function = Result (*)(Args...);
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) [[unlikely]] {
      found = find_real(name_, found_);
    }
    return reinterpret_cast<Function>(found);
  }
  // Where there is none: as a call that the kernel does not know.
  Result operator()(Args... args) noexcept {
    auto* function = pointer();
    if (function == nullptr) [[unlikely]] {
      errno = ENOSYS;
      if constexpr (std::is_void_v<Result>) {
        return;
      } else if constexpr (std::is_pointer_v<Result>) {
        return nullptr;
      } else {
        return static_cast<Result>(-ENOSYS);
      }
    }
    return function(args...);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

template <typename Result, typename... Args>
class Real<Result(Args..., ...)> {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}
  constexpr std::atomic<void*>* found() { return &found_; }
  template <typename... More>
  Result operator()(Args... args, More... more) noexcept {
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) [[unlikely]] {
      found = find_real(name_, found_);
    }
    using Function = Result (*)(Args..., ...);
    return reinterpret_cast<Function>(found)(args..., more...);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

}  // namespace penstock::interpose

#define PENSTOCK_WRAP(result, name, parameters)                                                   \
  extern "C" __attribute__((visibility("default"))) result wrap_##name parameters __asm__(#name); \
  namespace {                                                                                     \
  [[maybe_unused]] constinit ::penstock::interpose::Real<result parameters> real_##name(#name);   \
  }                                                                                               \
  PENSTOCK_WRAPPED(name, real_##name.found())                                                     \
  extern "C" result wrap_##name parameters
