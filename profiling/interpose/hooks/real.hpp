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

#include "profiling/interpose/hooks/wrapped.hpp"

namespace penstock::interpose {

template <typename Signature>
class Real;

// The next function of that name: of the libraries behind this one, or, where there is none, of those that
// were loaded later for somebody's own use (dlopen() with RTLD_LOCAL), as MPI and HDF5 are within Python.
// Where this library itself was loaded later (slots.hpp), the first that any library has. Null where none has
// it.
[[gnu::cold]] void* find_real(const char* name, std::atomic<void*>& found) noexcept;

// Whether a function of libc's name is another library's, which makes the call in its own way, syscall()
// among them. Takes no lock.
[[gnu::cold]] bool is_another_librarys(const char* name, const void* function) noexcept;

// Around a call of such a function: its wrapper counts it already, so what it asks of our syscall() goes to
// the kernel uncounted. Kept is where on the stack it begins: a handler that leaves it by longjmp() leaves no
// mark behind that holds further up. Any thread; nothing is allocated; in a fork's child it holds on for the
// thread that forked.
class WithinNext {
 public:
  WithinNext() noexcept : before_(begin_) { begin_ = reinterpret_cast<const char*>(this); }
  ~WithinNext() { begin_ = before_; }
  WithinNext(const WithinNext&) = delete;
  WithinNext& operator=(const WithinNext&) = delete;
  static bool is_under_way() noexcept {
    const char here = 0;
    const char* const begin = begin_;
    return begin != nullptr && begin > &here;
  }

 private:
  static constinit thread_local const char* volatile begin_ __attribute__((tls_model("initial-exec")));
  const char* before_;
};

template <typename Result>
Result no_such_function() noexcept {  // as a call that the kernel does not know
  errno = ENOSYS;
  if constexpr (std::is_void_v<Result>) {
    return;
  } else if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return static_cast<Result>(-ENOSYS);
  }
}

// Where a function is found. `direct` is what may be called with nothing around it, null until that is known
// and for ever where it is another library's.
struct RealPlace {
  const char* name;
  std::atomic<void*> found{nullptr};
  std::atomic<void*> direct{nullptr};

  void* find() noexcept {
    void* function = found.load(std::memory_order_relaxed);
    return function != nullptr ? function : find_real(name, found);
  }
  template <typename Function, typename... Args>
  [[gnu::noinline, gnu::cold]] auto call_slowly(Args... args) noexcept {
    auto* function = reinterpret_cast<Function>(find());
    if (function == nullptr) {
      return no_such_function<decltype(function(args...))>();
    }
    if (is_another_librarys(name, reinterpret_cast<void*>(function))) {
      const WithinNext within;
      return function(args...);
    }
    direct.store(reinterpret_cast<void*>(function), std::memory_order_relaxed);
    return function(args...);
  }
};

// The function that the program would have called without us. Found at the first call, from any thread.
template <typename Result, typename... Args>
class Real<Result(Args...)> {
  using Function = Result (*)(Args...);

 public:
  constexpr explicit Real(const char* name) : place_{.name = name} {}
  constexpr std::atomic<void*>* found() { return &place_.found; }
  // Null where no library of the process has it.
  auto pointer() noexcept { return reinterpret_cast<Function>(place_.find()); }
  Result operator()(Args... args) noexcept {
    auto* function = reinterpret_cast<Function>(place_.direct.load(std::memory_order_relaxed));
    if (function == nullptr) [[unlikely]] {
      return place_.call_slowly<Function>(args...);
    }
    return function(args...);
  }

 private:
  RealPlace place_;
};

template <typename Result, typename... Args>
class Real<Result(Args..., ...)> {
  using Function = Result (*)(Args..., ...);

 public:
  constexpr explicit Real(const char* name) : place_{.name = name} {}
  constexpr std::atomic<void*>* found() { return &place_.found; }
  template <typename... More>
  Result operator()(Args... args, More... more) noexcept {
    auto* function = reinterpret_cast<Function>(place_.direct.load(std::memory_order_relaxed));
    if (function == nullptr) [[unlikely]] {
      return place_.call_slowly<Function>(args..., more...);
    }
    return function(args..., more...);
  }

 private:
  RealPlace place_;
};

}  // namespace penstock::interpose

#define PENSTOCK_WRAP(result, name, parameters)                                                   \
  extern "C" __attribute__((visibility("default"))) result wrap_##name parameters __asm__(#name); \
  namespace {                                                                                     \
  [[maybe_unused]] constinit ::penstock::interpose::Real<result parameters> real_##name(#name);   \
  }                                                                                               \
  PENSTOCK_WRAPPED(name, real_##name.found())                                                     \
  extern "C" result wrap_##name parameters
