#include "io_backends/core/system/measuring_clock.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

namespace penstock {
namespace {

// One reading of this process's clock, between two readings of the kernel's clock.
struct Moment {
  int64_t kernel_before_ns = 0;
  int64_t ns = 0;
  int64_t kernel_after_ns = 0;
};

// The kernel's clock, by a system call that a replaced clock_gettime() does not see. -1: the kernel refuses
// it.
int64_t kernel_clock_ns() {
  timespec now{};
  if (::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) != 0) return -1;
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Moment moment() {
  Moment now;
  now.kernel_before_ns = kernel_clock_ns();
  now.ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  now.kernel_after_ns = kernel_clock_ns();
  return now;
}

}  // namespace

Result<void> check_measuring_clock() {
  constexpr int64_t kLongEnoughNs = 1'000'000;
  constexpr double kTolerance = 0.02;  // for a replaced clock that computes with rounded numbers
  std::chrono::steady_clock::now();    // a replaced clock may begin to run only now
  const Moment first = moment();
  Moment last = moment();
  while (last.kernel_before_ns >= 0 && last.kernel_before_ns < first.kernel_after_ns + kLongEnoughNs)
    last = moment();
  if (first.kernel_before_ns < 0 || last.kernel_after_ns < 0)
    return make_error(Errc::permission_denied,
                      "cannot check the clock of this process: the kernel refuses the system call "
                      "clock_gettime, so times may be wrong. Allow that call in the seccomp filter");

  const auto passed_ns = double(last.ns - first.ns);
  const auto least_ns = double(last.kernel_before_ns - first.kernel_after_ns);
  const auto most_ns = double(last.kernel_after_ns - first.kernel_before_ns);
  if (passed_ns >= least_ns * (1 - kTolerance) && passed_ns <= most_ns * (1 + kTolerance)) return success();
  const std::string pace =
      passed_ns == 0 ? "does not advance"
                     : fmt::format("runs {:.3g} times as fast as the kernel's clock", passed_ns / least_ns);
  const char* preloaded = std::getenv("LD_PRELOAD");
  return make_error(
      Errc::unsupported, "the clock of this process {}, so all measured times and rates are wrong: {}", pace,
      preloaded == nullptr || *preloaded == '\0'
          ? "a library replaces it; run without that library"
          : fmt::format("run without the library that replaces it (LD_PRELOAD is '{}')", preloaded));
}

}  // namespace penstock
