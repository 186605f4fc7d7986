// How wrappers are written. A wrapper is a function that the program calls in place of one of libc or another
// library. It makes the program's call and counts it afterwards. Its symbol is the name of the function that
// it replaces. Its C++ name is different, so that it need not match the declaration in libc's headers.
//
//   PENSTOCK_WRAP(ssize_t, pread, (int fd, void* out, size_t bytes, off_t offset)) {
//     ... real_pread(fd, out, bytes, offset) ...
//   }
//
// Rules for every wrapper:
// Threads: it runs in the program's thread, on the program's stack, perhaps before main() or after exit(). It
// may be called inside malloc.
// Locks: none of this library is held on entry. It must not call anything that takes a lock of libc's. There
// are two exceptions. Wrappers of stdio lock the program's FILE, as the call itself does. And at its first
// call a wrapper searches for the function that it replaces (find_real()).
// Memory: it must not call malloc or wrapped functions, and must leave errno as the call left it.
// Signals: it may be called in a handler. If a handler interrupts the counting, the handler's calls are
// counted after it (Update, counting.hpp), or count as dropped.
// Forks: it may be called in a fork's or vfork's child. If the thread has no log (nothing is recorded, or it
// is a vfork's child), the wrapper only makes the call.
#pragma once

#include <dlfcn.h>
#include <errno.h>

#include <atomic>
#include <type_traits>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/hooks/library_copies.hpp"
#include "profiling/interpose/hooks/wrapped.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Finds the function that a wrapper calls, and stores it in `found`. Returns null if no library has it.
// If this library was preloaded, it is the next function of that name in the libraries after this one. If
// they have none, the search continues in libraries that were loaded for private use (dlopen() with
// RTLD_LOCAL), as Python loads MPI and HDF5. If this library was loaded later (slots.hpp), it is the first
// function of that name in any other library.
//
// Threads: any thread. Two threads that search at the same time find the same function.
// Locks: dlsym() takes the loader's recursive lock.
// Memory: dlsym() may call malloc.
// Forks: in a fork's child the loader is not called. There, functions are found in the symbol tables of
// libraries (libc_names.hpp), without a lock.
[[gnu::cold]] void* find_real(const char* name, std::atomic<void*>& found) noexcept;

// True if libc also has a function `name`, but `function` is one of another library, such as an allocator's
// mmap(). Also true as long as that is not known: before this library's constructor has run. This matters
// because such a function may call other wrapped functions (InOtherLibrary). Takes no lock.
[[gnu::cold]] bool is_of_another_library(const char* name, const void* function) noexcept;

template <typename Result>
Result no_such_function() noexcept {  // the result of a call whose function no library has
  errno = ENOSYS;
  if constexpr (std::is_void_v<Result>) {
    return;
  } else if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return static_cast<Result>(-ENOSYS);
  }
}

// The function that the program would have called without this library. It is found at the first call, in any
// thread.
//
// `direct_function_` is the same function if it may be called without an InOtherLibrary. It is null until
// that is known, and stays null if it is another library's function. Any thread may write `direct_function_`
// and `function_`. No lock and no memory order is needed, because all threads write the same value.
template <typename Signature>
class RealFunction {
 public:
  constexpr explicit RealFunction(const char* name) : name_(name) {}
  constexpr std::atomic<void*>* found() { return &function_; }
  // Null if no library of the process has the function.
  Signature* pointer() noexcept {
    void* function = function_.load(std::memory_order_relaxed);
    return reinterpret_cast<Signature*>(function != nullptr ? function : find_real(name_, function_));
  }
  template <typename... Args>
  auto operator()(Args... args) noexcept {
    auto* function = reinterpret_cast<Signature*>(direct_function_.load(std::memory_order_relaxed));
    if (function == nullptr) [[unlikely]] {
      return call_slowly(args...);
    }
    return function(args...);
  }

 private:
  template <typename... Args>
  [[gnu::noinline, gnu::cold]] auto call_slowly(Args... args) noexcept {
    Signature* function = pointer();
    if (function == nullptr) {
      return no_such_function<decltype(function(args...))>();
    }
    if (is_of_another_library(name_, reinterpret_cast<void*>(function))) {
      const InOtherLibrary mark;
      return function(args...);
    }
    direct_function_.store(reinterpret_cast<void*>(function), std::memory_order_relaxed);
    return function(args...);
  }

  const char* name_;
  std::atomic<void*> function_{nullptr};
  std::atomic<void*> direct_function_{nullptr};
};

// Returns errno if the call failed, and 0 if it succeeded.
[[gnu::always_inline]] inline int failure_of(auto result) noexcept {
  if (result < 0) [[unlikely]] {
    return errno;
  }
  return 0;
}

// Returns the description of the open file of `fd`, and stores its position in `offset`. If nothing is known
// of `fd`, returns null and sets `offset` to -1. Called before a call that uses the descriptor's position.
inline Description* position_before(ThreadLog& log, int fd, int64_t& offset) noexcept {
  Description* description = known_description(log, fd);
  offset = description == nullptr ? -1 : description->position.load(std::memory_order_relaxed);
  return description;
}

