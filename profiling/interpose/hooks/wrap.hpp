// How a call is wrapped: what makes the program's call, and what counts it afterwards. The wrapper has the
// name of the libc function that it replaces as its symbol, and another name in C++, so that it need not
// agree with a declaration in libc's headers.
//
//   PENSTOCK_WRAP(ssize_t, pread, (int fd, void* out, size_t bytes, off_t offset)) {
//     ... real_pread(fd, out, bytes, offset) ...
//   }
//
// What holds for every wrapper: it runs in the program's thread, on the program's stack, with no lock of this
// library held, before main() and after exit() as well. It may be called inside malloc, in a signal handler,
// and in a fork's or vfork's child. So it must not call malloc, wrapped functions or anything that takes a
// lock of libc's, and must leave errno as the call left it. Exception: the first call of each function
// searches for it (find_real()). Wrappers of stdio also lock the program's FILE, like the call itself.
//
// Without a log (nothing is recorded, or a vfork's child) the call is only made. Signals: a handler that
// interrupts the counting is counted after it (Update, counting.hpp).
#pragma once

#include <dlfcn.h>
#include <errno.h>

#include <atomic>
#include <type_traits>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/hooks/wrapped.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// The next function of that name: in the libraries after this one, or, if there is none, in those that were
// loaded later for private use (dlopen() with RTLD_LOCAL), as Python does with MPI and HDF5. If this library
// itself was loaded later (slots.hpp), the first that any library has. Null if there is none.
//
// Any thread. dlsym() takes the loader's recursive lock and may call malloc; two threads that search at once
// find the same. In a child that libc has not forked, that lock may be held for ever: there libc's symbols
// are read instead (libc_names.hpp), which takes no lock.
[[gnu::cold]] void* find_real(const char* name, std::atomic<void*>& found) noexcept;

// Whether a function with the name of one of libc's is another library's, which makes the call in its own
// way, perhaps by syscall(). Takes no lock.
[[gnu::cold]] bool is_another_librarys(const char* name, const void* function) noexcept;

// Around a call of such a function. Its wrapper counts the call already, so what it asks of our syscall()
// goes to the kernel uncounted. The mark is the stack address where the call began: a handler that leaves the
// call by longjmp() leaves a mark that is ignored further up the stack. Any thread; nothing is allocated. In
// a fork's child it stays for the thread that forked.
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
Result no_such_function() noexcept {  // like a call that the kernel does not have
  errno = ENOSYS;
  if constexpr (std::is_void_v<Result>) {
    return;
  } else if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return static_cast<Result>(-ENOSYS);
  }
}

// The function that the program would have called without us. Found at the first call, in any thread.
//
// `direct_` is the function if it may be called with nothing around it: null until that is known, and always
// null if it is another library's. It and `found_` are written by any thread with the same value, so no lock
// and no order is needed.
template <typename Signature>
class Real {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}
  constexpr std::atomic<void*>* found() { return &found_; }
  // Null if no library of the process has it.
  Signature* pointer() noexcept {
    void* function = found_.load(std::memory_order_relaxed);
    return reinterpret_cast<Signature*>(function != nullptr ? function : find_real(name_, found_));
  }
  template <typename... Args>
  auto operator()(Args... args) noexcept {
    auto* function = reinterpret_cast<Signature*>(direct_.load(std::memory_order_relaxed));
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
    if (is_another_librarys(name_, reinterpret_cast<void*>(function))) {
      const WithinNext within;
      return function(args...);
    }
    direct_.store(reinterpret_cast<void*>(function), std::memory_order_relaxed);
    return function(args...);
  }

  const char* name_;
  std::atomic<void*> found_{nullptr};
  std::atomic<void*> direct_{nullptr};
};

// Why a call failed, if it did.
[[gnu::always_inline]] inline int failure_of(auto result) noexcept {
  if (result < 0) [[unlikely]] {
    return errno;
  }
  return 0;
}

// Where a call that uses the descriptor's position begins; -1 if the descriptor is not known.
inline Description* positioned(ThreadLog& log, int fd, std::int64_t& offset) noexcept {
  Description* description = known_description(log, fd);
  offset = description == nullptr ? -1 : description->position.load(std::memory_order_relaxed);
  return description;
}

// After a read from, or a write to, the descriptor's position (description, offset: from positioned()), or
// any other (description null). `bytes` < 0: it failed.
template <penstock_call kCall>
[[gnu::always_inline]] inline void count_transfer(ThreadLog& log, int fd, Description* description,
                                                  std::int64_t offset, std::int64_t bytes,
                                                  std::uint64_t begin, std::uint64_t end) noexcept {
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
  count_moved<kCall>(log, fd, PENSTOCK_POSIX, offset, bytes, begin, end);
}

// Makes the call, and has what it gave counted: `count_it` is given the log, the result, and an operation of
// that kind with the times of the call. errno is still the call's; count_it may change it where it gives it
// back.
[[gnu::always_inline]] inline auto timed(penstock_call kind, auto call, auto count_it) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return call();
  }
  Operation operation{.call = kind, .begin = ticks()};
  const auto result = call();
  operation.end = ticks();
  count_it(*log, result, operation);
  return result;
}

// A call on a descriptor that moves nothing, and what it gave (-1: it failed). `size`: of the file, where it
// gave 0; -1: that says nothing of it.
auto counted(penstock_call kind, int fd, auto call, std::int64_t size = -1) noexcept {
  return timed(kind, call, [=](ThreadLog& log, auto result, Operation& operation) {
    operation.failed = failure_of(result);
    penstock_counters* counters = count(log, fd, operation);
    if (size >= 0 && result == 0 && counters != nullptr) {
      note_size(*counters, static_cast<std::uint64_t>(size));
    }
  });
}

// The same on a name.
auto counted_path(int at, const char* path, penstock_file_kind file_kind, auto call) noexcept {
  return timed(PENSTOCK_CALL_OTHER, call, [=](ThreadLog& log, auto result, Operation& operation) {
    const int saved = errno;
    operation.failed = result < 0 ? saved : 0;
    count_path(log, at, path, operation, file_kind);
    errno = saved;
  });
}

}  // namespace penstock::interpose

#define PENSTOCK_WRAP(result, name, parameters)                                                   \
  extern "C" __attribute__((visibility("default"))) result wrap_##name parameters __asm__(#name); \
  namespace {                                                                                     \
  [[maybe_unused]] constinit ::penstock::interpose::Real<result parameters> real_##name(#name);   \
  }                                                                                               \
  PENSTOCK_WRAPPED(name, real_##name.found())                                                     \
  extern "C" result wrap_##name parameters

// Two functions of the same signature that are wrapped in the same way, as those for files with 32 and with
// 64 bits of size. Last comes what both return; in it `real` is the function that the program has called. The
// reference is a constant, so the call is made as in PENSTOCK_WRAP.
#define PENSTOCK_WRAP_TWINS(result, name, twin, parameters, ...) \
  PENSTOCK_WRAP(result, name, parameters) {                      \
    constexpr auto& real = real_##name;                          \
    return __VA_ARGS__;                                          \
  }                                                              \
  PENSTOCK_WRAP(result, twin, parameters) {                      \
    constexpr auto& real = real_##twin;                          \
    return __VA_ARGS__;                                          \
  }
