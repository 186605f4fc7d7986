// Checks whether a program can be watched by a preloaded library. A static program loads no library, a
// privileged program refuses it, and a program of another architecture cannot load it.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

// The program that a shell would run for `word`. A word with a slash is the path itself. Otherwise it is the
// first executable file of that name on PATH. Errors: not_found; permission_denied if it may not be executed.
Result<std::string> find_program(std::string_view word);

// Errors: invalid_argument if the program would not load the library (the message has the reason and a
// remedy); permission_denied if the system cannot execute it. For a script, its interpreter is checked.
Result<void> check_watchable(const std::string& program);

}  // namespace penstock