// Counts a read or a write after the call was made. If the call used the descriptor's position, `description`
// and `offset` come from position_before(), and the position advances by `bytes`. Otherwise `description` is
// null, and `offset` is the argument of the call. `bytes` is negative if the call failed.
template <penstock_call kCall>
[[gnu::always_inline]] inline void count_transfer(ThreadLog& log, int fd, Description* description,
                                                  int64_t offset, int64_t bytes, uint64_t begin,
                                                  uint64_t end) noexcept {
  if (bytes < 0) [[unlikely]] {
    count_slowly(log, fd, {.call = kCall, .failed = errno, .offset = offset, .begin = begin, .end = end});
    return;
  }
  if constexpr (kCall == PENSTOCK_CALL_READ) {
    add_kernel_read(log, bytes);
  } else {
    add_kernel_written(log, bytes);
  }
  if (description != nullptr) {
    description->advance(bytes);
  }
  count_read_or_write<kCall>(log, fd, PENSTOCK_POSIX, offset, bytes, begin, end);
}

// Makes the call, and reads the clock before and after it. Then calls `count_call` with the thread's log, the
// result, and an operation of this kind with the two times. At that moment errno is still that of the call.
// If count_call changes errno, it must restore it.
[[gnu::always_inline]] inline auto call_and_time(penstock_call kind, auto call, auto count_call) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  Operation operation{.call = kind, .begin = ticks()};
  const auto result = call();
  operation.end = ticks();
  count_call(*log, result, operation);
  return result;
}

// Makes and counts a call that is made on a descriptor and moves no bytes. A negative result means that the
// call failed. If the call returns 0, the file has at least `size` bytes. A `size` of -1 means: not known.
auto call_and_count(penstock_call kind, int fd, auto call, int64_t size = -1) noexcept {
  return call_and_time(kind, call, [=](ThreadLog& log, auto result, Operation& operation) {
    operation.failed = failure_of(result);
    penstock_counters* counters = count(log, fd, operation);
    if (size >= 0 && result == 0 && counters != nullptr) {
      note_size(*counters, uint64_t(size));
    }
  });
}

// Makes and counts a call on a name, such as unlink(). A relative name begins at the directory `at`. A
// negative result means that the call failed.
auto call_on_path_and_count(int at, const char* path, penstock_file_kind file_kind, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OTHER, call, [=](ThreadLog& log, auto result, Operation& operation) {
    const int saved_errno = errno;
    operation.failed = result < 0 ? saved_errno : 0;
    count_path(log, at, path, operation, file_kind);
    errno = saved_errno;
  });
}

}  // namespace penstock::interpose

#define PENSTOCK_WRAP(result, name, parameters)                                                         \
  extern "C" __attribute__((visibility("default"))) result wrap_##name parameters __asm__(#name);       \
  namespace {                                                                                           \
  [[maybe_unused]] constinit ::penstock::interpose::RealFunction<result parameters> real_##name(#name); \
  }                                                                                                     \
  PENSTOCK_WRAPPED(name, real_##name.found())                                                           \
  extern "C" result wrap_##name parameters

// Wraps a function that is not libc's. The wrapper is a template: its parameter kCopy is the number of the
// library whose function the program has called, which is real_NAME<kCopy> (library_copies.hpp).
#define PENSTOCK_WRAP_OF_LIBRARY(result, name, parameters)                             \
  namespace {                                                                          \
  template <unsigned kCopy>                                                            \
  constinit ::penstock::interpose::RealFunction<result parameters> real_##name(#name); \
  }                                                                                    \
  template <unsigned kCopy>                                                            \
  static result wrap_##name parameters;                                                \
  PENSTOCK_WRAPPED_COPY(name, 0)                                                       \
  PENSTOCK_WRAPPED_COPY(name, 1)                                                       \
  PENSTOCK_WRAPPED_COPY(name, 2)                                                       \
  PENSTOCK_WRAPPED_COPY(name, 3)                                                       \
  template <unsigned kCopy>                                                            \
  static result wrap_##name parameters
#define PENSTOCK_WRAPPED_COPY(symbol, number)                                                         \
  namespace {                                                                                         \
  static_assert((number) < ::penstock::interpose::kLibraryCopies);                                    \
  __attribute__((used, section("penstock_wrapped"))) constinit ::penstock::interpose::WrappedFunction \
      wrapped_##symbol##_##number{                                                                    \
          .name = #symbol,                                                                            \
          .real = real_##symbol<number>.found(),                                                      \
          .wrapper = []() noexcept { return reinterpret_cast<uintptr_t>(&wrap_##symbol<number>); },   \
          .copy = number};                                                                            \
  }

// Wraps two functions of the same signature in the same way, such as lseek() and lseek64(). The last argument
// is an expression. Both wrappers return its value. In it, `real` is the function that the program has
// called. `real` is a constant reference, so the call costs no more than in PENSTOCK_WRAP.
#define PENSTOCK_WRAP_TWINS(result, name, twin, parameters, ...) \
  PENSTOCK_WRAP(result, name, parameters) {                      \
    constexpr auto& real = real_##name;                          \
    return __VA_ARGS__;                                          \
  }                                                              \
  PENSTOCK_WRAP(result, twin, parameters) {                      \
    constexpr auto& real = real_##twin;                          \
    return __VA_ARGS__;                                          \
  }
#define PENSTOCK_WRAP_TWINS_OF_LIBRARY(result, name, twin, parameters, ...) \
  PENSTOCK_WRAP_OF_LIBRARY(result, name, parameters) {                      \
    constexpr auto& real = real_##name<kCopy>;                              \
    return __VA_ARGS__;                                                     \
  }                                                                         \
  PENSTOCK_WRAP_OF_LIBRARY(result, twin, parameters) {                      \
    constexpr auto& real = real_##twin<kCopy>;                              \
    return __VA_ARGS__;                                                     \
  }
