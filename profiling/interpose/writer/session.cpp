// Chooses the clock of a session. This happens once, before any call is counted: when the library is loaded,
// or when recording begins later.
//
// Threads: the thread that loads the library, or the holder of Control.
// Locks: none is needed, because no other thread reads `uses_tsc` yet.
#include "profiling/interpose/writer/session.hpp"

#include <stdlib.h>
#include <string.h>

#include "profiling/interpose/writer/system.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace penstock::interpose {

constinit Session session;

namespace {

#if defined(__x86_64__)
bool tsc_is_invariant() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & (1U << 8U)) == 0) {
    return false;
  }
  // The kernel may have found that the counter differs between processors. In that case its clock source is
  // hpet, acpi_pm or jiffies, and the result is false.
  char source[32] = {};
  const long fd = system_call(
      SYS_openat, -100, as_argument("/sys/devices/system/clocksource/clocksource0/current_clocksource"), 0);
  if (fd < 0) {
    return true;
  }
  system_call(SYS_read, fd, as_argument(source), sizeof(source) - 1);
  system_call(SYS_close, fd);
  return strncmp(source, "hpet", 4) != 0 && strncmp(source, "acpi_pm", 7) != 0 &&
         strncmp(source, "jiffies", 7) != 0;
}

uint64_t measure_ticks_per_s() noexcept {
  const int64_t begin_ns = nanoseconds(CLOCK_MONOTONIC);
  const uint64_t begin_ticks = __rdtsc();
  int64_t end_ns = begin_ns;
  uint64_t end_ticks = begin_ticks;
  while (end_ns - begin_ns < 100'000) {
    end_ns = nanoseconds(CLOCK_MONOTONIC);
    end_ticks = __rdtsc();
  }
  return uint64_t(double(end_ticks - begin_ticks) * 1e9 / double(end_ns - begin_ns));
}
#endif

}  // namespace

uint64_t start_ticks() noexcept {
#if defined(__x86_64__)
  // PENSTOCK_PROFILE_CLOCK overrides the choice. A user may know better than the processor: an emulator
  // (valgrind), for example, says that the counter is not invariant. A test may want the clock that would not
  // be chosen.
  const char* clock_name = getenv("PENSTOCK_PROFILE_CLOCK");
  if (clock_name == nullptr ? tsc_is_invariant() : strcmp(clock_name, "tsc") == 0) {
    session.uses_tsc = true;
    return measure_ticks_per_s();
  }
#endif
  return 1'000'000'000;
}

}  // namespace penstock::interpose
