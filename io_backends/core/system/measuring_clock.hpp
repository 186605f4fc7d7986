// Checks that this process can measure time.
#pragma once

#include "io_backends/core/result.hpp"

namespace penstock {

// Fails with Errc::unsupported if the clock that this process reads (std::chrono::steady_clock) does not keep
// pace with the kernel's clock. A library in LD_PRELOAD may have replaced it (libfaketime): speeds would then
// be wrong, and a wait might not end. A clock that only shows another time passes. Fails with
// Errc::permission_denied if the clock cannot be compared, because the kernel refuses the direct system call.
// Takes about 1 ms.
Result<void> check_measuring_clock();

}  // namespace penstock
