// Makes direct system calls, without the functions of libc: wrappers of this or another library may have
// replaced those functions. errno does not change. A result from -4095 to -1 is a negated errno.
//
// Threads: any thread and any handler. `is_sealed` is set once, and read without order: no other data depends
// on it.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::interpose {

#if defined(__x86_64__)
inline long kernel_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) noexcept {
  long result = 0;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long kernel_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) noexcept {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "the profiler knows the system calls of x86-64 and of aarch64"
#endif

// True once the program has restricted its system calls (seccomp). From then on a call that the program does
// not make itself might end the process. A forked child inherits the value.
inline constinit std::atomic<bool> is_sealed{false};

// Makes a call of this library. After is_sealed it makes none and returns -EPERM. The program's own calls go
// through kernel_call().
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) noexcept {
  if (is_sealed.load(std::memory_order_relaxed)) [[unlikely]] {
    return -EPERM;
  }
  return kernel_call(number, a, b, c, d, e, f);
}

// The call of fstatat(), which has two names.
#if defined(SYS_newfstatat)
inline constexpr long kStatOfName = SYS_newfstatat;
#else
inline constexpr long kStatOfName = SYS_fstatat;
#endif

template <typename T>
long as_argument(T* pointer) noexcept {
  return reinterpret_cast<long>(pointer);
}

// Tells whether the program's memory can be read, before something is read that the kernel has not read yet:
// where the program gives a bad pointer, the kernel answers EFAULT, and this library must not crash.
// Remembers the last page, so that neighbouring memory costs no further system call. Any thread and handler
// may use its own object.
class ReadableMemory {
 public:
  bool has(const void* at) noexcept {
    constexpr uintptr_t kPageBytes = 4096;  // the smallest page of any machine
    constexpr long kNoSuchChange = -1;
    const uintptr_t page = reinterpret_cast<uintptr_t>(at) & ~(kPageBytes - 1);
    if (page == page_) {
      return true;
    }
    if (page == 0) {  // to the system call below, a null pointer means no set of signals
      return false;
    }
    // The kernel first reads the set of signals, and only then finds that it shall do nothing with it. It
    // reads 8 bytes around the address, and no others: valgrind reports a call that reads freed memory.
    const uintptr_t word = reinterpret_cast<uintptr_t>(at) & ~uintptr_t{7};
    if (system_call(SYS_rt_sigprocmask, kNoSuchChange, long(word), 0, 8) == -EFAULT) {
      return false;
    }
    page_ = page;
    return true;
  }
  bool has(const void* at, size_t bytes) noexcept {
    return has(at) && has(static_cast<const char*>(at) + bytes - 1);
  }
  bool has_text(const char* text) noexcept {
    // As a path, the kernel reads a text up to its end. That it names no file does not matter.
    if (const long found = system_call(SYS_faccessat, AT_FDCWD, as_argument(text), 0);
        found != -ENAMETOOLONG) {
      return found != -EFAULT;
    }
    for (; has(text); ++text) {
      if (*text == 0) {
        return true;
      }
    }
    return false;
  }

 private:
  uintptr_t page_ = 1;  // no page
};

}  // namespace penstock::interpose
