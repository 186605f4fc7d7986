// The clock of a session: ticks of the processor's time stamp counter where that is invariant, of
// CLOCK_MONOTONIC elsewhere.
#pragma once

#include <time.h>

#include <cstdint>

#include "profiling/interpose/writer/session.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace penstock::interpose {

inline std::int64_t nanoseconds(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  if (session.uses_tsc) [[likely]] {
    return __rdtsc();
  }
#endif
  return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC));
}

// Decides (PENSTOCK_PROFILE_CLOCK=tsc or =monotonic does, where it is set), and says how many ticks a second
// has, measured for a tenth of a millisecond.
std::uint64_t start_ticks() noexcept;

}  // namespace penstock::interpose
