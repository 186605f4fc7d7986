// Checks whether a program can be watched by the profiler's library, which the dynamic loader must load into
// it. It cannot be watched if it is linked statically or against musl, is a 32-bit program, or runs with more
// rights than its caller (setuid).
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

// Returns the path of the program that a shell would run for `word`: `word` itself if it has a slash,
// otherwise the first executable file of that name on PATH. Errors: not_found; permission_denied if it may
// not be executed.
Result<std::string> find_program(std::string_view word);

// Checks that a program would load the profiler's library. For a script, its interpreter is checked. Errors:
// invalid_argument if the program would not load the library (the message has the reason and a remedy);
// permission_denied if the system cannot execute it.
Result<void> check_watchable(const std::string& program);

}  // namespace penstock
