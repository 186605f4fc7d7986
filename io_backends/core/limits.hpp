// Messages about the limits of this process (getrlimit).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "io_backends/core/result.hpp"

namespace penstock {

// The value of a limit (RLIMIT_NOFILE, ...) for a message: " (now 8)". "" if there is no limit.
std::string limit_text(int resource);
// The same for a limit in bytes: " (now 64 KiB)", as `ulimit` takes it, or " (now 100 bytes)".
std::string byte_limit_text(int resource);

// How the user raises the limits of this process for memory, for the end of a message:
// "; raise ulimit -v (now 80000 KiB)". "" if there are none.
std::string memory_limit_text();

// Makes the error `exhausted` from a failure to start one of `wanted` threads. It names the limits. `fewer`
// is what the user may choose for fewer threads, such as "fewer --threads"; it is left out for one thread.
Error no_more_threads(const std::system_error& error, size_t wanted, std::string_view fewer = {});

}  // namespace penstock
